// Draws the resources of a node as small tiles, one each: states differ by shape as well as by colour.

const sizes = [11, 8, 6, 4, 3];
const tallest = 46; // of the tiles of a node, in pixels

/** sizeFor is the largest tile of which so many fit. */
export function sizeFor(most, width) {
  for (const s of sizes) {
    const each = s + gap(s);
    if (Math.ceil(most / Math.max(1, Math.floor(width / each))) * each <= tallest) return s;
  }
  return sizes[sizes.length - 1];
}

const gap = (s) => (s > 4 ? 2 : 1);

/** colours are those of the style sheet, which differ by light and dark. */
export function colours() {
  const style = getComputedStyle(document.documentElement);
  const get = (n) => style.getPropertyValue('--' + n).trim();
  const all = {};
  for (const n of ['held', 'moving', 'waiting', 'reserved', 'paused', 'unshared', 'absent', 'trouble']) all[n] = get(n);
  return all;
}

const shapes = {
  held: (c, x, y, s) => c.fillRect(x, y, s, s),
  moving: (c, x, y, s) => polygon(c, [[x, y], [x + s, y + s / 2], [x, y + s]]),
  waiting: (c, x, y, s) => frame(c, x, y, s),
  reserved: (c, x, y, s) => { frame(c, x, y, s); if (s > 6) c.fillRect(x + s / 2 - 1, y + s / 2 - 1, 2, 2); },
  paused: (c, x, y, s) => { const w = Math.max(1, Math.floor(s / 3)); c.fillRect(x, y, w, s); c.fillRect(x + s - w, y, w, s); },
  unshared: (c, x, y, s) => polygon(c, [[x + s / 2, y], [x + s, y + s], [x, y + s]]),
  absent: (c, x, y, s) => c.fillRect(x, y + s / 2 - 1, s, 2),
  trouble: (c, x, y, s) => polygon(c, [[x + s / 2, y - 1], [x + s + 1, y + s / 2], [x + s / 2, y + s + 1], [x - 1, y + s / 2]]),
};

function frame(c, x, y, s) {
  c.lineWidth = s > 6 ? 1.5 : 1;
  c.strokeRect(x + c.lineWidth / 2, y + c.lineWidth / 2, s - c.lineWidth, s - c.lineWidth);
}

function polygon(c, points) {
  c.beginPath();
  for (const [x, y] of points) c.lineTo(x, y);
  c.closePath();
  c.fill();
}

/** draw draws the marks of resources on a canvas of this width, and makes it as high as they need. */
export function draw(canvas, marks, width, size, colour) {
  const each = size + gap(size);
  const columns = Math.max(1, Math.floor(width / each));
  const height = Math.max(1, Math.ceil(marks.length / columns)) * each;
  const ratio = devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  canvas.style.width = width + 'px';
  canvas.style.height = height + 'px';
  const c = canvas.getContext('2d');
  c.scale(ratio, ratio);
  marks.forEach((m, i) => {
    c.fillStyle = c.strokeStyle = colour[m];
    shapes[m](c, (i % columns) * each, Math.floor(i / columns) * each, size);
  });
  return (x, y) => Math.floor(y / each) * columns + Math.min(columns - 1, Math.floor(x / each));
}
