// The dialogs: all that is known of a resource, a node or the group, and what can be changed about it by those who have the token.
import { el, name, mark, count, many, lasting, clock, shown } from './text.js';
import { word, kindOf, markOf } from './state.js';
import { where } from './list.js';
import { signs } from './overview.js';
import { ask } from './follow.js';

const $ = (id) => document.getElementById(id);

export class Details {
  constructor(on) {
    this.on = on; // state(), group(), now(), show(only, query)
    this.token = '';
    this.box = $('details');
    this.box.addEventListener('close', () => { this.open = undefined; });
    this.box.addEventListener('click', (e) => { if (e.target === this.box) this.box.close(); });
    $('unlock').onclick = () => this.unlock();
    $('key-cancel').onclick = () => $('key').close();
    $('key-form').onsubmit = (e) => {
      e.preventDefault();
      this.token = $('token').value;
      $('token').value = '';
      $('key').close();
      this.unlocked();
    };
  }

  unlock() {
    if (this.token) this.token = '';
    else $('key').showModal();
    this.unlocked();
  }

  unlocked() {
    $('unlock').textContent = this.token ? 'Lock changes' : 'Unlock changes';
    document.documentElement.classList.toggle('unlocked', !!this.token);
    this.render(true);
  }

  resource(n) { this.start({ kind: 'resource', name: n }); }
  node(n) { this.start({ kind: 'node', name: n }); }
  group() { this.start({ kind: 'group', name: this.on.group() }); }

  start(what) {
    this.open = what;
    $('details-result').textContent = '';
    this.render(true);
    if (!this.box.open) this.box.showModal();
  }

  /** render shows the dialog again, unless nothing has changed or somebody is about to choose something in it. */
  render(always) {
    if (!this.open) return;
    const state = this.on.state();
    const { kind, name: n } = this.open;
    const it = kind === 'resource' ? state.resources.get(n) : kind === 'node' ? state.nodes.get(n) || { name: n } : state.head;
    const key = JSON.stringify(it) + (kind === 'node' ? (state.byOwner.get(n) || []).length : '');
    if (!always && (key === this.key || this.box.contains(document.activeElement) && document.activeElement.tagName === 'SELECT')) return;
    this.key = key;
    const focused = document.activeElement?.dataset?.do;
    $('details-title').replaceChildren(kind === 'resource' && it ? mark(markOf(it)) : '', name(n));
    const body = !it ? [el('p', { textContent: 'It is not there any more.' })]
      : kind === 'resource' ? this.ofResource(it, state) : kind === 'node' ? this.ofNode(it, state) : this.ofGroup(it, state);
    $('details-body').replaceChildren(...body);
    if (focused) $('details-body').querySelector(`[data-do="${focused}"]`)?.focus();
  }

  ofResource(r, state) {
    const facts = [
      ['State', word[kindOf(r)] + (r.state === 'held' && r.paused ? ', claim kept' : '')],
      ['Node', where(r)],
      r.since && [r.owner ? 'Held for' : 'So for', `${lasting(this.on.now() - r.since)}, since ${clock(r.since)}`],
      r.fence && ['Fence', r.fence], r.lag !== undefined && ['Lag', many(r.lag, 'message')],
      r.last && ['Last error', `${shown(r.last)} (${clock(r.lastAt)})`],
      r.pinned && ['Pinned to', [name(r.pinned)]], r.move && ['To be moved to', [name(r.move)]],
      r.weight && ['Weight', String(r.weight)], r.require && ['Requires', r.require.join(', ')], r.prefer && ['Prefers', r.prefer.join(', ')],
    ];
    const out = [table(facts)];
    if (r.reason) out.unshift(el('p', { className: r.trouble ? 'reason bad' : 'reason', textContent: shown(r.reason) }));
    if (!this.token) return out;
    const names = [r.name];
    const buttons = [];
    if (r.paused) buttons.push(this.button('Resume', { do: 'resume', names }));
    if (r.paused !== 'released') buttons.push(this.button('Pause', { do: 'pause', names }));
    if (r.paused !== 'kept') buttons.push(this.button('Pause, keep the claim', { do: 'pause-keep', names }));
    if (r.pinned) buttons.push(this.button('Unpin', { do: 'unpin', names }));
    out.push(el('div', { className: 'buttons' }, ...buttons));
    const nodes = state.sortedNodes.filter((n) => n.here);
    if (nodes.length) {
      const pick = el('select', {}, ...nodes.map((n) => el('option', { value: n.name, textContent: shown(n.name), selected: n.name === r.owner })));
      out.push(el('div', { className: 'buttons' }, el('label', {}, 'Node ', pick),
        this.button('Move there once', () => ({ do: 'move', names, node: pick.value })),
        this.button('Pin there', () => ({ do: 'pin', names, node: pick.value }))));
    }
    return out;
  }

  ofNode(n, state) {
    const list = state.byOwner.get(n.name) || [];
    const words = signs(n, state).map(([t]) => t).join(', ');
    const facts = [
      ['State', words || (n.here ? 'active' : 'no member')],
      ['Holds', count(list.length)], ['Should hold', count(n.assigned || 0)],
      n.until && ['Its share is kept', `for ${lasting(n.until - this.on.now())}, until ${clock(n.until)}`],
      n.max && ['At most', count(n.max)], n.priority && ['Priority', String(n.priority)], n.weight && ['Weight', String(n.weight)],
      n.here && ['Name', n.static ? 'static: it outlives its process' : 'new with each process'],
      n.version && ['Version', n.version],
      n.labels && ['Labels', Object.entries(n.labels).map(([k, v]) => `${k}=${v}`).sort().join(', ')],
    ];
    const out = [table(facts)];
    const buttons = [el('button', {
      type: 'button', textContent: 'Show its resources', onclick: () => { this.box.close(); this.on.show('', n.name); },
    })];
    if (this.token) {
      buttons.push(n.drained ? this.button('Undrain', { do: 'undrain', names: [n.name] })
        : this.button('Drain', { do: 'drain', names: [n.name] }, `Drain: others take ${many(list.length, 'resource')}`));
    }
    out.push(el('div', { className: 'buttons' }, ...buttons));
    return out;
  }

  ofGroup(h, state) {
    const buttons = [];
    if (h.paused) buttons.push(this.button('Resume the group', { do: 'resume-group' }));
    else buttons.push(this.button('Pause the group', { do: 'pause-group' }, `Stop the work on ${many(state.counts.all, 'resource')}`));
    if (h.coordinator) {
      buttons.push(this.button('Have the coordinator step down', { do: 'step-down' }, `Another node than ${shown(h.coordinator)} may coordinate then`));
    }
    return [el('div', { className: 'buttons' }, ...(this.token ? buttons : []))];
  }

  /** button asks for a change; with sure, it must be pressed twice. */
  button(text, what, sure) {
    const b = el('button', { type: 'button', textContent: text, className: 'main', 'data-do': text });
    let armed = !sure;
    b.onclick = () => {
      if (!armed) {
        armed = true;
        b.textContent = sure + '? Press again';
        return;
      }
      this.send(typeof what === 'function' ? what() : what, text);
    };
    return b;
  }

  async send(what, text) {
    const result = $('details-result');
    result.textContent = text + ' …';
    try {
      const { body } = await ask('api/do', {
        method: 'POST', headers: { 'Content-Type': 'application/json', Authorization: 'Bearer ' + this.token },
        body: JSON.stringify({ group: this.on.group(), ...what }), signal: AbortSignal.timeout(30000),
      });
      result.textContent = body.changed.length ? `${text}: done. The nodes follow.` : `${text}: it was so already.`;
    } catch (err) {
      result.textContent = `${text}: ${shown(err.message)}`;
      if (err.status === 401) { this.token = ''; this.unlocked(); }
    }
  }
}

function table(facts) {
  return el('dl', { className: 'table' }, ...facts.filter(Boolean).flatMap(([k, v]) => [
    el('dt', { textContent: k }), Array.isArray(v) ? el('dd', {}, ...v) : el('dd', { textContent: shown(v) })]));
}
