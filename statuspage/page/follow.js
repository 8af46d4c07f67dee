// Follows a group: asks for the next version, and is answered when there is one.

const pause = (ms, signal) => new Promise((done) => {
  const t = setTimeout(done, ms);
  signal.addEventListener('abort', () => { clearTimeout(t); done(); }, { once: true });
});

/** visible waits until somebody can see the page. */
function visible(signal) {
  if (document.visibilityState === 'visible') return Promise.resolve();
  return new Promise((done) => {
    document.addEventListener('visibilitychange', done, { once: true });
    signal.addEventListener('abort', done, { once: true });
  });
}

/** ask fetches JSON; an error has the words of the server where there are some. */
export async function ask(path, options) {
  const answer = await fetch(path, { cache: 'no-store', credentials: 'same-origin', ...options });
  if (answer.status === 204) return { answer };
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) throw Object.assign(new Error(body.error || `status ${answer.status}`), { status: answer.status });
  return { answer, body };
}

/**
 * follow calls on.message(body), on.times({now, read}), on.away(error) and on.hidden(is) until the returned function is called.
 * on.have says which version is here.
 */
export function follow(group, on) {
  const ended = new AbortController();
  const { signal } = ended;
  (async () => {
    for (let failures = 0; !signal.aborted;) {
      if (document.visibilityState !== 'visible') {
        on.hidden(true);
        await visible(signal);
        on.hidden(false);
        continue;
      }
      try {
        const path = `api/state?group=${encodeURIComponent(group)}&have=${encodeURIComponent(on.have())}`;
        const { answer, body } = await ask(path, { signal: AbortSignal.any([signal, AbortSignal.timeout(30000)]) });
        failures = 0;
        if (signal.aborted) return;
        on.times({
          now: Number(answer.headers.get('Rebalancer-Now')), read: Number(answer.headers.get('Rebalancer-Read')),
        });
        if (body) on.message(body);
        await pause(200, signal);
      } catch (err) {
        if (signal.aborted) return;
        failures++;
        on.away(err);
        await pause(Math.min(10000, 500 * 2 ** failures), signal);
      }
    }
  })();
  return () => ended.abort();
}
