// The list of resources. Only the rows that can be seen exist; the keyboard moves a mark along them.
import { el, name, mark, set, count, lasting, shown } from './text.js';
import { word, kindOf, markOf } from './state.js';

const spare = 6; // rows beyond the edges

export class List {
  constructor(on) {
    this.on = on;
    this.box = document.getElementById('list');
    this.rows = document.getElementById('rows');
    this.none = document.getElementById('none');
    this.items = [];
    this.pool = [];
    this.active = 0;
    this.box.addEventListener('scroll', () => this.schedule(), { passive: true });
    this.box.addEventListener('keydown', (e) => this.key(e));
    this.box.addEventListener('focus', () => this.schedule());
    this.box.addEventListener('blur', () => this.schedule());
    new ResizeObserver(() => this.schedule()).observe(this.box);
  }

  /** show takes over a list; the mark stays on the resource that it was on. */
  show(items, lag) {
    const marked = this.items[this.active]?.name;
    this.items = items;
    const at = marked === undefined ? -1 : items.findIndex((r) => r.name === marked);
    this.active = at >= 0 ? at : Math.min(this.active, Math.max(0, items.length - 1));
    this.box.classList.toggle('with-lag', lag);
    this.box.previousElementSibling.classList.toggle('with-lag', lag);
    this.box.hidden = !items.length;
    this.none.hidden = !!items.length;
    this.box.setAttribute('aria-rowcount', items.length);
    this.schedule();
  }

  schedule() {
    this.frame ??= requestAnimationFrame(() => { this.frame = undefined; this.render(); });
  }

  height() {
    return parseFloat(getComputedStyle(this.box).getPropertyValue('--row')) || 36;
  }

  render() {
    const h = this.height();
    const first = Math.max(0, Math.floor(this.box.scrollTop / h) - spare);
    const last = Math.min(this.items.length, Math.ceil((this.box.scrollTop + this.box.clientHeight) / h) + spare);
    this.rows.style.height = this.items.length * h + 'px';
    while (this.pool.length < last - first) this.pool.push(this.row());
    while (this.pool.length > Math.max(0, last - first)) this.pool.pop().line.remove();
    for (let i = first; i < last; i++) this.fill(this.pool[i - first], i, h);
    const on = this.pool.find((p) => p.at === this.active);
    if (on) this.box.setAttribute('aria-activedescendant', on.line.id);
    else this.box.removeAttribute('aria-activedescendant');
  }

  row() {
    const p = {};
    p.state = el('span', { className: 'cell state', role: 'gridcell' });
    p.name = el('span', { className: 'cell what', role: 'gridcell' });
    p.node = el('span', { className: 'cell where', role: 'gridcell' });
    p.since = el('span', { className: 'cell since right', role: 'gridcell' });
    p.lag = el('span', { className: 'cell lag right', role: 'gridcell' });
    p.notes = el('span', { className: 'cell notes', role: 'gridcell' });
    p.line = el('div', { role: 'row', className: 'row' }, p.state, p.name, p.node, p.since, p.lag, p.notes);
    p.line.onclick = () => { this.active = p.at; this.schedule(); this.on.resource(this.items[p.at].name); };
    this.rows.append(p.line);
    return p;
  }

  fill(p, i, h) {
    const r = this.items[i];
    p.line.style.transform = `translateY(${i * h}px)`;
    if (p.at !== i) {
      p.at = i;
      p.line.id = 'row-' + i;
      p.line.setAttribute('aria-rowindex', i + 1);
    }
    p.line.classList.toggle('active', i === this.active && document.activeElement === this.box);
    if (p.of !== r) {
      p.of = r;
      p.line.classList.toggle('bad', !!r.trouble);
      p.state.replaceChildren(mark(markOf(r)), word[kindOf(r)]);
      p.name.replaceChildren(name(r.name));
      p.name.title = shown(r.name);
      p.node.replaceChildren(...where(r));
      set(p.lag, r.lag === undefined ? '–' : count(r.lag));
      p.notes.replaceChildren(...notes(r));
      p.notes.title = shown(r.reason || '');
    }
    this.age(p);
  }

  age(p) {
    set(p.since, p.of.since ? lasting(this.on.now() - p.of.since) : '–');
  }

  /** tick lets the durations grow. */
  tick() {
    for (const p of this.pool) this.age(p);
  }

  key(e) {
    const page = Math.max(1, Math.floor(this.box.clientHeight / this.height()) - 1);
    const step = {
      ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -this.items.length, End: this.items.length,
    }[e.key];
    if (e.key === 'Enter' && this.items[this.active]) {
      e.preventDefault();
      this.on.resource(this.items[this.active].name);
    }
    if (step === undefined) return;
    e.preventDefault();
    this.active = Math.min(this.items.length - 1, Math.max(0, this.active + step));
    const h = this.height();
    const top = this.active * h;
    if (top < this.box.scrollTop) this.box.scrollTop = top;
    if (top + h > this.box.scrollTop + this.box.clientHeight) this.box.scrollTop = top + h - this.box.clientHeight;
    this.schedule();
  }
}

/** where says who holds a resource, and who is to. */
export function where(r) {
  if (r.owner && r.next) return [name(r.owner), ' → ', name(r.next)];
  if (r.owner) return [name(r.owner)];
  if (r.next) return ['→ ', name(r.next)];
  return ['–'];
}

export function notes(r) {
  const list = [];
  const add = (...parts) => { if (list.length) list.push(' · '); list.push(...parts); };
  if (r.pinned) add('pinned to ', name(r.pinned));
  if (r.move) add('to be moved to ', name(r.move));
  if (r.reason) add(el('span', { className: 'reason', textContent: shown(r.reason) }));
  return list;
}
