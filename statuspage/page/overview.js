// The upper part of the page: how the group stands, what needs attention, and the nodes with their resources.
import { el, name, mark, set, count, many, lasting, clock, shown } from './text.js';
import { kinds, word, markOf, kindOf } from './state.js';
import { sizeFor, draw, colours } from './tiles.js';

const $ = (id) => document.getElementById(id);

/** sentence says in one line how the group stands. */
function sentence(state) {
  const { counts: c, sortedNodes } = state;
  const here = sortedNodes.filter((n) => n.here).length;
  if (!state.head) return state.error ? 'Nothing was read yet' : 'Reading …';
  if (!c.all) return `${many(here, 'node')}, no resources`;
  const held = c.held + c.moving + state.sorted.reduce((n, r) => n + (r.state === 'held' && r.paused ? 1 : 0), 0);
  const by = `${many(here, 'node')}`;
  const what = held === c.all ? (c.all === 1 ? 'The resource is' : `All ${count(c.all)} resources are`) : `${count(held)} of ${many(c.all, 'resource')} ${held === 1 ? 'is' : 'are'}`;
  const more = [];
  if (c.moving + c.waiting) more.push(`${count(c.moving + c.waiting)} on the way`);
  if (c.paused) more.push(`${count(c.paused)} paused`);
  const late = sortedNodes.filter((n) => n.late).length;
  if (late) more.push(`${many(late, 'node')} not heard of`);
  if (c.trouble) more.push(`${count(c.trouble)} ${c.trouble === 1 ? 'needs' : 'need'} attention`);
  return `${what} held by ${by}${more.length ? '; ' + more.join(', ') : ''}`;
}

export function summary(state) {
  const text = sentence(state);
  set($('sentence'), text);
  const bar = $('bar');
  const parts = kinds.filter(([k]) => state.counts[k]);
  const key = parts.map(([k]) => k + state.counts[k]).join();
  if (bar.dataset.key !== key) {
    bar.dataset.key = key;
    bar.replaceChildren(...parts.map(([k]) => {
      const part = el('span', { className: 'fill ' + k });
      part.style.flexGrow = state.counts[k];
      return part;
    }));
  }
  facts(state);
  return text;
}

function facts(state) {
  const h = state.head;
  if (!h) return;
  const list = [
    ['Coordinator', h.coordinator || 'none'], ['Generation', h.generation || '–'], ['Time to live', lasting(h.ttl)],
    h.barrier && ['Barrier', h.barrier], h.maxActive && ['Active at most', many(h.maxActive, 'node')],
    h.pending && ['To move later', many(h.pending, 'resource')],
    h.paused && ['Whole group', h.paused === 'kept' ? 'paused, claims kept' : 'paused'],
  ].filter(Boolean);
  const box = $('facts');
  const key = JSON.stringify(list);
  if (box.dataset.key === key) return;
  box.dataset.key = key;
  box.replaceChildren(...list.map(([k, v]) => el('div', { className: k === 'Whole group' ? 'strong' : '' },
    el('dt', { textContent: k }), el('dd', { textContent: shown(v) }))));
}

const mostProblems = 8;

/** told parts a reason into the node that tells it, if one does, and the rest. */
function told(r) {
  const reason = r.reason || word[r.state];
  for (const n of [r.owner, r.next]) if (n && reason.startsWith(n + ': ')) return [n, reason.slice(n.length + 2)];
  return ['', reason];
}

/** problems gathers what needs attention by its reason. */
function problems(state) {
  const all = new Map();
  const add = (key, item) => { if (!all.has(key)) all.set(key, item); return all.get(key); };
  for (const n of state.sortedNodes) {
    if (n.late) add('late ' + n.name, { node: n, names: [], text: 'has not been heard of; what it holds goes to others when its session ends' });
  }
  for (const r of state.sorted) {
    if (!r.trouble) continue;
    const [node, text] = told(r);
    const p = add(text + '\n' + r.state, { names: [], nodes: new Set(), text });
    p.names.push(r.name);
    if (node) p.nodes.add(node);
  }
  return [...all.values()];
}

export function attention(state, on) {
  const list = problems(state);
  $('attention').hidden = !list.length;
  const box = $('problems');
  const key = JSON.stringify(list.map((p) => [p.node?.name, p.names.length, p.names[0], p.text]));
  if (box.dataset.key === key) return;
  box.dataset.key = key;
  const items = list.slice(0, mostProblems).map((p) => {
    if (p.node) {
      return el('li', {}, mark('trouble'), el('p', {}, name(p.node.name), ` ${p.text}`),
        el('button', { type: 'button', textContent: 'Look', onclick: () => on.node(p.node.name) }));
    }
    const one = p.names.length === 1;
    return el('li', {}, mark('trouble'),
      el('p', {}, one ? name(p.names[0]) : el('strong', { textContent: many(p.names.length, 'resource') }),
        p.nodes.size === 1 ? el('span', {}, 'on ', name([...p.nodes][0])) : p.nodes.size ? `on ${many(p.nodes.size, 'node')}` : '',
        el('span', { className: 'reason', textContent: shown(p.text) })),
      el('button', {
        type: 'button', textContent: one ? 'Look' : 'Show', 'aria-label': one ? `Look at ${shown(p.names[0])}` : `Show these ${p.names.length} resources`,
        onclick: () => (one ? on.resource(p.names[0]) : on.show('trouble', p.text)),
      }));
  });
  if (list.length > mostProblems) {
    items.push(el('li', {}, mark('trouble'), el('p', { textContent: `and ${list.length - mostProblems} more reasons` }),
      el('button', { type: 'button', textContent: 'Show all', onclick: () => on.show('trouble', '') })));
  }
  box.replaceChildren(...items);
}

/** signs are the words that stand beside a node's name. */
export function signs(n, state) {
  const list = [];
  if (state.head?.coordinator === n.name) list.push(['coordinator', 'plain']);
  if (n.late) list.push(['not heard of', 'bad']);
  if (n.leaving) list.push(['leaving', 'warn']);
  if (n.drained) list.push([n.here ? 'drained' : 'drained, away', 'warn']);
  else if (n.draining) list.push(['draining', 'warn']);
  if (n.standby) list.push(['standby', 'plain']);
  if (n.until) list.push(['left', 'warn']);
  return list;
}

const few = () => (matchMedia('(max-width: 700px)').matches ? 24 : 120);

/** Nodes shows the nodes as cards whose canvases it draws again only when something changed. */
export class Nodes {
  constructor(on) {
    this.on = on;
    this.cards = new Map();
    this.all = false;
    this.box = $('nodes');
    this.more = $('more-nodes');
    this.more.onclick = () => { this.all = !this.all; on.changed(); };
    this.redraw = true;
    new ResizeObserver(() => { if (this.width !== this.box.clientWidth) { this.redraw = true; on.changed(); } }).observe(this.box);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { this.redraw = true; on.changed(); });
    this.box.addEventListener('keydown', (e) => this.key(e));
  }

  render(state) {
    const rows = state.sortedNodes.slice();
    const nobodys = state.byOwner.get('') || [];
    if (nobodys.length) rows.push({ name: '', nobody: true });
    for (const [owner, list] of state.byOwner) { // holders that are no members any more
      if (owner && !state.nodes.has(owner)) rows.push({ name: owner, stranger: true, holds: list.length });
    }
    const shownRows = this.all ? rows : rows.slice(0, few());
    this.more.hidden = rows.length <= few();
    set(this.more, this.all ? 'Show fewer nodes' : `Show all ${count(rows.length)} nodes`);
    const fresh = new Map();
    for (const n of shownRows) fresh.set(n.name, this.cards.get(n.name) || this.card(n));
    for (const [k, c] of this.cards) if (!fresh.has(k)) c.item.remove();
    this.cards = fresh;
    let at = this.box.firstElementChild;
    for (const c of fresh.values()) {
      if (c.item !== at) this.box.insertBefore(c.item, at);
      else at = at.nextElementSibling;
    }
    this.rove();
    this.size(state, shownRows);
    for (const n of shownRows) this.fill(fresh.get(n.name), n, state);
    this.redraw = false;
  }

  size(state, rows) {
    if (this.redraw) {
      this.width = this.box.clientWidth;
      this.inner = this.cards.values().next().value?.strip.clientWidth || 200;
      this.colour = colours();
    }
    const most = Math.max(1, ...rows.map((n) => (n.nobody ? 0 : (state.byOwner.get(n.name) || []).length)));
    const size = sizeFor(most, this.inner);
    if (size !== this.tile) { this.tile = size; this.redraw = true; }
  }

  card(n) {
    const c = { marks: '' };
    c.canvas = el('canvas', { 'aria-hidden': 'true' });
    c.strip = el('span', { className: 'strip' }, c.canvas);
    c.signs = el('span', { className: 'signs' });
    c.number = el('span', { className: 'number' });
    c.name = n.nobody ? el('span', { className: 'name quiet', textContent: 'held by nobody' }) : name(n.name);
    c.button = el('button', { type: 'button', className: 'node', tabIndex: -1 }, el('span', { className: 'top' }, c.name, c.number, c.signs), c.strip);
    c.button.onclick = (e) => {
      const r = e.target === c.canvas && c.list?.[c.at(e.offsetX, e.offsetY)];
      if (r) this.on.resource(r.name);
      else if (n.nobody) this.on.show('free', '');
      else this.on.node(n.name);
    };
    c.canvas.onmousemove = (e) => {
      const r = c.list?.[c.at(e.offsetX, e.offsetY)];
      c.canvas.title = r ? `${shown(r.name)} · ${word[kindOf(r)]}${r.reason ? ' · ' + shown(r.reason) : ''}` : '';
    };
    c.item = el('li', {}, c.button);
    return c;
  }

  fill(c, n, state) {
    const list = state.byOwner.get(n.name) || [];
    const words = n.nobody ? [] : n.stranger ? [['no member', 'bad']] : signs(n, state);
    const key = JSON.stringify(words);
    if (c.key !== key) {
      c.key = key;
      c.signs.replaceChildren(...words.map(([t, k]) => el('span', { className: 'sign ' + k, textContent: t })));
      c.item.className = words.some(([, k]) => k === 'bad') ? 'bad' : n.here || n.nobody ? '' : 'away';
    }
    const holds = list.length;
    const should = n.assigned || 0;
    set(c.number, n.nobody || n.stranger || holds === should ? count(holds) : `${count(holds)} → ${count(should)}`);
    const label = n.nobody ? `Held by nobody: ${many(holds, 'resource')}`
      : `${shown(n.name)}: holds ${many(holds, 'resource')}${holds === should ? '' : `, should hold ${count(should)}`}${words.length ? ', ' + words.map(([t]) => t).join(', ') : ''}`;
    if (c.button.getAttribute('aria-label') !== label) c.button.setAttribute('aria-label', label);
    c.list = list;
    const marks = list.map(markOf);
    const drawn = marks.join();
    if (this.redraw || c.marks !== drawn) {
      c.marks = drawn;
      c.at = draw(c.canvas, marks, this.inner, n.nobody ? Math.min(this.tile, sizeFor(list.length, this.inner)) : this.tile, this.colour);
    }
  }

  /** rove keeps one card in the order of the Tab key; arrows lead to the others. */
  rove() {
    const buttons = [...this.cards.values()].map((c) => c.button);
    if (!buttons.some((b) => b.tabIndex === 0) && buttons[0]) buttons[0].tabIndex = 0;
  }

  key(e) {
    const buttons = [...this.cards.values()].map((c) => c.button);
    const i = buttons.indexOf(document.activeElement);
    const top = buttons[0]?.offsetTop;
    const across = Math.max(1, buttons.filter((b) => b.parentElement.offsetTop === buttons[0].parentElement.offsetTop).length);
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: across, ArrowUp: -across, Home: -i, End: buttons.length - 1 - i }[e.key];
    if (i < 0 || step === undefined || top === undefined) return;
    e.preventDefault();
    const next = buttons[Math.min(buttons.length - 1, Math.max(0, i + step))];
    buttons[i].tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }
}

const verbs = {
  rebalance: 'Rebalance', create: 'Group created', settings: 'Settings changed', register: 'Resources added', remove: 'Resources removed',
  weight: 'Weight changed', pause: 'Paused', resume: 'Resumed', pin: 'Pinned', unpin: 'Unpinned', move: 'Move asked for', drain: 'Drained',
  undrain: 'Undrained', evict: 'Evicted', 'step-down': 'Coordinator stepped down', reset: 'Checkpoints reset', delete: 'Group deleted',
};

/** history shows the last changes. */
export function history(state) {
  const list = state.history || [];
  $('past').hidden = !list.length;
  const box = $('history');
  const key = list.length + JSON.stringify(list[0]);
  if (box.dataset.key === key) return;
  box.dataset.key = key;
  box.replaceChildren(...list.map((h) => el('li', {},
    el('time', { textContent: clock(h.at), dateTime: new Date(h.at).toISOString() }),
    el('div', {},
      el('p', {}, el('strong', { textContent: verbs[h.kind] || shown(h.kind) }), h.detail ? ` ${shown(h.detail)}` : '',
        el('span', { className: 'quiet', textContent: [h.generation && `generation ${h.generation}`, h.actor && `by ${shown(h.actor)}`]
          .filter(Boolean).map((t) => ' · ' + t).join('') })),
      h.reason ? el('p', { className: 'reason', textContent: shown(h.reason) }) : '',
      ...(h.parts || []).map((p) => el('p', {}, ...names(p), ...way(p, h.kind))),
      h.more ? el('p', { className: 'quiet', textContent: `and ${count(h.more)} more` }) : ''))));
}

function way(p, kind) {
  if (p.nodes || kind !== 'rebalance' && !p.to) return [];
  const to = p.to ? name(p.to) : 'nobody';
  return kind === 'rebalance' ? [el('span', { className: 'quiet', textContent: ' from ' }), p.from ? name(p.from) : 'nobody', el('span', { className: 'quiet', textContent: ' to ' }), to]
    : [el('span', { className: 'quiet', textContent: ' to ' }), to];
}

function names(p) {
  const list = p.names.flatMap((n, i) => (i ? [', ', name(n)] : [name(n)]));
  if (p.count > p.names.length) list.push(` and ${count(p.count - p.names.length)} more`);
  return list;
}
