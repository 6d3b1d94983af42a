// SPDX-License-Identifier: Apache-2.0
//
// The roofline: how fast a kernel computes against how much it computes of a byte. Both roofs are
// those its counters were compared with. A dot above the slope reads from L2 what the slope counts as
// DRAM; it is drawn where it is.
function drawRoofline(page) {
  const { metrics } = page;
  const node = document.getElementById('counters');
  node.querySelector('h2').textContent = 'Roofline: what bounds the kernels';
  const dots = (metrics.counters.kernels || []).map((row, place) => ({ row, place, roof: row.roofline }))
    .filter(({ roof }) => roof.intensity_flops_per_byte > 0 && roof.flops_per_s > 0);
  if (dots.length === 0) return;
  const [width, height, left, right, top, bottom] = [640, 340, 54, 14, 14, 40];
  const xs = dots.map(({ roof }) => Math.log10(roof.intensity_flops_per_byte));
  const ys = dots.map(({ roof }) => Math.log10(roof.flops_per_s));
  const memory = Math.max(...dots.map(({ roof }) => roof.roof_bytes_per_s || 0));
  const peaks = new Map(dots.filter(({ roof }) => roof.roof_flops_per_s > 0).map(({ roof }) => [roof.roof_flops_per_s, roof.dtype || '']));
  const highest = Math.max(...ys, ...Array.from(peaks.keys(), (peak) => Math.log10(peak)));
  const x0 = Math.floor(Math.min(...xs, -1));
  const x1 = Math.ceil(Math.max(...xs, 2));
  const y0 = Math.floor(Math.min(...ys));
  const y1 = Math.ceil(highest + 0.1);
  const x = (at) => left + (at - x0) / (x1 - x0) * (width - left - right);
  const y = (at) => height - bottom - (at - y0) / (y1 - y0) * (height - top - bottom);
  const picture = svg('svg', { viewBox: `0 0 ${width} ${height}`, class: 'chart', role: 'img', 'aria-label': `Roofline of ${dots.length} profiled launches; the table below has their bounds` });
  for (let at = x0; at <= x1; at += 1) {
    picture.append(svg('line', { class: 'grid', x1: x(at), x2: x(at), y1: top, y2: height - bottom }), svg('text', { x: x(at), y: height - bottom + 14, 'text-anchor': 'middle' }, String(Number((10 ** at).toPrecision(1)))));
  }
  for (let at = y0; at <= y1; at += 1) {
    picture.append(svg('line', { class: 'grid', x1: left, x2: width - right, y1: y(at), y2: y(at) }), svg('text', { x: left - 6, y: y(at) + 4, 'text-anchor': 'end' }, short(10 ** at)));
  }
  picture.append(svg('text', { x: (left + width - right) / 2, y: height - 6, 'text-anchor': 'middle' }, 'Arithmetic intensity (FLOP/byte of DRAM)'), svg('text', { x: left + 6, y: top + 12 }, 'FLOP/s'));
  for (const [peak, dtype] of peaks) {
    const at = Math.log10(peak);
    const knee = memory > 0 ? Math.max(x0, at - Math.log10(memory)) : x0;
    picture.append(svg('line', { class: 'roof', x1: x(knee), x2: x(x1), y1: y(at), y2: y(at) }), svg('text', { x: x(x1) - 4, y: y(at) - 5, 'text-anchor': 'end' }, `${short(peak)}FLOP/s ${printable(dtype)}`));
  }
  if (memory > 0) {
    const slope = Math.log10(memory);
    const from = Math.max(x0, y0 - slope);
    const to = Math.min(x1, highest - slope);
    picture.append(svg('line', { class: 'roof', x1: x(from), y1: y(from + slope), x2: x(to), y2: y(to + slope) }),
      svg('text', { x: x(from) + 6, y: y(from + slope) - 12 }, `DRAM ${short(memory)}B/s`));
  }
  const most = Math.max(...dots.map(({ row }) => row.covered_ns), 1);
  const marks = dots.map(({ row, roof }) => {
    const kernel = metrics.kernels.findIndex((one) => one.kernel_name === row.matched_kernel && (!row.stage || one.stage === row.stage));
    const family = kernel < 0 ? 'other' : metrics.kernels[kernel].family;
    const mark = svg('circle', { cx: x(Math.log10(roof.intensity_flops_per_byte)), cy: y(Math.log10(roof.flops_per_s)), r: 4 + 12 * Math.sqrt(row.covered_ns / most), class: 'dot', color: familyColour(family),
      ...noted(() => [middleCut(printable(row.short_name), 100), `${short(roof.flops_per_s)}FLOP/s at ${short(roof.intensity_flops_per_byte)} FLOP/B`, `bound: ${row.bound || 'n/a'}`]),
      onclick: () => { if (kernel >= 0) chosen.set(kernel, 'roofline'); } });
    return { mark, kernel };
  });
  picture.append(...marks.map(({ mark }) => mark));
  // The five that take most time are named, unless two names would cover each other.
  const taken = [];
  for (const { row, roof } of [...dots].sort((a, b) => b.row.covered_ns - a.row.covered_ns).slice(0, 5)) {
    const text = middleCut(printable(row.short_name), 34);
    const isLeft = x(Math.log10(roof.intensity_flops_per_byte)) > width * 0.6;
    const at = { x: x(Math.log10(roof.intensity_flops_per_byte)) + (isLeft ? -18 : 18), y: y(Math.log10(roof.flops_per_s)) + 4 };
    if (taken.some((other) => Math.abs(other.y - at.y) < 12 && Math.abs(other.x - at.x) < 220)) continue;
    taken.push(at);
    picture.append(svg('text', { class: 'below', ...at, 'text-anchor': isLeft ? 'end' : 'start' }, text));
  }
  chosen.onChange((kernel) => marks.forEach(({ mark, kernel: own }) => mark.classList.toggle('chosen', own === kernel && kernel !== null)));
  node.querySelector('h2').after(el('p', { class: 'hint' }, [`A dot is a profiled launch, as large as the time its counters cover. Above the slope: served by L2.`, dots.length < metrics.counters.kernels.length ? `${metrics.counters.kernels.length - dots.length} of ${metrics.counters.kernels.length} have no dot: their counters hold no FLOPs or no DRAM bytes.` : '', peaks.size === 0 && !(memory > 0) ? 'No roof: the peaks of this GPU are not known; gpuwhy analyze --gpu-name names it.' : ''].join(' ')), el('div', { class: 'chart-box' }, picture));
}
