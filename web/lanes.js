// SPDX-License-Identifier: Apache-2.0
//
// The picture of the timeline: a canvas, since a recording has more slices than a page may have elements.
//
// Slices wider than a pixel are drawn as they are. What is narrower is added up by column, cut at the
// columns' edges, and drawn as high as the column is filled; so a busy GPU looks busy at every zoom.
// Where the page carries no slices, the levels that were added up before are drawn in the same way.
const kRuler = 20;
const kLane = 16;
const kGroup = 18;
const kHeights = { stream: 34, copies: 14, idle: 16 };
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

class Lanes {
  colour(variable) {
    if (!this.colours.has(variable)) {
      this.colours.set(variable, getComputedStyle(document.documentElement).getPropertyValue(variable).trim() || '#888');
    }
    return this.colours.get(variable);
  }

  // Variables of colours by what a slice is, or by the category of a level's series.
  sliceColour(row, what) {
    if (row.kind === 'idle') return idleVariable(this.data.causes[what - 1]);
    if (row.kind === 'copies') return what - 1 === 255 ? '--c-memset' : '--c-copy';
    const first = what === 0 ? null : this.data.kernel_rows[what - 1];
    return first === null ? '--f-other' : familyVariable(this.page.metrics.kernels[first].family);
  }

  categoryColour(row, category) {
    if (row.kind === 'idle') return idleVariable(this.data.causes[category]);
    if (row.kind === 'copies') return category === 255 ? '--c-memset' : '--c-copy';
    return familyVariable(this.data.families[category] || 'other');
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
      else if (lane.kind === 'host') this.drawHost(context, lane);
      else if (lane.kind === 'layers') this.drawLayers(context, lane);
      // The name of a process or GPU is longer than the margin: it stands before the ruler's lines.
      if (lane.kind === 'group') {
        context.fillStyle = this.colour('--card');
        context.fillRect(0, lane.y + 2, context.measureText(lane.label).width + 6, lane.height - 4);
      }
      context.fillStyle = this.colour(lane.kind === 'group' ? '--ink' : '--quiet');
      context.fillText(lane.label, 0, lane.y + lane.height / 2, lane.kind === 'group' ? this.left + this.width : this.left - 6);
    }
    this.drawSelected(context);
    this.drawMap();
    const { start, end } = this.view;
    this.range.textContent = `${exact(start, end - start, end)} to ${exact(end, end - start)}, ${duration(end - start)}`;
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
      if (x + 60 < this.left + this.width) context.fillText(exact(time, step * 1000, end), x + 3, 8);
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

  drawLayers(context, lane) {
    const { start, end } = this.view;
    const perNs = this.width / (end - start);
    let drawn = -1;
    for (const bar of lane.bars) {
      if (bar.start > end) break;
      if (bar.start + bar.length < start) continue;
      const from = Math.max(this.left + (bar.start - start) * perNs, this.left);
      const to = Math.min(this.left + (bar.start + bar.length - start) * perNs, this.left + this.width);
      if (to < drawn + 0.5) continue;
      drawn = Math.max(to, from + 0.5);
      context.fillStyle = this.colour(bar.layer % 2 ? '--s-odd' : '--s-even');
      context.fillRect(from, lane.y + 1, Math.max(to - from - (to - from > 3 ? 1 : 0), 0.5), lane.height - 2);
      if (to - from > 20) {
        context.fillStyle = this.colour('--ink');
        context.fillText(to - from > 60 ? `layer ${bar.layer}` : String(bar.layer), from + 3, lane.y + lane.height / 2, to - from - 5);
      }
    }
  }

  drawHost(context, lane) {
    const { host } = this;
    const { start, duration: lengths } = host.slices;
    const { start: from, end: to } = this.view;
    const perNs = this.width / (to - from);
    const sums = new Map();
    const wide = [];
    for (let i = host.first(lane.host, from); i < lane.host.to && start[i] < to; i += 1) {
      const x0 = Math.max(0, (start[i] - from) * perNs);
      const x1 = Math.min(this.width, (start[i] + lengths[i] - from) * perNs);
      if (x1 - x0 < 1.5) addColumns(this.sumOf(sums, host.colour(lane.host, i)), x0, x1);
      else wide.push([i, x0, x1]);
    }
    this.drawSums(context, lane, sums);
    for (const [i, x0, x1] of wide) {
      const isFaint = this.matches && !this.matches.host.has(host.slices.name[i]);
      context.globalAlpha = isFaint ? 0.3 : 1;
      context.fillStyle = this.colour(host.colour(lane.host, i));
      context.fillRect(this.left + x0, lane.y + 1, x1 - x0 > 4 ? x1 - x0 - 0.6 : x1 - x0, lane.height - 2);
      if (x1 - x0 > 34) {
        context.fillStyle = this.colour('--ink');
        context.fillText(headCut(printable(host.name(i)), Math.max(4, Math.floor((x1 - x0) / 6))), this.left + x0 + 3, lane.y + lane.height / 2 + 0.5, x1 - x0 - 5);
      }
      context.globalAlpha = 1;
    }
  }

  // The chosen slice, the line from its launch, and what was measured.
  drawSelected(context) {
    const { start, end } = this.view;
    const perNs = this.width / (end - start);
    const x = (time) => this.left + Math.max(-1, Math.min(this.width + 1, (time - start) * perNs));
    const box = (lane, from, length) => {
      context.strokeStyle = this.colour('--ink');
      context.lineWidth = 2;
      context.strokeRect(x(from), lane.y + 1, Math.max(x(from + length) - x(from), 2), lane.height - 2);
      context.lineWidth = 1;
    };
    const chosenOne = this.selected;
    if (chosenOne && chosenOne.host !== undefined) {
      const lane = this.lanes.find((one) => one.kind === 'host' && chosenOne.host >= one.host.from && chosenOne.host < one.host.to);
      if (lane) box(lane, this.host.slices.start[chosenOne.host], this.host.slices.duration[chosenOne.host]);
    } else if (chosenOne) {
      const { slices } = this.data;
      const lane = this.lanes.find((one) => one.kind === 'row' && one.row === chosenOne.row);
      if (lane) {
        const from = chosenOne.slice === undefined ? chosenOne.start : slices.start[chosenOne.slice];
        box(lane, from, chosenOne.slice === undefined ? chosenOne.length : slices.duration[chosenOne.slice]);
        if (chosenOne.slice !== undefined) this.drawLaunch(context, lane, chosenOne.slice, x, box);
      }
    }
    if (this.band) {
      context.fillStyle = this.colour('--map-shade');
      context.fillRect(x(this.band.start), kRuler, x(this.band.end) - x(this.band.start), this.height - kRuler);
      context.fillStyle = this.colour('--ink');
      context.fillText(exact(this.band.end - this.band.start, this.band.end - this.band.start), x(this.band.start) + 4, kRuler + 8);
    }
  }

  drawLaunch(context, lane, slice, x, box) {
    const { slices } = this.data;
    const call = slices.call ? slices.call[slice] - 1 : -1;
    if (call < 0) return;
    const from = this.lanes.find((one) => one.kind === 'host' && call >= one.host.from && call < one.host.to);
    if (!from) return;
    const { start, duration: lengths } = this.host.slices;
    box(from, start[call], lengths[call]);
    const [x0, y0, x1, y1] = [x(start[call] + lengths[call] / 2), from.y + from.height - 1, x(slices.start[slice]), lane.y + 1];
    context.strokeStyle = this.colour('--accent');
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(x0, y0);
    context.bezierCurveTo(x0, (y0 + y1) / 2, x1, (y0 + y1) / 2, x1, y1);
    context.stroke();
    context.lineWidth = 1;
  }

  hasSlices() {
    if (this.data.detail === 'all') return true;
    if (this.data.detail === 'none') return false;
    const { start, end } = this.view;
    return this.data.windows.some((window) => window.start <= start && end <= window.end);
  }

  drawRow(context, lane) {
    const sums = new Map();
    const level = this.data.levels[0];
    const isWide = (this.view.end - this.view.start) / this.width >= level.column;
    if (!isWide && this.hasSlices()) {
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
      context.globalAlpha = this.matches && !(row.kind === 'stream' && this.matches.kernels.has(slices.what[i])) ? 0.3 : 1;
      context.fillStyle = this.colour(colour);
      const wide = x1 - x0 > 4 ? x1 - x0 - 0.6 : x1 - x0;
      context.fillRect(this.left + x0, lane.y + 1, wide, lane.height - 3);
      if (x1 - x0 > 60 && row.kind === 'stream') {
        const place = this.kernelOf(row, slices.what[i], slices.stage[i]);
        context.fillStyle = '#fff';
        const name = place === null ? 'CUDA graph' : printable(this.page.metrics.kernels[place].short_name);
        context.fillText(middleCut(name, Math.floor((x1 - x0) / 6.2)), this.left + x0 + 4, lane.y + lane.height / 2, x1 - x0 - 8);
      }
      context.globalAlpha = 1;
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
}
