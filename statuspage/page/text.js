// Text and elements. What comes from the store is put in as text alone, never as markup.

const odd = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])/g;

/** shown makes characters visible that would hide, or turn round what stands beside them. */
export function shown(text) {
  return String(text).replace(odd, (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));
}

/** el makes an element. Properties that begin with aria- or data-, and role, become attributes. */
export function el(tag, props = {}, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(props)) {
    if (v === undefined || v === false) continue;
    if (k.startsWith('aria-') || k.startsWith('data-') || k === 'role') e.setAttribute(k, v);
    else e[k] = v;
  }
  e.append(...children.filter((c) => c !== undefined && c !== null && c !== ''));
  return e;
}

/** name shows the name of a node or resource, whatever direction its script has. */
export function name(text) {
  return el('bdi', { className: 'name', textContent: shown(text) });
}

/** mark is the sign of a state. */
export function mark(kind) {
  return el('i', { className: 'mark ' + kind, 'aria-hidden': 'true' });
}

/** set changes a text only where it differs, so that selections and readers are not disturbed. */
export function set(e, text) {
  if (e.textContent !== text) e.textContent = text;
}

const number = new Intl.NumberFormat('en');
export const count = (n) => number.format(n);
export const many = (n, what) => `${count(n)} ${what}${n === 1 ? '' : 's'}`;

/** lasting is a time in milliseconds, in the two units that matter. */
export function lasting(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} m ${String(s % 60).padStart(2, '0')} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${String(Math.floor(s / 60) % 60).padStart(2, '0')} m`;
  return `${Math.floor(s / 86400)} d ${Math.floor(s / 3600) % 24} h`;
}

/** clock is a moment for people. */
export function clock(ms) {
  return new Date(ms).toLocaleString('sv');
}
