// SPDX-License-Identifier: Apache-2.0
//
// The model: a layer of each kind drawn to scale, and layers against passes, tinted by how long they
// took. The second is a canvas, since it has thousands of cells.
const kLayerWidth = 1160;
const kLayerBar = 40;
const kMostPasses = 6;
const kMapLeft = 40;
const kMapBottom = 18;

// Kernels of a block in their order; those of one part and family that follow each other are one piece.
function piecesOf(parts) {
  const pieces = [];
  for (const part of parts) {
    const last = pieces[pieces.length - 1];
    if (last && last.part === part.part && last.family === part.family) {
      last.time += part.median_ns;
      last.kernels.push(part);
    } else {
      pieces.push({ part: part.part, family: part.family, time: part.median_ns, kernels: [part] });
    }
  }
  return pieces;
}

function layerPicture(pieces, perNs, label) {
  const whole = pieces.reduce((sum, piece) => sum + piece.time, 0);
  const picture = svg('svg', { class: 'chart layer', role: 'img', 'aria-label': label });
  const ends = [];  // of the rows of labels below
  const below = [];
  let x = 0;
  for (const piece of pieces) {
    const width = piece.time * perNs;
    const [name, time] = [printable(piece.part), duration(piece.time)];
    const lines = () => [`${name}: ${time}, ${fraction(piece.time / Math.max(whole, 1))} of the layer`, `family ${printable(piece.family)}`,
      ...piece.kernels.slice(0, 6).map((kernel) => `${duration(kernel.median_ns)} ${middleCut(printable(kernel.short_name), 90)}`),
      piece.kernels.length > 6 ? `and ${piece.kernels.length - 6} more` : ''];
    picture.append(svg('rect', { class: 'piece', color: familyColour(piece.family), x, y: 0, width: Math.max(width, 0.5), height: kLayerBar, ...noted(lines) }));
    const fits = (text) => text.length * 6.4 + 8 <= width;
    if (fits(name)) {
      picture.append(svg('text', { class: 'inside', x: x + width / 2, y: fits(time) ? 17 : 24, 'text-anchor': 'middle' }, name));
      if (fits(time)) picture.append(svg('text', { class: 'inside', x: x + width / 2, y: 31, 'text-anchor': 'middle' }, time));
    } else {
      const text = `${name} ${time}`;
      const long = text.length * 6.6;
      const from = Math.max(0, Math.min(x + width / 2 - 4, kLayerWidth - long));
      let row = ends.findIndex((end) => end + 10 <= from);
      if (row < 0) row = ends.length;
      if (row < 5) {
        ends[row] = from + long;
        below.push([x + width / 2, from, row, text]);
      }
    }
    x += width;
  }
  // Lines first: labels stand over them.
  for (const [middle, , row] of below) picture.append(svg('line', { class: 'grid', x1: middle, x2: middle, y1: kLayerBar, y2: kLayerBar + 8 + row * 15 }));
  for (const [, from, row, text] of below) picture.append(svg('text', { class: 'below', x: from, y: kLayerBar + 18 + row * 15 }, text));
  picture.setAttribute('viewBox', `0 0 ${kLayerWidth} ${kLayerBar + 6 + ends.length * 15 + (ends.length ? 4 : 0)}`);
  return picture;
}

// One layer of each kind of a pass, on one scale.
function drawLayers(structure, place) {
  const pass = structure.passes[place];
  const blocks = new Map();
  for (const part of structure.parts) {
    const block = part.place.replace(/ \d+$/, '');
    if (part.pass !== pass.pass || !block.startsWith('layer')) continue;
    if (!blocks.has(block)) blocks.set(block, []);
    blocks.get(block).push(part);
  }
  const drawn = [...blocks].map(([block, parts]) => ({ block, pieces: piecesOf(parts), kernels: parts.length, time: parts.reduce((sum, part) => sum + part.median_ns, 0) }));
  const most = Math.max(1, ...drawn.map((one) => one.time));
  const box = el('div', null, el('h3', null, `One layer, ${printable(pass.pass)}`));
  for (const one of drawn) {
    const label = `${one.block}: ${one.kernels} kernels, ${duration(one.time)}`;
    box.append(el('p', { class: 'hint' }, label), el('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': label }, layerPicture(one.pieces, kLayerWidth / most, label)));
  }
  return box;
}

// Layers against passes of one GPU.
class LayerMap {
  constructor(map, timeline) {
    this.map = map;
    this.timeline = timeline;
    this.columns = map.number.length;
    this.canvas = el('canvas', { class: timeline ? 'layer-map jumps-there' : 'layer-map', role: 'img', 'aria-label': `Duration of ${map.layers} layers in ${this.columns} passes on ${map.device}` });
    this.box = el('div', { class: 'canvas-box' }, this.canvas);
    this.canvas.addEventListener('mousemove', (event) => {
      const cell = this.cellAt(event);
      if (cell) note.show(event, this.words(cell));
      else note.hide();
    });
    this.canvas.addEventListener('mouseleave', () => note.hide());
    this.canvas.addEventListener('click', (event) => {
      const cell = this.cellAt(event);
      if (cell) this.jump(cell);
    });
    new ResizeObserver(() => this.draw()).observe(this.box);
  }

  ratio(column, layer) {
    const at = column * this.map.layers + layer;
    const block = this.map.blocks[this.map.block[at]];
    return block && block.median_ns > 0 ? this.map.length[at] / block.median_ns : 1;
  }

  cellAt(event) {
    const column = Math.floor((event.offsetX - kMapLeft) / this.wide);
    const layer = Math.floor(event.offsetY / this.high);
    return column >= 0 && column < this.columns && layer >= 0 && layer < this.map.layers ? { column, layer } : null;
  }

  words({ column, layer }) {
    const at = column * this.map.layers + layer;
    const block = this.map.blocks[this.map.block[at]];
    return [`layer ${layer} of pass ${this.map.number[column]}`, `${duration(this.map.length[at])}, ${this.ratio(column, layer).toFixed(2)} times the median`,
      block ? `median of its kind: ${duration(block.median_ns)}` : '', this.timeline ? 'A click shows it in the timeline.' : ''];
  }

  jump({ column, layer }) {
    if (!this.timeline) return;
    const first = column * this.map.layers;
    let start = this.map.start[column];
    for (let i = 0; i < layer; i += 1) start += this.map.length[first + i];
    const length = Math.max(this.map.length[first + layer], 1);
    this.timeline.choose(this.map.device);
    this.timeline.show(start - length, start + 2 * length);
    document.getElementById('timeline').scrollIntoView();
  }

  // Cells that lose most against the median of their kind.
  worst(most) {
    const cells = [];
    for (let column = 0; column < this.columns; column += 1) {
      for (let layer = 0; layer < this.map.layers; layer += 1) {
        const ratio = this.ratio(column, layer);
        if (ratio >= 1.25) cells.push({ column, layer, ratio, extra: this.map.length[column * this.map.layers + layer] * (1 - 1 / ratio) });
      }
    }
    // Two of a pass: where all of its layers are slow, others are worth more.
    const taken = new Map();
    return cells.sort((a, b) => b.extra - a.extra).filter(({ column }) => {
      taken.set(column, (taken.get(column) || 0) + 1);
      return taken.get(column) <= 2;
    }).slice(0, most);
  }

  draw() {
    const width = this.box.getBoundingClientRect().width;
    if (width < kMapLeft + 20) return;
    const { layers } = this.map;
    this.wide = Math.min(36, (width - kMapLeft - 2) / this.columns);
    this.high = Math.min(14, Math.max(3, Math.floor(300 / layers)));
    const scale = window.devicePixelRatio || 1;
    const height = layers * this.high + kMapBottom;
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    this.canvas.style.height = `${height}px`;
    const context = this.canvas.getContext('2d');
    context.setTransform(scale, 0, 0, scale, 0, 0);
    const styles = getComputedStyle(document.documentElement);
    const colour = (name) => styles.getPropertyValue(name).trim() || '#888';
    const [more, less, even] = [colour('--bad'), colour('--accent'), colour('--shade')];
    const gap = this.wide > 5 && this.high > 5 ? 1 : 0;
    context.fillStyle = even;
    context.fillRect(kMapLeft, 0, this.columns * this.wide, layers * this.high);
    for (let column = 0; column < this.columns; column += 1) {
      for (let layer = 0; layer < layers; layer += 1) {
        const power = Math.log2(Math.max(this.ratio(column, layer), 1e-3));
        context.globalAlpha = Math.min(1, Math.abs(power)) ** 0.7;
        context.fillStyle = power > 0 ? more : less;
        context.fillRect(kMapLeft + column * this.wide, layer * this.high, this.wide - gap, this.high - gap);
      }
    }
    context.globalAlpha = 1;
    context.font = '11px system-ui, sans-serif';
    context.fillStyle = colour('--quiet');
    context.textBaseline = 'middle';
    context.textAlign = 'right';
    const step = Math.max(1, niceStep(Math.ceil(14 / this.high)));
    for (let layer = 0; layer < layers; layer += step) context.fillText(String(layer), kMapLeft - 6, Math.max(6, (layer + 0.5) * this.high));
    context.textAlign = 'left';
    context.textBaseline = 'alphabetic';
    const stride = Math.max(1, Math.ceil(56 / this.wide));
    for (let column = 0; column < this.columns; column += stride) context.fillText(String(this.map.number[column]), kMapLeft + column * this.wide, height - 4);
  }
}

function drawLayerMap(map, timeline) {
  const made = new LayerMap(map, timeline);
  const shown = map.passes === 1 ? 'there is one whole pass' : made.columns === map.passes ? `all ${map.passes} whole passes` : `${made.columns} of ${map.passes} whole passes, the slowest and evenly chosen ones`;
  const worst = made.worst(6);
  const jumps = timeline && worst.length ? el('div', { class: 'jumps' }, el('span', null, 'Outliers'),
    worst.map((cell) => el('button', { type: 'button', onclick: () => made.jump(cell) }, `layer ${cell.layer} of pass ${map.number[cell.column]}: ${cell.ratio.toFixed(1)} times`))) : '';
  return { made, nodes: [
    el('p', { class: 'hint' }, `${printable(map.pass)} on ${map.device}: rows are layers, columns are passes by number; ${shown}.`), made.box, jumps] };
}

// The scale of the tints.
function mapScale() {
  const tint = (colour, part) => {
    const made = el('span', { class: 'tint heat', color: colour });
    made.style.setProperty('--part', `${part}%`);
    return made;
  };
  return el('p', { class: 'hint scale' }, 'half the median ', tint('var(--accent)', 100), tint('var(--accent)', 60), tint('var(--accent)', 25), tint('var(--bad)', 0), tint('var(--bad)', 25), tint('var(--bad)', 60), tint('var(--bad)', 100), ' twice and more');
}

function drawModel(page, timeline) {
  const node = document.getElementById('model');
  const { structure } = page.metrics;
  const maps = [];
  const views = { maps, recolour() { for (const map of maps) map.draw(); } };
  if (!node || !structure || !structure.passes || structure.passes.length === 0) return views;
  const box = el('div', { class: 'model-views' });
  structure.passes.slice(0, kMostPasses).forEach((pass, place) => box.append(drawLayers(structure, place)));
  box.append(el('p', { class: 'hint' }, 'Widths are the median durations of the kernels, on one scale for all kinds of layers of a pass; the pauses between them are left out.'));
  const data = page.timeline ? page.timeline.layerMaps : [];
  if (data.length) {
    box.append(el('h3', null, 'Layers by passes'), el('p', { class: 'hint' }, 'A layer lasts from its first kernel to that of the next layer, pauses included; its tint compares it with the median of its kind.'), mapScale());
    data.forEach((map, i) => {
      const { made, nodes } = drawLayerMap(map, timeline);
      maps.push(made);
      box.append(...(i < 2 ? nodes.filter((one) => one !== '') : [el('details', null, el('summary', null, `${printable(map.pass)} on ${map.device}`), nodes)]));
    });
    for (const query of ['(prefers-color-scheme: dark)', 'print']) matchMedia(query).addEventListener('change', () => views.recolour());
  }
  const first = node.querySelector(':scope > p') || node.querySelector('h2');
  first.after(box);
  return views;
}
