// SPDX-License-Identifier: Apache-2.0
//
// Decode steps one by one: how long they take, how that changes, which stand out. Steps far from the
// others are one bar at the right, so that they do not flatten the rest.
function quantile(sorted, part) {
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(part * sorted.length) - 1))];
}

// Round values from 0 up to one not below the largest.
function ticks(most) {
  const step = niceStep(most / 4);
  return Array.from({ length: Math.ceil(most / step - 1e-9) + 1 }, (_, i) => i * step);
}

function stepHistogram(inside, outside, width, height) {
  const picture = svg('svg', { viewBox: `0 0 ${width} ${height}`, class: 'chart', role: 'img', 'aria-label': `Lengths of ${inside.length + outside.length} steps` });
  const [left, bottom, top] = [44, 40, 22];
  const low = inside[0];
  const high = Math.max(inside[inside.length - 1], low + 1);
  const bins = new Array(Math.min(40, Math.max(8, Math.ceil(Math.sqrt(inside.length) * 2)))).fill(0);
  for (const length of inside) bins[Math.min(bins.length - 1, Math.floor((length - low) / (high - low) * bins.length))] += 1;
  const marks = ticks(Math.max(...bins, outside.length));
  const most = marks[marks.length - 1];
  const room = width - left - 14 - (outside.length ? 96 : 0);
  const tall = height - bottom - top;
  const y = (steps) => top + tall - steps / most * tall;
  for (const mark of marks) picture.append(svg('line', { class: 'grid', x1: left, x2: left + room, y1: y(mark), y2: y(mark) }), svg('text', { x: left - 6, y: y(mark) + 4, 'text-anchor': 'end' }, String(mark)));
  const step = room / bins.length;
  bins.forEach((steps, i) => {
    const at = Math.max(steps ? 1.5 : 0, steps / most * tall);
    picture.append(svg('rect', { class: 'bin', x: left + i * step, y: top + tall - at, width: Math.max(step - 1, 1), height: at, ...noted(() => [plural(steps, 'step'), `${exact(low + (high - low) * i / bins.length, (high - low) * 100, high)} to ${exact(low + (high - low) * (i + 1) / bins.length, (high - low) * 100, high)}`]) }));
  });
  for (const part of [0, 0.5, 1]) picture.append(svg('text', { x: left + room * part, y: height - bottom + 14, 'text-anchor': part === 0 ? 'start' : part === 1 ? 'end' : 'middle' }, exact(low + (high - low) * part, (high - low) * 100, high)));
  picture.append(svg('text', { x: left + room / 2, y: height - 6, 'text-anchor': 'middle' }, 'duration of a step'), svg('text', { x: 2, y: 12 }, 'steps'));
  if (outside.length) {
    const at = Math.max(2, outside.length / most * tall);
    const faster = outside.filter((length) => length < low).length;
    picture.append(svg('rect', { class: 'bin far', x: width - 74, y: top + tall - at, width: 40, height: at }), svg('text', { x: width - 54, y: top + tall - at - 5, 'text-anchor': 'middle' }, plural(outside.length, 'outlier')),
      svg('text', { x: width - 54, y: height - bottom + 14, 'text-anchor': 'middle' }, faster === outside.length ? `from ${duration(outside[0])}` : `to ${duration(outside[outside.length - 1])}`));
    if (faster) picture.append(svg('text', { x: width - 54, y: height - 6, 'text-anchor': 'middle' }, `${faster} faster`));
  }
  return picture;
}

function stepCourse(steps, far, width, height, show) {
  const picture = svg('svg', { viewBox: `0 0 ${width} ${height}`, class: 'chart', role: 'img', 'aria-label': 'Length of each step by its number' });
  const [left, bottom, top] = [60, 40, 22];
  const marks = ticks(Math.max(...steps.map((one) => one.duration)));
  const most = marks[marks.length - 1];
  const stride = Math.max(1, Math.floor(steps.length / 1500));
  const x = (i) => left + i / Math.max(steps.length - 1, 1) * (width - left - 14);
  const y = (length) => height - bottom - length / most * (height - bottom - top);
  for (const mark of marks) picture.append(svg('line', { class: 'grid', x1: left, x2: width - 14, y1: y(mark), y2: y(mark) }), svg('text', { x: left - 6, y: y(mark) + 4, 'text-anchor': 'end' }, clock(mark, marks[1])));
  const numbers = ticks(Math.max(steps.length - 1, 1)).filter((i) => i <= steps.length - 1 && Number.isInteger(i));
  for (const i of numbers) picture.append(svg('text', { x: x(i), y: height - bottom + 14, 'text-anchor': i === 0 ? 'start' : 'middle' }, String(steps[i].number)));
  picture.append(svg('text', { x: (left + width) / 2, y: height - 6, 'text-anchor': 'middle' }, 'number of the step'), svg('text', { x: 2, y: 12 }, 'duration'));
  steps.forEach((one, i) => {
    const isFar = far.has(i);
    if (i % stride !== 0 && !isFar) return;
    picture.append(svg('circle', { class: isFar ? 'step far' : 'step', cx: x(i), cy: y(one.duration), r: isFar ? 4 : 2, ...noted(() => [`step ${one.number}`, duration(one.duration), one.tokens === null ? '' : plural(one.tokens, 'token')]), onclick: () => show(one) }));
  });
  return picture;
}

function drawSteps(page, timeline) {
  const node = section('steps', 'Decode steps');
  document.getElementById('stages').before(node);
  let steps = page.timeline ? page.timeline.instances.filter((one) => one.isStep && !one.isOpen && one.duration > 0 && /decode/.test(page.timeline.stages[one.stage].stage)) : [];
  if (steps.length < 2) {
    node.append(el('p', { class: 'missing' }, 'n/a (the recording marks no decode steps); docs/marking.md says how.'));
    return;
  }
  const place = page.metrics.stages.findIndex((row) => row.stage === page.timeline.stages[steps[0].stage].stage);
  const stage = page.metrics.stages[place];
  // Periods where each step but the last has one: the host leaves its mark before the GPU is done.
  const lengths = page.metrics.steps.findIndex((row) => row.stage === stage.stage);
  const periods = lengths >= 0 ? page.metrics.steps[lengths].periods_ns || [] : [];
  const hasPeriods = periods.length > 1 && periods.length === steps.length - 1;
  if (hasPeriods) steps = periods.map((period, i) => ({ ...steps[i], duration: period }));
  const sorted = steps.map((one) => one.duration).sort((a, b) => a - b);
  const [q1, median, q3] = [quantile(sorted, 0.25), quantile(sorted, 0.5), quantile(sorted, 0.75)];
  const reach = Math.max(3 * (q3 - q1), 0.05 * median);
  const isFar = (length) => length > q3 + reach || length < q1 - reach;
  const inside = sorted.filter((length) => !isFar(length));
  const outside = sorted.filter(isFar);
  const far = new Set(steps.map((one, i) => (isFar(one.duration) ? i : -1)).filter((i) => i >= 0));
  const show = (one) => {
    if (!timeline) return;
    timeline.show(one.start - 0.2 * one.duration, one.start + 1.2 * one.duration);
    document.getElementById('timeline').scrollIntoView();
  };
  const few = steps.length < 100 ? '. So few steps have no p99: it would be the slowest one.' : '.';
  node.append(
    hasPeriods ? el('p', { class: 'hint' }, `${steps.length} periods, from the first kernel of a step to that of the next; median `,
      value('b', `steps[${lengths}].period_median_ns`, page.metrics.steps[lengths].period_median_ns, duration(page.metrics.steps[lengths].period_median_ns)), few)
      : el('p', { class: 'hint' }, `${steps.length} steps of the recording, on the host; median `, value('b', `stages[${place}].host_median_ns`, stage.host_median_ns, duration(stage.host_median_ns)), ', slowest ',
      value('b', `stages[${place}].host_max_ns`, stage.host_max_ns, duration(stage.host_max_ns)), few),
    el('div', { class: 'pair' }, el('div', { class: 'chart-box' }, stepHistogram(inside, outside, 460, 200)), el('div', { class: 'chart-box' }, stepCourse(steps, far, 460, 200, show))));
  const worst = Array.from(far).sort((a, b) => steps[b].duration - steps[a].duration).slice(0, 8);
  if (worst.length) node.append(el('div', { class: 'jumps' }, el('span', null, 'Outliers'), worst.map((i) => el('button', { type: 'button', onclick: () => show(steps[i]) }, `step ${steps[i].number}: ${duration(steps[i].duration)}`))));
}
