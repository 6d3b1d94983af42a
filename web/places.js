// SPDX-License-Identifier: Apache-2.0
//
// Ways to a place in the timeline: its longest gaps, a search, launches of a kernel, an address.
const kMostGapButtons = 4;
const kMostMatches = 20000;

// From the first to the last dense GPU work: a recording may be start-up and silence for the most part.
function workSpan(data) {
  const level = data.levels[0];
  const whole = { start: 0, end: data.duration_ns };
  const busy = new Float64Array(level.columns);
  let sum = 0;
  const kinds = data.rows.some((row, place) => row.kind === 'stream' && level.rows[place].length) ? ['stream'] : ['copies'];
  data.rows.forEach((row, place) => {
    if (!kinds.includes(row.kind)) return;
    for (const { fill: filled } of level.rows[place]) {
      for (let column = 0; column < level.columns; column += 1) {
        busy[column] += filled[column];
        sum += filled[column];
      }
    }
  });
  if (sum === 0) return whole;
  let [first, last, seen] = [0, level.columns - 1, 0];
  for (let column = 0; column < level.columns; column += 1) {
    if (seen < sum * 0.002) first = column;
    if (seen < sum * 0.998) last = column;
    seen += busy[column];
  }
  const pad = (last - first + 1) * 0.03;
  const span = { start: Math.max(0, Math.floor(first - pad) * level.column), end: Math.min(data.duration_ns, Math.ceil(last + 1 + pad) * level.column) };
  return span.end - span.start < data.duration_ns * 0.8 ? span : whole;
}

// Layers of every GPU as bars, by start.
function layerBars(maps) {
  const bars = new Map();
  for (const map of maps) {
    const own = bars.get(map.device) || [];
    for (let column = 0; column < map.number.length; column += 1) {
      let start = map.start[column];
      for (let layer = 0; layer < map.layers; layer += 1) {
        const length = map.length[column * map.layers + layer];
        own.push({ start, length, layer, pass: map.number[column], kind: map.pass });
        start += length;
      }
    }
    bars.set(map.device, own);
  }
  for (const own of bars.values()) own.sort((a, b) => a.start - b.start);
  return bars;
}

// The longest gaps of a GPU (or all) with one of the causes: of the slices where all are here.
function longestGaps(timeline, device, causes, most) {
  const { data } = timeline;
  const has = (cause) => causes === null || causes.includes(cause);
  let gaps;
  if (data.detail === 'all') {
    gaps = [];
    for (const row of data.rows) {
      if (row.kind !== 'idle' || (device && row.device !== device)) continue;
      for (let i = row.from; i < row.to; i += 1) {
        const cause = data.causes[data.slices.what[i] - 1];
        if (has(cause)) gaps.push({ row, slice: i, start: data.slices.start[i], length: data.slices.duration[i], cause });
      }
    }
  } else {
    gaps = data.gaps.map((gap) => ({ row: data.rows[gap.row], start: gap.start, length: gap.duration, cause: gap.cause }))
      .filter((gap) => (!device || gap.row.device === device) && has(gap.cause));
  }
  return gaps.sort((a, b) => b.length - a.length || a.start - b.start).slice(0, most);
}

// The longest calls of a kind on the threads that launch most.
function longestCalls(timeline, kind, most) {
  const { host } = timeline;
  const found = [];
  for (const thread of host ? host.shown('main', null) : []) {
    for (const lane of thread.calls.slice(0, 1)) {
      for (let i = lane.from; i < lane.to; i += 1) if (host.colour(lane, i) === `--k-${kind}`) found.push({ host: i, start: host.slices.start[i], length: host.slices.duration[i] });
    }
  }
  return found.sort((a, b) => b.length - a.length || a.start - b.start).slice(0, most);
}

function goToGap(timeline, gap) {
  timeline.choose(gap.row.device);
  timeline.frame(gap.start, gap.length, 2);
  timeline.select(gap);
}

function gapButtons(timeline) {
  const { data } = timeline;
  const box = el('div', { class: 'gap-list' });
  for (const cause of kIdleCauses) {
    if (cause === 'tail' || cause === 'unrecorded') continue;
    const gaps = longestGaps(timeline, '', [cause], kMostGapButtons).filter((gap) => gap.length >= Math.max(1000, data.duration_ns * 1e-4));
    if (gaps.length === 0) continue;
    box.append(el('div', { class: 'jumps' }, el('span', null, swatch(bucketColour(cause)), kBucketWords[cause]),
      gaps.map((gap) => el('button', { type: 'button', onclick: () => goToGap(timeline, gap) },
        `${duration(gap.length)} at ${exact(gap.start, data.duration_ns)}${timeline.devices.length > 1 ? ` · ${gap.row.device}` : ''}`))));
  }
  return box.children.length ? el('details', { class: 'gaps', open: true }, el('summary', null, 'Longest gaps, by cause'), box) : '';
}

// All launches of a kernel that the page holds, by start.
function launchesOf(timeline, name) {
  const { slices, rows, kernel_rows: firsts } = timeline.data;
  const { kernels } = timeline.page.metrics;
  const whats = new Set();
  firsts.forEach((first, i) => { if (first !== null && kernels[first].kernel_name === name) whats.add(i + 1); });
  const found = [];
  for (const row of rows) {
    if (row.kind !== 'stream' || (timeline.device && row.device !== timeline.device)) continue;
    for (let i = row.from; i < row.to; i += 1) if (whats.has(slices.what[i])) found.push({ row, slice: i });
  }
  return found.sort((a, b) => slices.start[a.slice] - slices.start[b.slice]);
}

// Search of kernels, ranges, operators and calls: all that match stand out, next and previous go there.
function searchBox(timeline) {
  const input = el('input', { type: 'search', id: 'timeline-search', placeholder: 'kernel, range or call ( / )', 'aria-label': 'Search the timeline' });
  const status = el('span', { class: 'hint', role: 'status' });
  const state = { found: [], at: -1 };
  const run = () => {
    const text = input.value.trim().toLowerCase();
    state.found = [];
    state.at = -1;
    timeline.matches = text ? matchesOf(timeline, text) : null;
    if (text) state.found = placesOf(timeline, timeline.matches);
    status.textContent = text ? (state.found.length ? `${state.found.length}${state.found.length === kMostMatches ? ' and more' : ''} found` : 'nothing found') : '';
    timeline.request();
  };
  const go = (step) => {
    const { found } = state;
    if (found.length === 0) return;
    if (state.at < 0) {
      const from = step > 0 ? timeline.view.start : timeline.view.end;
      const next = found.findIndex((one) => one.start >= from);
      state.at = step > 0 ? Math.max(next, 0) : (next < 0 ? found.length : next) - 1;
      if (state.at < 0) state.at = found.length - 1;
    } else {
      state.at = (state.at + step + found.length) % found.length;
    }
    const one = found[state.at];
    status.textContent = `${state.at + 1} of ${found.length}`;
    if (!timeline.isInSight(one.start, one.length)) timeline.frame(one.start, one.length);
    timeline.select(one.host === undefined ? { row: one.row, slice: one.slice } : { host: one.host });
  };
  timeline.searchNext = go;
  timeline.searchFor = (text) => { input.value = text; run(); go(1); };
  input.addEventListener('input', run);
  input.addEventListener('keydown', (event) => {
    if (event.key === 'Enter') { event.preventDefault(); go(event.shiftKey ? -1 : 1); }
    if (event.key === 'Escape') { input.value = ''; run(); timeline.canvas.focus({ preventScroll: true }); }
  });
  return el('span', { class: 'search' }, input, el('button', { type: 'button', 'aria-label': 'Previous match', onclick: () => go(-1) }, '◂'),
    el('button', { type: 'button', 'aria-label': 'Next match', onclick: () => go(1) }, '▸'), status);
}

function matchesOf(timeline, text) {
  const { kernel_rows: firsts } = timeline.data;
  const { kernels } = timeline.page.metrics;
  const found = { kernels: new Set(), host: new Set() };
  firsts.forEach((first, i) => {
    if (first !== null && `${kernels[first].short_name}\n${kernels[first].kernel_name}`.toLowerCase().includes(text)) found.kernels.add(i + 1);
  });
  if (timeline.host) timeline.host.data.names.forEach((name, i) => { if (name.toLowerCase().includes(text)) found.host.add(i + 1); });
  return found;
}

function placesOf(timeline, matches) {
  const { slices, rows } = timeline.data;
  const found = [];
  for (const row of rows) {
    if (row.kind !== 'stream' || (timeline.device && row.device !== timeline.device)) continue;
    for (let i = row.from; i < row.to && found.length < kMostMatches; i += 1) if (matches.kernels.has(slices.what[i])) found.push({ row, slice: i, start: slices.start[i], length: slices.duration[i] });
  }
  if (timeline.host) {
    for (const lane of timeline.lanes.filter((one) => one.kind === 'host')) {
      const { start, duration: lengths, name } = timeline.host.slices;
      for (let i = lane.host.from; i < lane.host.to && found.length < kMostMatches; i += 1) if (matches.host.has(name[i])) found.push({ host: i, start: start[i], length: lengths[i] });
    }
  }
  return found.sort((a, b) => a.start - b.start);
}

// The view in the address: #t=1.5ms-2.25ms. Units are ns, us, ms and s; none means ns.
const kTimeUnits = { '': 1, ns: 1, us: 1e3, ms: 1e6, s: 1e9 };
function placeOf(hash) {
  const found = /^#t=(\d+(?:\.\d+)?)(ns|us|ms|s)?-(\d+(?:\.\d+)?)(ns|us|ms|s)?$/.exec(hash);
  if (!found) return null;
  const [start, end] = [Number(found[1]) * kTimeUnits[found[2] || ''], Number(found[3]) * kTimeUnits[found[4] || '']];
  return end > start ? { start, end } : null;
}

let rememberTimer = 0;
function rememberPlace(view) {
  clearTimeout(rememberTimer);
  rememberTimer = setTimeout(() => {
    const text = (ns) => `${Number((ns / 1e6).toFixed(6))}ms`;
    try {
      history.replaceState(null, '', `#t=${text(view.start)}-${text(view.end)}`);
    } catch {
      // Some viewers forbid it; the page works without.
    }
  }, 250);
}

function followAddress(timeline, scroll) {
  const place = placeOf(location.hash);
  if (!place) return;
  timeline.show(place.start, place.end);
  if (scroll) document.getElementById('timeline').scrollIntoView();
}
