// What is known of a group, kept up to date with what changes.

const collator = new Intl.Collator('en', { numeric: true });
const byName = (a, b) => collator.compare(a.name, b.name);

/** kinds are the states in the order in which they are shown, with their words. */
export const kinds = [
  ['held', 'Held'],
  ['moving', 'Moving'],
  ['waiting', 'Waiting'],
  ['reserved', 'Reserved'],
  ['paused', 'Paused'],
  ['unshared', 'Unshared'],
  ['absent', 'Absent'],
];
export const word = Object.fromEntries(kinds);

/** kindOf is the state of a resource as it is shown: one that is paused with its claim is shown as paused. */
export function kindOf(r) {
  return r.state === 'held' && r.paused ? 'paused' : r.state;
}

/** markOf is the sign of it; trouble comes first. */
export const markOf = (r) => (r.trouble ? 'trouble' : kindOf(r));

export class State {
  constructor() {
    this.clear();
  }

  clear() {
    this.version = '';
    this.error = '';
    this.head = null;
    this.nodes = new Map();
    this.resources = new Map();
    this.history = [];
    this.sortedNodes = [];
    this.sorted = [];
    this.counts = {};
    this.byOwner = new Map();
  }

  /** merge takes over what came; false: it does not fit what is here, and all must be asked for. */
  merge(m) {
    if (m.since && m.since !== this.version) return false;
    if (!m.since) {
      this.nodes.clear();
      this.resources.clear();
    }
    const nodes = mergeRows(this.nodes, m.nodes, m.nodesGone);
    const resources = mergeRows(this.resources, m.resources, m.resourcesGone);
    if (nodes || !m.since) this.sortedNodes = [...this.nodes.values()].sort(byName);
    else refresh(this.sortedNodes, this.nodes);
    if (resources || !m.since) this.sorted = [...this.resources.values()].sort(byName);
    else refresh(this.sorted, this.resources);
    this.version = m.version;
    this.error = m.error || '';
    if (m.head) this.head = m.head;
    if (m.history) this.history = m.history;
    this.sum();
    return true;
  }

  /** sum counts by state and gathers by owner. */
  sum() {
    this.counts = { all: this.sorted.length, trouble: 0, pinned: 0, free: 0 };
    for (const [k] of kinds) this.counts[k] = 0;
    this.byOwner = new Map();
    for (const r of this.sorted) {
      this.counts[kindOf(r)]++;
      if (r.trouble) this.counts.trouble++;
      if (r.pinned) this.counts.pinned++;
      if (!r.owner) this.counts.free++;
      const at = r.owner || '';
      const list = this.byOwner.get(at);
      if (list) list.push(r);
      else this.byOwner.set(at, [r]);
    }
  }
}

/** mergeRows reports whether names came or went. */
function mergeRows(map, rows, gone) {
  let other = false;
  for (const row of rows) {
    other ||= !map.has(row.name);
    map.set(row.name, row);
  }
  for (const name of gone || []) other = map.delete(name) || other;
  return other;
}

function refresh(sorted, map) {
  for (let i = 0; i < sorted.length; i++) sorted[i] = map.get(sorted[i].name);
}

const orders = {
  node: (a, b) => collator.compare(a.owner || a.next || '', b.owner || b.next || ''),
  newest: (a, b) => (b.since || 0) - (a.since || 0),
  oldest: (a, b) => (a.since || Infinity) - (b.since || Infinity),
  lag: (a, b) => (b.lag ?? -1) - (a.lag ?? -1),
};

/** select picks resources by state and words, each of which must occur, and sorts them. */
export function select(state, { query, only, order }) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const special = { trouble: (r) => r.trouble, pinned: (r) => r.pinned, free: (r) => !r.owner };
  const fits = (r) => {
    if (only && !(special[only] ? special[only](r) : kindOf(r) === only)) return false;
    if (!words.length) return true;
    const text = `${r.name}\n${r.owner || ''}\n${r.next || ''}\n${r.pinned || ''}\n${kindOf(r)}\n${r.reason || ''}`.toLowerCase();
    return words.every((w) => text.includes(w));
  };
  const list = only || words.length ? state.sorted.filter(fits) : state.sorted.slice();
  return orders[order] ? list.sort(orders[order]) : list; // the sort is stable: by name where equal
}
