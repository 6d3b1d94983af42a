// SPDX-License-Identifier: Apache-2.0
//
// The timeline: a canvas, since a recording has more slices than a page may have elements.
//
// Slices wider than a pixel are drawn as they are. What is narrower is added up by column, cut at the
// columns' edges, and drawn as high as the column is filled; so a busy GPU looks busy at every zoom.
// Where the page carries no slices, the levels that were added up before are drawn in the same way.
// One class of five hundred lines: what draws, zooms and finds what is under the pointer shares its rows and its scale.
const kRuler = 20;
const kLane = 16;
const kGroup = 18;
const kHeights = { stream: 30, copies: 14, idle: 14 };
const kCopyWords = { 0: 'copy', 1: 'host to device', 2: 'device to host', 8: 'device to device', 10: 'GPU to GPU', 101: 'pageable host to device', 102: 'device to pageable host', 255: 'memset' };

// The first slice of a row that may still run at a time. Slices of a row are sorted by start.
function firstSlice(slices, row, time) {
  let low = row.from;
  let high = row.to;
  const least = time - row.longest;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (slices.start[middle] < least) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Adds [from, to) in columns to a sum by column, exactly.
function addColumns(sum, from, to) {
  const last = Math.min(Math.ceil(to), sum.length);
  for (let x = Math.max(0, Math.floor(from)); x < last; x += 1) sum[x] += Math.min(to, x + 1) - Math.max(from, x);
}

class Timeline {
  constructor(page) {
    this.page = page;
    this.data = page.timeline;
    this.devices = Array.from(new Set(this.data.rows.map((row) => row.device)));
    this.device = this.devices.length > 4 ? this.devices[0] : '';
    this.view = { start: 0, end: this.data.duration_ns };
    this.colours = new Map();
    this.pending = false;
    this.frames = [];
    this.mapNames();
    this.build();
  }

  // Rows of the kernel table by name, device and stage: what a slice is.
  mapNames() {
    const { kernels } = this.page.metrics;
    this.kernelAt = new Map(kernels.map((row, place) => [`${row.kernel_name}\n${row.device}\n${row.stage}`, place]));
    this.cache = new Map();
  }

  kernelOf(row, what, stage) {
    const first = this.data.kernel_rows[what - 1];
    if (what === 0 || first === null) return null;
    const key = `${row.device} ${what} ${stage}`;
    if (!this.cache.has(key)) {
      const name = this.page.metrics.kernels[first].kernel_name;
      const stageName = stage === 0 ? 'outside' : this.data.stages[stage - 1].stage;
      this.cache.set(key, this.kernelAt.get(`${name}\n${row.device}\n${stageName}`) ?? first);
    }
    return this.cache.get(key);
  }

  colour(variable) {
    if (!this.colours.has(variable)) {
      this.colours.set(variable, getComputedStyle(document.documentElement).getPropertyValue(variable).trim() || '#888');
    }
    return this.colours.get(variable);
  }

  // Variables of colours by what a slice is, or by the category of a level's series.
  sliceColour(row, what) {
    if (row.kind === 'idle') return idleVariable(this.data.buckets[what - 1]);
    if (row.kind === 'copies') return what - 1 === 255 ? '--c-memset' : '--c-copy';
    const first = what === 0 ? null : this.data.kernel_rows[what - 1];
    return first === null ? '--f-other' : familyVariable(this.page.metrics.kernels[first].family);
  }

  categoryColour(row, category) {
    if (row.kind === 'idle') return idleVariable(this.data.buckets[category]);
    if (row.kind === 'copies') return category === 255 ? '--c-memset' : '--c-copy';
    return familyVariable(this.data.families[category] || 'other');
  }

  build() {
    const { data } = this;
    const node = section('timeline', 'Timeline');
    this.node = node;
    this.map = el('canvas', { class: 'minimap', 'aria-hidden': 'true' });
    this.canvas = el('canvas', { class: 'lanes', tabindex: '0', role: 'application', 'aria-label': 'Timeline of the GPUs', 'aria-describedby': 'timeline-help' });
    this.range = el('output', { class: 'range' });
    const button = (label, run) => el('button', { type: 'button', onclick: run }, label);
    this.pick = el('select', { onchange: (event) => { this.device = event.target.value; this.resize(); } },
      el('option', { value: '' }, 'all'), this.devices.map((device) => el('option', { value: device, selected: device === this.device }, device)));
    const gaps = data.gaps.slice(0, 12).map((gap) => button(`${duration(gap.duration)} ${gap.cause.replace('_', ' ')}${this.devices.length > 1 ? ` ${data.rows[gap.row].device}` : ''}`,
      () => this.show(gap.start - gap.duration, gap.start + 2 * gap.duration)));
    const windows = data.windows.map((window) => button(printable(window.label), () => this.show(window.start - (window.end - window.start) * 0.03, window.end + (window.end - window.start) * 0.03)));
    node.append(
      el('p', { class: 'hint', id: 'timeline-help' }, 'Wheel or W S zooms, drag or A D moves, 0 fits; a click chooses a kernel. Columns are as high as the GPU is busy. Under it: why it is idle.'),
      el('div', { class: 'tools' }, button('Zoom in', () => this.zoom(0.5)), button('Zoom out', () => this.zoom(2)), button('Fit', () => this.show(0, data.duration_ns)),
        this.devices.length > 1 ? el('label', null, 'GPU ', this.pick) : null, this.range),
      el('div', { class: 'canvas-box' }, this.map, this.canvas),
      legend([...familyTimes(this.page.metrics, null, null).slice(0, 12).map(([family]) => [family, familyColour(family)]),
        ...kIdle.filter((bucket) => this.page.metrics.ledgers.some((row) => row.buckets_ns[bucket] > 0)).map((bucket) => [kBucketWords[bucket], bucketColour(bucket)])]),
      windows.length ? el('div', { class: 'jumps' }, el('span', null, 'Look at'), windows) : '',
      gaps.length ? el('div', { class: 'jumps' }, el('span', null, 'Longest gaps'), gaps) : '',
      el('p', { class: 'hint' }, this.leftOut()));
    this.listen();
  }

  leftOut() {
    const { data } = this;
    const total = `${data.num_work} kernels, copies and graphs`;
    if (data.detail === 'all') return `All ${total} are here.`;
    const what = data.detail === 'windows' ? 'each of them for the moments above only' : 'none of them one by one';
    return `Of ${total}, the page holds sums by column for the whole recording, and ${what}: it is kept below 2 MB. The recording has the rest.`;
  }

  listen() {
    const { canvas, map } = this;
    canvas.addEventListener('wheel', (event) => {
      event.preventDefault();
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.move((event.deltaX || event.deltaY) / 800);
      else this.zoom(1.0015 ** event.deltaY, this.timeAt(event.offsetX));
    }, { passive: false });
    canvas.addEventListener('keydown', (event) => {
      const run = { w: () => this.zoom(0.7), s: () => this.zoom(1.4), a: () => this.move(-0.2), d: () => this.move(0.2), '+': () => this.zoom(0.5), '=': () => this.zoom(0.5), '-': () => this.zoom(2),
        ArrowLeft: () => this.move(-0.2), ArrowRight: () => this.move(0.2), 0: () => this.show(0, this.data.duration_ns), Home: () => this.show(0, this.data.duration_ns) }[event.key.length === 1 ? event.key.toLowerCase() : event.key];
      if (!run || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      run();
    });
    let drag = null;
    canvas.addEventListener('pointerdown', (event) => { drag = { x: event.offsetX, start: this.view.start, end: this.view.end, moved: false }; canvas.setPointerCapture(event.pointerId); });
    canvas.addEventListener('pointermove', (event) => {
      if (!drag) { this.hover(event); return; }
      if (Math.abs(event.offsetX - drag.x) > 3) drag.moved = true;
      const shift = (drag.x - event.offsetX) * (drag.end - drag.start) / this.width;
      if (drag.moved) this.show(drag.start + shift, drag.end + shift);
    });
    canvas.addEventListener('pointerup', (event) => {
      if (drag && !drag.moved) this.click(event);
      drag = null;
    });
    canvas.addEventListener('pointerleave', () => note.hide());
    let anchor = null;
    const timeOn = (event) => (event.offsetX - this.left) / this.width * this.data.duration_ns;
    map.addEventListener('pointerdown', (event) => { anchor = timeOn(event); map.setPointerCapture(event.pointerId); });
    map.addEventListener('pointermove', (event) => {
      if (anchor === null) return;
      const now = timeOn(event);
      if (Math.abs(now - anchor) * this.width / this.data.duration_ns > 4) this.show(Math.min(anchor, now), Math.max(anchor, now));
    });
    map.addEventListener('pointerup', (event) => {
      const half = (this.view.end - this.view.start) / 2;
      if (anchor !== null && Math.abs(timeOn(event) - anchor) * this.width / this.data.duration_ns <= 4) this.show(anchor - half, anchor + half);
      anchor = null;
    });
    new ResizeObserver(() => this.resize()).observe(this.canvas.parentElement);
    for (const query of ['(prefers-color-scheme: dark)', 'print']) matchMedia(query).addEventListener('change', () => this.recolour());
    chosen.onChange((kernel, from) => {
      this.highlight();
      if (from !== 'timeline' && kernel !== null) this.reveal();
    });
  }

  recolour() { this.colours.clear(); this.draw(); }

  timeAt(x) { return this.view.start + (x - this.left) / this.width * (this.view.end - this.view.start); }

  // Makes sure that a GPU is drawn.
  choose(device) {
    if (!this.device || this.device === device || !this.devices.includes(device)) return;
    this.device = device;
    this.pick.value = device;
    this.resize();
  }

  show(start, end) {
    const whole = this.data.duration_ns;
    const span = Math.min(Math.max(end - start, 50), whole);
    const from = Math.min(Math.max(start, 0), whole - span);
    this.view = { start: from, end: from + span };
    this.request();
  }

  zoom(factor, around) {
    const { start, end } = this.view;
    const fixed = around === undefined ? (start + end) / 2 : around;
    const span = Math.min(Math.max((end - start) * factor, 50), this.data.duration_ns);
    const scale = span / (end - start);
    this.show(fixed - (fixed - start) * scale, fixed - (fixed - start) * scale + span);
  }

  move(part) { const step = (this.view.end - this.view.start) * part; this.show(this.view.start + step, this.view.end + step); }

  request() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => { this.pending = false; this.draw(); });
  }

  // Lanes from top to bottom with their heights.
  layOut() {
    const lanes = [];
    let y = kRuler;
    const add = (lane) => { lanes.push({ ...lane, y }); y += lane.height; };
    const stages = new Set(this.data.instances.map((one) => one.stage));
    const isMarked = this.data.stages.some((one) => one.stage !== 'all');
    if (isMarked && [...stages].some((stage) => !this.data.stages[stage].nested)) add({ kind: 'stage', label: 'stage', nested: false, height: kLane });
    if ([...stages].some((stage) => this.data.stages[stage].nested)) add({ kind: 'stage', label: 'step', nested: true, height: kLane });
    for (const device of this.devices) {
      if (this.device && device !== this.device) continue;
      const known = this.page.metrics.devices.find((one) => one.device === device);
      add({ kind: 'group', label: `${device}  ${known && known.name ? printable(known.name) : ''}`, height: kGroup });
      this.data.rows.forEach((row, place) => {
        const isEmpty = this.data.levels.every((level) => level.rows[place].length === 0);
        if (row.device === device && !isEmpty) add({ kind: 'row', row, place, label: row.label, height: kHeights[row.kind] + 3 });
      });
    }
    this.lanes = lanes;
    this.height = y + 4;
  }

  resize() {
    this.layOut();
    const box = this.canvas.parentElement.getBoundingClientRect();
    this.left = box.width < 600 ? 62 : 96;
    this.width = Math.max(60, box.width - this.left - 2);
    const scale = window.devicePixelRatio || 1;
    for (const [canvas, height] of [[this.canvas, this.height], [this.map, 34]]) {
      canvas.width = Math.round((this.left + this.width + 2) * scale);
      canvas.height = Math.round(height * scale);
      canvas.style.height = `${height}px`;
      canvas.getContext('2d').setTransform(scale, 0, 0, scale, 0, 0);
    }
    this.draw();
  }

  draw() {
    if (!this.width) return;
    const began = performance.now();
    const context = this.canvas.getContext('2d');
    context.clearRect(0, 0, this.left + this.width + 2, this.height);
    context.font = '11px system-ui, sans-serif';
    context.textBaseline = 'middle';
    this.drawRuler(context);
    for (const lane of this.lanes) {
      if (lane.kind === 'stage') this.drawStages(context, lane);
      else if (lane.kind === 'row') this.drawRow(context, lane);
      context.fillStyle = this.colour(lane.kind === 'group' ? '--ink' : '--quiet');
      context.fillText(lane.label, 0, lane.y + lane.height / 2, lane.kind === 'group' ? this.left + this.width : this.left - 6);
    }
    this.drawMap();
    const { start, end } = this.view;
    this.range.textContent = `${duration(start)} to ${duration(end)}, ${duration(end - start)}`;
    this.frames.push(performance.now() - began);
    if (this.frames.length > 500) this.frames.shift();
  }

  drawRuler(context) {
    const { start, end } = this.view;
    const step = niceStep((end - start) / Math.max(2, this.width / 110));
    context.fillStyle = this.colour('--quiet');
    context.strokeStyle = this.colour('--line');
    context.beginPath();
    for (let time = Math.ceil(start / step) * step; time <= end; time += step) {
      const x = Math.round(this.left + (time - start) / (end - start) * this.width) + 0.5;
      context.moveTo(x, 14);
      context.lineTo(x, this.height);
      if (x + 60 < this.left + this.width) context.fillText(clock(time, step), x + 3, 8);
    }
    context.stroke();
  }

  drawStages(context, lane) {
    const { start, end } = this.view;
    const perNs = this.width / (end - start);
    let drawn = -1;
    let tint = false;
    for (const one of this.data.instances) {
      if (one.start > end) break;
      const stage = this.data.stages[one.stage];
      tint = !tint;
      if (stage.nested !== lane.nested || one.start + one.duration < start) continue;
      const from = Math.max(this.left + (one.start - start) * perNs, this.left);
      const to = Math.min(this.left + (one.start + one.duration - start) * perNs, this.left + this.width);
      if (to < drawn + 0.5) continue;
      drawn = Math.max(to, from + 0.5);
      context.fillStyle = this.colour(stage.stage === 'prefill' ? '--s-prefill' : tint ? '--s-odd' : '--s-even');
      context.fillRect(from, lane.y + 1, Math.max(to - from - (to - from > 3 ? 1 : 0), 0.5), lane.height - 2);
      if (to - from > 46) {
        context.fillStyle = this.colour('--ink');
        context.fillText(printable(stage.stage), from + 4, lane.y + lane.height / 2, to - from - 8);
      }
    }
  }

  hasSlices(row) {
    if (this.data.detail === 'all') return true;
    if (this.data.detail === 'none') return false;
    const { start, end } = this.view;
    return this.data.windows.some((window) => window.start <= start && end <= window.end);
  }

  drawRow(context, lane) {
    const { row } = lane;
    const sums = new Map();
    const level = this.data.levels[0];
    const isWide = (this.view.end - this.view.start) / this.width >= level.column;
    if (!isWide && this.hasSlices(row)) {
      this.addSlices(context, lane, sums);
    } else {
      this.addLevel(lane, sums);
      this.drawSums(context, lane, sums);
      sums.clear();
      if (!isWide && this.data.detail === 'windows') this.addSlices(context, lane, sums, true);
    }
    this.drawSums(context, lane, sums);
  }

  sumOf(sums, colour) {
    let sum = sums.get(colour);
    if (!sum) sums.set(colour, sum = new Float64Array(Math.ceil(this.width)));
    return sum;
  }

  // `inWindows`: only where every slice is there; what the level drew is cleared first.
  addSlices(context, lane, sums, inWindows) {
    const { slices, windows } = this.data;
    const { start, end } = this.view;
    const { row } = lane;
    const perNs = this.width / (end - start);
    const whole = [];
    const parts = inWindows ? windows.filter((window) => window.start < end && window.end > start) : [{ start, end }];
    for (const part of parts) {
      const from = Math.max(part.start, start);
      const to = Math.min(part.end, end);
      if (inWindows) context.clearRect(this.left + (from - start) * perNs, lane.y, (to - from) * perNs, lane.height);
      for (let i = firstSlice(slices, row, from); i < row.to && slices.start[i] < to; i += 1) {
        const x0 = (Math.max(slices.start[i], from) - start) * perNs;
        const x1 = (Math.min(slices.start[i] + slices.duration[i], to) - start) * perNs;
        if (x1 <= x0) continue;
        const colour = this.sliceColour(row, slices.what[i]);
        if (x1 - x0 < 2) addColumns(this.sumOf(sums, colour), x0, x1);
        else whole.push([i, x0, x1, colour]);
      }
    }
    const mark = chosen.kernel;
    for (const [i, x0, x1, colour] of whole) {
      context.fillStyle = this.colour(colour);
      const wide = x1 - x0 > 4 ? x1 - x0 - 0.6 : x1 - x0;
      context.fillRect(this.left + x0, lane.y + 1, wide, lane.height - 3);
      if (x1 - x0 > 60 && row.kind === 'stream') {
        const place = this.kernelOf(row, slices.what[i], slices.stage[i]);
        context.fillStyle = '#fff';
        const name = place === null ? 'CUDA graph' : printable(this.page.metrics.kernels[place].short_name);
        context.fillText(middleCut(name, Math.floor((x1 - x0) / 6.2)), this.left + x0 + 4, lane.y + lane.height / 2, x1 - x0 - 8);
      }
      if (mark !== null && row.kind === 'stream' && this.isChosen(row, slices.what[i])) {
        context.strokeStyle = this.colour('--ink');
        context.lineWidth = 2;
        context.strokeRect(this.left + x0 + 1, lane.y + 1, Math.max(wide - 2, 1), lane.height - 3);
        context.lineWidth = 1;
      }
    }
  }

  isChosen(row, what) {
    const first = what === 0 ? null : this.data.kernel_rows[what - 1];
    return first !== null && this.page.metrics.kernels[first].kernel_name === this.page.metrics.kernels[chosen.kernel].kernel_name;
  }

  addLevel(lane, sums) {
    const { start, end } = this.view;
    const perNs = this.width / (end - start);
    const level = this.data.levels.find((one) => one.column * perNs <= 1) || this.data.levels[this.data.levels.length - 1];
    const first = Math.max(0, Math.floor(start / level.column));
    const last = Math.min(level.columns, Math.ceil(end / level.column));
    for (const { category, fill: filled } of level.rows[lane.place]) {
      const sum = this.sumOf(sums, this.categoryColour(lane.row, category));
      for (let column = first; column < last; column += 1) {
        if (filled[column] === 0) continue;
        const part = filled[column] / 65535;
        const x0 = Math.max((column * level.column - start) * perNs, 0);
        const x1 = Math.min(((column + 1) * level.column - start) * perNs, this.width);
        const stop = Math.min(Math.ceil(x1), sum.length);
        for (let x = Math.floor(x0); x < stop; x += 1) sum[x] += (Math.min(x1, x + 1) - Math.max(x0, x)) * part;
      }
    }
  }

  // Columns stacked from the bottom, the colour with most of the row first.
  drawSums(context, lane, sums) {
    if (sums.size === 0) return;
    const tall = lane.height - 3;
    const order = Array.from(sums).map(([colour, sum]) => [colour, sum, sum.reduce((a, b) => a + b, 0)]).sort((a, b) => b[2] - a[2]);
    const base = new Float64Array(Math.ceil(this.width));
    for (const [colour, sum] of order) {
      context.fillStyle = this.colour(colour);
      for (let x = 0; x < sum.length; x += 1) {
        if (sum[x] <= 0) continue;
        const height = Math.min(sum[x], 1 - base[x]) * tall;
        if (height > 0) context.fillRect(this.left + x, lane.y + 1 + tall - base[x] * tall - height, 1, height);
        base[x] = Math.min(1, base[x] + sum[x]);
      }
    }
  }

  // Busy is what the gaps leave: the same sum as the ledger's.
  drawMap() {
    const context = this.map.getContext('2d');
    context.clearRect(0, 0, this.left + this.width + 2, 34);
    const level = this.data.levels[0];
    const shown = this.data.rows.map((row, place) => ({ row, place })).filter(({ row }) => row.kind === 'idle' && (!this.device || row.device === this.device));
    const idle = new Float64Array(Math.ceil(this.width));
    for (const { place } of shown) {
      for (const { fill: filled } of level.rows[place]) {
        for (let column = 0; column < level.columns; column += 1) {
          if (filled[column]) {
            const x0 = column * level.column / this.data.duration_ns * this.width;
            const x1 = Math.min((column + 1) * level.column / this.data.duration_ns, 1) * this.width;
            const stop = Math.min(Math.ceil(x1), idle.length);
            for (let x = Math.floor(x0); x < stop; x += 1) idle[x] += (Math.min(x1, x + 1) - Math.max(x0, x)) * filled[column] / 65535 / shown.length;
          }
        }
      }
    }
    context.fillStyle = this.colour('--map');
    for (let x = 0; x < idle.length; x += 1) {
      const height = Math.max(0, 1 - idle[x]) * 28;
      if (height > 0.2) context.fillRect(this.left + x, 31 - height, 1, height);
    }
    const from = this.left + this.view.start / this.data.duration_ns * this.width;
    const wide = Math.max(3, (this.view.end - this.view.start) / this.data.duration_ns * this.width);
    context.fillStyle = this.colour('--map-shade');
    context.fillRect(from, 0, wide, 34);
    context.strokeStyle = this.colour('--accent');
    context.lineWidth = 2;
    context.strokeRect(from + 1, 1, Math.max(wide - 2, 1), 32);
    context.lineWidth = 1;
    context.fillStyle = this.colour('--quiet');
    context.font = '11px system-ui, sans-serif';
    context.textBaseline = 'middle';
    context.fillText('busy', 0, 17, this.left - 6);
  }

  // The slice or column under the pointer.
  find(event) {
    const lane = this.lanes.find((one) => event.offsetY >= one.y && event.offsetY < one.y + one.height);
    const time = this.timeAt(event.offsetX);
    if (!lane || event.offsetX < this.left) return null;
    if (lane.kind === 'stage') {
      const one = this.data.instances.findLast((instance) => this.data.stages[instance.stage].nested === lane.nested && instance.start <= time && time < instance.start + instance.duration);
      return one ? { lane, instance: one } : null;
    }
    if (lane.kind !== 'row') return null;
    const { slices } = this.data;
    const near = (this.view.end - this.view.start) / this.width;
    let best = null;
    for (let i = firstSlice(slices, lane.row, time - near); i < lane.row.to && slices.start[i] <= time + near; i += 1) {
      const away = Math.max(slices.start[i] - time, time - slices.start[i] - slices.duration[i], 0);
      if (away <= near && (best === null || away < best.away || (away === best.away && slices.duration[i] > slices.duration[best.slice]))) best = { slice: i, away };
    }
    return best ? { lane, slice: best.slice } : { lane };
  }

  hover(event) {
    const found = this.find(event);
    if (!found) { note.hide(); return; }
    const { lane, slice, instance } = found;
    const { slices } = this.data;
    if (instance) {
      note.show(event, [printable(this.data.stages[instance.stage].stage), duration(instance.duration), instance.tokens === null ? '' : `${instance.tokens} tokens`, instance.isOpen ? 'had no end' : '']);
    } else if (slice === undefined) {
      note.hide();
    } else if (lane.row.kind === 'idle') {
      note.show(event, [kBucketWords[this.data.buckets[slices.what[slice] - 1]], duration(slices.duration[slice])]);
    } else if (lane.row.kind === 'copies') {
      note.show(event, [kCopyWords[slices.what[slice] - 1] || 'copy', duration(slices.duration[slice])]);
    } else {
      const place = this.kernelOf(lane.row, slices.what[slice], slices.stage[slice]);
      const row = place === null ? null : this.page.metrics.kernels[place];
      note.show(event, [row ? middleCut(printable(row.short_name), 120) : 'a kernel or CUDA graph that the table does not list', `${duration(slices.duration[slice])} at ${duration(slices.start[slice])}`,
        row ? `${row.family} · ${slices.stage[slice] === 0 ? 'in no stage' : printable(this.data.stages[slices.stage[slice] - 1].stage)} · ${lane.row.label}` : '']);
    }
  }

  click(event) {
    const found = this.find(event);
    if (!found || found.slice === undefined || found.lane.row.kind !== 'stream') return;
    const { slices } = this.data;
    const place = this.kernelOf(found.lane.row, slices.what[found.slice], slices.stage[found.slice]);
    if (place !== null) chosen.set(place, 'timeline');
  }

  highlight() { this.request(); }

  // The first launch of the chosen kernel that is there, if none is in view.
  reveal() {
    const { slices, rows } = this.data;
    const { start, end } = this.view;
    let first = null;
    for (const row of rows) {
      if (row.kind !== 'stream') continue;
      for (let i = row.from; i < row.to; i += 1) {
        if (!this.isChosen(row, slices.what[i])) continue;
        const to = slices.start[i] + slices.duration[i];
        if (slices.start[i] < end && to > start && (end - start) / this.width < slices.duration[i]) return;
        if (first === null || slices.start[i] < slices.start[first]) first = i;
      }
    }
    if (first !== null) this.show(slices.start[first] - 20 * slices.duration[first], slices.start[first] + 21 * slices.duration[first]);
  }
}

function drawTimeline(page) {
  const node = section('timeline', 'Timeline');
  document.getElementById('kernels').before(node);
  if (!page.timeline || page.timeline.rows.length === 0) {
    node.append(el('p', { class: 'missing' }, 'n/a (needs a recording with times of day); llmprof report BUNDLE --format html draws it where the bundle holds one.'));
    return null;
  }
  return new Timeline(page);
}
