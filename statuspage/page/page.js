// Puts the page together: which group is shown, what of it, and when it is drawn.
import { el, set, count, lasting, shown, mark } from './text.js';
import { State, kinds, select } from './state.js';
import { ask, follow } from './follow.js';
import { summary, attention, history, Nodes } from './overview.js';
import { List } from './list.js';
import { Details } from './details.js';

const $ = (id) => document.getElementById(id);
const state = new State();
const view = Object.assign({ group: '', query: '', only: '', order: 'name' }, Object.fromEntries(new URLSearchParams(location.search)));
const times = { offset: 0, read: 0, away: '', hidden: false };
let groups = [];
let stop = () => {};

/** now is the time of the page's server. */
const now = () => Date.now() + times.offset;

const details = new Details({ state: () => state, group: () => view.group, now, show });
const open = { resource: (n) => details.resource(n), node: (n) => details.node(n), show, changed: draw, now };
const nodes = new Nodes(open);
const list = new List(open);

/** show sets what the list shows, and goes there. */
function show(only, query) {
  view.only = only;
  view.query = query;
  $('query').value = query;
  remember();
  draw();
  $('resources').scrollIntoView();
  $('list').focus({ preventScroll: true });
}

/** remember keeps in the address what is shown, so that it can be passed on. */
function remember() {
  const q = new URLSearchParams();
  for (const [k, v] of Object.entries(view)) if (v && !(k === 'order' && v === 'name')) q.set(k, v);
  window.history.replaceState(null, '', '?' + q);
}

let frame;
function draw() {
  frame ??= requestAnimationFrame(() => { frame = undefined; render(); });
}

function render() {
  const text = summary(state);
  announce(text);
  live();
  if (!state.head) return;
  $('main').hidden = false;
  attention(state, open);
  nodes.render(state);
  states();
  list.show(select(state, view), !!state.head.lag);
  history(state);
  details.render();
  document.title = `${state.counts.trouble ? `(${state.counts.trouble}) ` : ''}${shown(view.group)} · Rebalancer`;
  document.documentElement.dataset.painted ??= String(Math.round(performance.now()));
}

/** states are the filter by state, and the key to the signs. */
function states() {
  const all = [['', 'All', state.counts.all], ['trouble', 'Attention', state.counts.trouble],
    ...kinds.map(([k, w]) => [k, w, state.counts[k]]), ['pinned', 'Pinned', state.counts.pinned], ['free', 'Without a node', state.counts.free]]
    .filter(([k, , n]) => n || k === '' || k === view.only);
  const key = JSON.stringify([all, view.only]);
  const box = $('states');
  if (box.dataset.key === key) return;
  box.dataset.key = key;
  const focused = box.contains(document.activeElement) ? document.activeElement.dataset.only : undefined;
  box.replaceChildren(...all.map(([k, w, n]) => el('button', {
    type: 'button', className: 'chip', 'aria-pressed': String(view.only === k), 'data-only': k,
    onclick: () => { view.only = k; remember(); draw(); },
  }, k && !['pinned', 'free'].includes(k) ? mark(k) : '', w, el('span', { className: 'number', textContent: count(n) }))));
  if (focused !== undefined) box.querySelector(`[data-only="${focused}"]`)?.focus();
}

let said = '';
let saidAt = -Infinity;
/** announce tells screen readers how the group stands, not too often. */
function announce(text) {
  if (text === said || performance.now() - saidAt < 5000) return;
  said = text;
  saidAt = performance.now();
  set($('say'), text);
}

/** live says how old what is shown is. */
function live() {
  const age = times.read ? lasting(now() - times.read) : '';
  const [is, text] = times.hidden ? ['asleep', 'Asleep while hidden']
    : times.away ? ['away', age ? `As of ${age} ago` : 'Not connected']
      : state.error ? ['away', age ? `As of ${age} ago` : 'Store not readable']
        : state.head ? ['live', 'Live'] : ['new', 'Connecting'];
  $('live').dataset.is = is;
  set($('live-text'), text);
  const why = times.away ? `The page’s server does not answer: ${times.away}` : state.error ? `The store could not be read: ${state.error}` : '';
  const alarm = $('alarm');
  set(alarm, why ? `${shown(why)}. ${times.read ? 'What is shown is the last that was seen.' : ''}` : ''); // its age would be read out each second
  alarm.hidden = !why;
}

function choose(group) {
  stop();
  view.group = group;
  remember();
  state.clear();
  Object.assign(times, { read: 0, away: '', hidden: false });
  stop = follow(group, {
    have: () => state.version,
    message(m) {
      if (!state.merge(m)) state.version = '';
      draw();
    },
    times(t) {
      Object.assign(times, { offset: t.now - Date.now(), read: t.read, away: '', hidden: false });
      live();
    },
    away(err) {
      times.away = err.message || 'no answer';
      live();
    },
    hidden(is) {
      times.hidden = is;
      live();
    },
  });
  draw();
}

async function start() {
  try {
    const { body } = await ask('api/groups');
    groups = body.groups;
    $('unlock').hidden = !body.writable;
    if (!groups.length) throw new Error('the store has no groups yet');
  } catch (err) {
    times.away = err.message;
    live();
    setTimeout(start, 3000);
    return;
  }
  const pick = $('group');
  pick.replaceChildren(...groups.map((g) => el('option', { value: g, textContent: shown(g) })));
  if (view.group && !groups.includes(view.group)) pick.prepend(el('option', { value: view.group, textContent: shown(view.group) }));
  choose(view.group || groups[0]);
  pick.value = view.group;
  pick.onchange = () => choose(pick.value);
}

$('query').value = view.query;
$('order').value = view.order;
$('query').addEventListener('input', (e) => { view.query = e.target.value; remember(); draw(); });
$('order').addEventListener('change', (e) => { view.order = e.target.value; remember(); draw(); });
$('filter').addEventListener('submit', (e) => { e.preventDefault(); $('list').focus(); });
$('whole').onclick = () => details.group();
document.addEventListener('keydown', (e) => {
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName) || document.querySelector('dialog[open]');
  if (e.key === '/' && !typing && !e.ctrlKey && !e.metaKey) {
    e.preventDefault();
    $('query').focus();
  }
});
setInterval(() => {
  if (document.visibilityState !== 'visible') return;
  live();
  list.tick();
}, 1000);
start();
