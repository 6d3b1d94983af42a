// SPDX-License-Identifier: Apache-2.0
//
// The timeline: its view, its lanes from top to bottom, what wheel, keys and pointer do to them.
// lanes.js draws it, host.js knows the host, places.js ways to get somewhere, details.js tells what is chosen.
class Timeline extends Lanes {
  constructor(page) {
    super();
    this.page = page;
    this.data = page.timeline;
    this.devices = Array.from(new Set(this.data.rows.map((row) => row.device)));
    this.device = this.devices.length > 4 ? this.devices[0] : '';
    this.host = this.data.host ? new Host(this.data.host) : null;
    this.hostChoice = 'main';
    this.layers = layerBars(this.data.layerMaps);
    this.selected = null;
    this.band = null;
    this.matches = null;
    this.work = workSpan(this.data);
    this.view = { ...this.work };
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

  build() {
    const { data } = this;
    const node = section('timeline', 'Timeline');
    this.node = node;
    this.map = el('canvas', { class: 'minimap', 'aria-hidden': 'true' });
    this.canvas = el('canvas', { class: 'lanes', tabindex: '0', role: 'application', 'aria-label': 'Timeline of host and GPUs', 'aria-describedby': 'timeline-help' });
    this.range = el('output', { class: 'range' });
    this.details = el('div', { id: 'timeline-details', 'aria-live': 'polite' });
    const button = (label, run, title) => el('button', { type: 'button', onclick: run, title }, label);
    this.pick = el('select', { onchange: (event) => { this.device = event.target.value; this.resize(); } },
      el('option', { value: '' }, 'all'), this.devices.map((device) => el('option', { value: device, selected: device === this.device }, device)));
    const threads = el('select', { onchange: (event) => { this.hostChoice = event.target.value; this.resize(); } },
      [['main', 'main threads'], ['all', 'all threads'], ['none', 'hidden']].map(([choice, label]) => el('option', { value: choice }, label)));
    const windows = data.windows.map((window) => button(printable(window.label), () => this.show(window.start - (window.end - window.start) * 0.03, window.end + (window.end - window.start) * 0.03)));
    const isTrimmed = this.work.end - this.work.start < data.duration_ns;
    node.append(
      el('p', { class: 'hint', id: 'timeline-help' }, matchMedia('(hover: none)').matches ? 'Pinch: zoom · drag sideways: pan · tap: details.' : 'Ctrl+wheel, pinch or W/S: zoom · drag or A/D: pan · Shift+drag: measure · 0: whole recording · click: details · /: search · ?: all keys.'),
      el('div', { class: 'tools' }, button('Zoom in', () => this.zoom(0.5)), button('Zoom out', () => this.zoom(2)),
        isTrimmed ? button('Fit work', () => this.show(this.work.start, this.work.end), 'from the first to the last dense GPU work') : null, button('Fit all', () => this.show(0, data.duration_ns)),
        this.devices.length > 1 ? el('label', null, 'GPU ', this.pick) : null, this.host ? el('label', null, 'Host ', threads) : null, searchBox(this), this.range),
      el('div', { class: 'canvas-box' }, this.map, this.canvas), this.details,
      legend([...familyTimes(this.page.metrics, null, null).slice(0, 12).map(([family]) => [family, familyColour(family)]),
        ...idleLegend(this.page.metrics, this.page.metrics.ledgers)]),
      this.host ? legend(Object.entries(kCallWords).map(([kind, words]) => [words, `var(--k-${kind})`])) : '',
      windows.length ? el('div', { class: 'jumps' }, el('span', null, 'Look at'), windows) : '',
      gapButtons(this),
      el('p', { class: 'hint' }, this.leftOut()));
    this.listen();
  }

  leftOut() {
    const { data } = this;
    const total = `${data.num_work} kernels, copies and graphs`;
    const host = this.host ? this.host.leftOut() : '';
    if (data.detail === 'all') return host;
    const what = data.detail === 'windows' ? 'each of them for the moments above only' : 'none of them one by one';
    return `Of ${total}, the page holds sums by column for the whole recording, and ${what}: it is kept below 2 MB. The recording has the rest. ${host}`;
  }

  listen() {
    const { canvas, map } = this;
    let told = false;
    canvas.addEventListener('wheel', (event) => {
      const isSideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        this.zoom(1.0015 ** Math.max(-400, Math.min(400, event.deltaY * (event.deltaMode === 1 ? 30 : 1))), this.timeAt(event.offsetX));
      } else if (isSideways && this.move((event.deltaX || event.deltaY) / 800)) {
        event.preventDefault();
      } else if (!told && !isSideways) {
        told = true;
        note.show(event, ['Ctrl+wheel zooms the timeline.']);
        setTimeout(() => note.hide(), 1500);
      }
    }, { passive: false });
    canvas.addEventListener('keydown', (event) => {
      const run = timelineKeys(this)[event.key.length === 1 ? event.key.toLowerCase() : event.key];
      if (!run || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      run(event);
    });
    let drag = null;
    const touches = new Map();
    canvas.addEventListener('pointerdown', (event) => {
      touches.set(event.pointerId, event.offsetX);
      canvas.setPointerCapture(event.pointerId);
      if (touches.size === 2) {
        const [a, b] = touches.values();
        drag = { pinch: [this.timeAt(a), this.timeAt(b)], moved: true };
        return;
      }
      drag = { x: event.offsetX, time: this.timeAt(event.offsetX), start: this.view.start, end: this.view.end, moved: false, measures: event.shiftKey };
    });
    canvas.addEventListener('pointermove', (event) => {
      if (!drag) { this.hover(event); return; }
      touches.set(event.pointerId, event.offsetX);
      if (drag.pinch) {
        if (touches.size === 2) this.pinch(drag.pinch, Array.from(touches.values()));
        return;
      }
      if (Math.abs(event.offsetX - drag.x) > 3) drag.moved = true;
      if (!drag.moved) return;
      note.hide();
      if (drag.measures) {
        const now = this.timeAt(event.offsetX);
        this.band = { start: Math.min(drag.time, now), end: Math.max(drag.time, now) };
        this.request();
        return;
      }
      const shift = (drag.x - event.offsetX) * (drag.end - drag.start) / this.width;
      this.show(drag.start + shift, drag.end + shift);
    });
    const release = (event) => {
      if (drag && !drag.moved && event.type === 'pointerup') this.click(event);
      touches.delete(event.pointerId);
      if (touches.size === 0) drag = null;
    };
    canvas.addEventListener('pointerup', release);
    canvas.addEventListener('pointercancel', release);
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
      this.request();
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

  // Two fingers keep the times under them.
  pinch([a, b], [x, y]) {
    if (Math.abs(x - y) < 8 || a === b) return;
    const perNs = (y - x) / (b - a);
    if (perNs > 0) this.show(a - (x - this.left) / perNs, a - (x - this.left) / perNs + this.width / perNs);
  }

  show(start, end) {
    const whole = this.data.duration_ns;
    const span = Math.min(Math.max(end - start, 50), whole);
    const from = Math.min(Math.max(start, 0), whole - span);
    this.view = { start: from, end: from + span };
    this.request();
    rememberPlace(this.view);
  }

  // Something in the middle of a view twenty times as long, if it is not in sight already.
  frame(start, length, factor = 20) {
    this.show(start - length * factor / 2, start + length * (1 + factor / 2));
  }

  isInSight(start, length) {
    const { start: from, end: to } = this.view;
    return start >= from && start + length <= to && length / (to - from) * this.width > 3;
  }

  zoom(factor, around) {
    const { start, end } = this.view;
    const fixed = around === undefined ? (start + end) / 2 : around;
    const span = Math.min(Math.max((end - start) * factor, 50), this.data.duration_ns);
    const scale = span / (end - start);
    this.show(fixed - (fixed - start) * scale, fixed - (fixed - start) * scale + span);
  }

  // Whether there was room to move.
  move(part) {
    const before = this.view.start;
    const step = (this.view.end - this.view.start) * part;
    this.show(this.view.start + step, this.view.end + step);
    return this.view.start !== before;
  }

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
    if (this.host) this.layHost(add);
    for (const device of this.devices) {
      if (this.device && device !== this.device) continue;
      const known = this.page.metrics.devices.find((one) => one.device === device);
      add({ kind: 'group', label: `${device}  ${known && known.name ? printable(known.name) : ''}`, height: kGroup });
      if (this.layers.has(device)) add({ kind: 'layers', label: 'layer', bars: this.layers.get(device), height: kLane });
      this.data.rows.forEach((row, place) => {
        const isEmpty = this.data.levels.every((level) => level.rows[place].length === 0);
        if (row.device === device && !isEmpty) add({ kind: 'row', row, place, label: row.label, height: kHeights[row.kind] + 3 });
      });
    }
    this.lanes = lanes;
    this.height = y + 4;
  }

  // Processes whose launches ran on the chosen GPU; null: all.
  pidsShown() {
    const { slices, rows } = this.data;
    if (!this.device || !slices.call) return null;
    const pids = new Set();
    for (const row of rows) {
      if (row.device !== this.device) continue;
      for (let i = row.from; i < row.to; i += 1) if (slices.call[i] > 0) pids.add(this.host.laneOf(slices.call[i] - 1).pid);
    }
    return pids.size ? pids : null;
  }

  // Lanes with something in the view that the page opens with. A server that replays graphs has operators in its
  // warm-up alone: their lanes would push the GPUs off the screen, and are there with all threads.
  lanesOf(thread) {
    const isUsed = (lane) => {
      const slice = this.host.first(lane, this.work.start);
      return slice < lane.to && this.host.slices.start[slice] < this.work.end;
    };
    return this.hostChoice === 'all' ? thread : { ...thread, scopes: thread.scopes.filter(isUsed), calls: thread.calls.filter(isUsed) };
  }

  layHost(add) {
    let pid = null;
    const threads = this.host.shown(this.hostChoice, this.pidsShown()).map((one) => this.lanesOf(one));
    const used = threads.filter((thread) => thread.scopes.length + thread.calls.length > 0);
    if (threads.length > 0 && used.length === 0) add({ kind: 'group', label: 'host  nothing in this view; all threads shows the rest', height: kGroup });
    for (const thread of used) {
      if (thread.pid !== pid) add({ kind: 'group', label: `host  process ${thread.pid}`, height: kGroup });
      pid = thread.pid;
      const tid = this.hostChoice === 'all' ? `${thread.tid}` : '';
      thread.scopes.forEach((lane, level) => add({ kind: 'host', host: lane, label: level === 0 ? tid || 'ranges, ops' : '', height: kHostLane }));
      thread.calls.forEach((lane, level) => add({ kind: 'host', host: lane, label: level === 0 ? 'API calls' : '', height: kHostLane }));
    }
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

  // The slice or column under the pointer.
  find(event) {
    const lane = this.lanes.find((one) => event.offsetY >= one.y && event.offsetY < one.y + one.height);
    const time = this.timeAt(event.offsetX);
    if (!lane || event.offsetX < this.left) return null;
    if (lane.kind === 'stage') {
      const one = this.data.instances.findLast((instance) => this.data.stages[instance.stage].nested === lane.nested && instance.start <= time && time < instance.start + instance.duration);
      return one ? { lane, instance: one } : null;
    }
    if (lane.kind === 'layers') {
      const bar = lane.bars.find((one) => one.start <= time && time < one.start + one.length);
      return bar ? { lane, bar } : null;
    }
    if (lane.kind === 'host') {
      const slack = (this.view.end - this.view.start) / this.width;
      const slice = this.host.at(lane.host, time) ?? this.host.at(lane.host, time + slack) ?? this.host.at(lane.host, time - slack);
      return slice === null ? null : { lane, host: slice };
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
    if (!found || (found.lane.kind === 'row' && found.slice === undefined)) { note.hide(); return; }
    note.show(event, hoverLines(this, found));
  }

  click(event) {
    this.canvas.focus({ preventScroll: true });
    const found = this.find(event);
    const span = found && (found.bar || found.instance);
    if (span) this.band = { start: span.start, end: span.start + (span.length || span.duration) };
    if (!found || (found.slice === undefined && found.host === undefined)) { this.select(null); return; }
    this.band = null;
    if (found.host !== undefined) this.select({ host: found.host });
    else this.select({ row: found.lane.row, slice: found.slice });
  }

  // Chooses a slice of a GPU or of the host, or a gap by its times; tells of it below the lanes.
  select(what) {
    this.selected = what;
    this.details.replaceChildren(...(what ? [detailsOf(this, what)] : []));
    if (what && what.slice !== undefined && what.row.kind === 'stream') {
      const { slices } = this.data;
      const place = this.kernelOf(what.row, slices.what[what.slice], slices.stage[what.slice]);
      if (place !== null) chosen.set(place, 'timeline');
    }
    this.request();
  }

  // The first launch of the chosen kernel that is there, if none is in view.
  reveal() {
    const launches = launchesOf(this, this.page.metrics.kernels[chosen.kernel].kernel_name);
    if (launches.length === 0) return;
    const { slices } = this.data;
    const seen = launches.find(({ slice }) => this.isInSight(slices.start[slice], slices.duration[slice]));
    const one = seen || launches[0];
    if (!seen) this.frame(slices.start[one.slice], slices.duration[one.slice], 40);
    this.selected = one;
    this.details.replaceChildren(detailsOf(this, one));
    this.request();
  }
}

function drawTimeline(page) {
  const node = section('timeline', 'Timeline');
  document.getElementById('kernels').before(node);
  if (!page.timeline || page.timeline.rows.length === 0) {
    node.append(el('p', { class: 'missing' }, 'n/a (needs a recording with timestamps); gpuwhy report BUNDLE --format html draws it where the bundle holds one.'));
    return null;
  }
  return new Timeline(page);
}
