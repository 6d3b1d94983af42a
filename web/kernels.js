// SPDX-License-Identifier: Apache-2.0
//
// The table of kernels: one row per kernel, which opens to its stages and GPUs; search, filters, order, what
// each could win. Fifty rows are drawn until all are asked for: laying out thousands takes longer than a keystroke.

// Counters by kernel name and stage.
function countersOf(metrics) {
  const found = new Map();
  for (const [place, row] of (metrics.counters.kernels || []).entries()) {
    if (!row.matched_kernel) continue;
    const key = `${row.matched_kernel}\n${row.stage || ''}`;
    const entry = found.get(key) || { rows: [], winnable: 0, roof: null };
    entry.rows.push({ place, row });
    entry.winnable += row.winnable_ns || 0;
    const roof = Math.max(row.roofline.compute_fraction ?? -1, row.roofline.memory_fraction ?? -1);
    if (roof >= 0 && (entry.roof === null || row.covered_ns > entry.covered)) {
      entry.roof = roof;
      entry.covered = row.covered_ns;
    }
    found.set(key, entry);
  }
  return found;
}

// Launches by duration, as drawn beside a row and large in the details.
function histogramSvg(histogram, width, height, label) {
  const picture = svg('svg', { width, height, viewBox: `0 0 ${width} ${height}`, class: 'spark', role: 'img', 'aria-label': label });
  if (!histogram.length) return picture;
  const first = histogram[0][0];
  const last = histogram[histogram.length - 1][0];
  const span = Math.max(last - first + 1, 8);
  const most = Math.max(...histogram.map(([, launches]) => launches));
  const step = width / span;
  for (const [at, launches] of histogram) {
    const tall = Math.max(1.5, Math.sqrt(launches / most) * (height - 1));
    picture.append(svg('rect', { x: (at - first) * step, y: height - tall, width: Math.max(step - 0.5, 1), height: tall }));
  }
  return picture;
}

// Rows of one kernel added up: over stages and GPUs. The first of them, the largest, lends the rest.
function mergedKernels(kernels) {
  const groups = new Map();
  kernels.forEach((row, place) => {
    const group = groups.get(row.kernel_name);
    if (group) group.parts.push({ row, place });
    else groups.set(row.kernel_name, { parts: [{ row, place }] });
  });
  return Array.from(groups.values(), ({ parts }) => {
    const sum = (field) => parts.reduce((total, { row }) => total + (row[field] || 0), 0);
    const [first] = parts;
    const find = `${first.row.kernel_name}\n${first.row.short_name}`.toLowerCase();
    if (parts.length === 1) return { ...first, parts, find };
    const calls = sum('calls');
    const bins = new Map();
    for (const { row } of parts) for (const [at, launches] of row.histogram) bins.set(at, (bins.get(at) || 0) + launches);
    const row = { ...first.row, total_ns: sum('total_ns'), calls, mean_ns: sum('total_ns') / Math.max(calls, 1), kernel_fraction: sum('kernel_fraction'),
      min_ns: Math.min(...parts.map((one) => one.row.min_ns)), max_ns: Math.max(...parts.map((one) => one.row.max_ns)), histogram: Array.from(bins).sort((x, y) => x[0] - y[0]) };
    return { row, place: first.place, parts, find };
  });
}

const distinctWords = (parts, get, many) => {
  const all = new Set(parts.map(({ row }) => get(row)));
  return all.size === 1 ? printable([...all][0]) : `${all.size} ${many}`;
};

function kernelColumns(metrics, counters) {
  const isMarked = new Set(metrics.kernels.map((row) => row.stage)).size > 1;
  const columns = [
    { id: 'name', title: 'Kernel', text: true, get: ({ row }) => row.short_name },
    { id: 'share', title: 'Share', get: ({ row }) => row.kernel_fraction, key: 'kernel_fraction', show: fraction },
    { id: 'total', title: 'Total', get: ({ row }) => row.total_ns, key: 'total_ns', show: duration },
    { id: 'calls', title: 'Calls', get: ({ row }) => row.calls, key: 'calls', show: count },
    { id: 'mean', title: 'Mean', get: ({ row }) => row.mean_ns, key: 'mean_ns', show: duration },
    { id: 'spread', title: 'Spread', hint: 'launches by duration', get: ({ row }) => (row.p99_ns ? row.p99_ns / Math.max(row.median_ns, 1) : null) },
    { id: 'roof', title: '% of roof', get: ({ row }) => (counters(row) ? counters(row).roof : null), hidden: !metrics.counters.kernels, show: fraction },
    { id: 'wasted', title: 'Potential saving', get: ({ row }) => (counters(row) ? counters(row).winnable : null), hidden: !metrics.counters.kernels, show: duration },
    { id: 'family', title: 'Family', text: true, get: ({ row }) => row.family },
    { id: 'stage', title: 'Stage', text: true, get: ({ parts }) => distinctWords(parts, (row) => scopeWords(row.stage), 'stages'), hidden: !isMarked },
    { id: 'device', title: 'GPU', text: true, get: ({ parts }) => distinctWords(parts, (row) => row.device, 'GPUs'), hidden: metrics.devices.length < 2 },
  ];
  return columns.filter((column) => !column.hidden);
}

function kernelCell(column, one, isPart) {
  const { row, place } = one;
  if (column.id === 'name') {
    if (isPart) return el('td', { class: 'name part-of' }, `${scopeWords(row.stage)} · ${row.device}`);
    return el('td', { class: 'name' }, el('span', { class: 'name-line' },
      one.parts.length > 1 ? el('button', { type: 'button', class: 'opens', 'data-open': row.kernel_name, 'aria-expanded': 'false', 'aria-label': 'By stage and GPU' }, '▸') : el('span', { class: 'opens' }),
      el('button', { class: 'name-button', 'data-kernel': place, title: middleCut(printable(row.kernel_name), 400) },
        swatch(familyColour(row.family)), el('code', null, middleCut(printable(row.short_name), 72)))));
  }
  if (column.text) return el('td', { class: column.id }, middleCut(printable(column.get(one)), 40));
  if (column.id === 'spread') {
    return el('td', { class: 'n' }, histogramSvg(row.histogram, 72, 18,
      `from ${duration(row.min_ns)}${one.parts && one.parts.length > 1 ? '' : ` over a median of ${duration(row.median_ns)}`} to ${duration(row.max_ns)}`));
  }
  const number = column.get(one);
  const text = known(number) ? column.show(number) : 'n/a';
  // A sum of rows has no key of its own.
  const isSum = one.parts && one.parts.length > 1;
  const cell = column.key && !isSum ? value('td', `kernels[${place}].${column.key}`, number, text, { class: 'n' }) : el('td', { class: 'n' }, text);
  if (column.id === 'share') cell.prepend(el('span', { class: 'share-bar' }, el('span', { color: familyColour(row.family), width_fraction: number })));
  return cell;
}

function csvOf(rows) {
  const cell = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const fields = ['kernel_name', 'device', 'stage', 'family', 'total_ns', 'calls', 'mean_ns', 'min_ns', 'max_ns'];
  return `${fields.join(',')}\n${rows.map((row) => fields.map((field) => cell(String(row[field] ?? ''))).join(',')).join('\n')}\n`;
}

function kernelDetails(metrics, counters, place, timeline) {
  const row = metrics.kernels[place];
  const facts = [['total', 'total_ns', duration], ['calls', 'calls', count], ['mean', 'mean_ns', duration], ['min', 'min_ns', duration],
    ['median', 'median_ns', duration], ['p99', 'p99_ns', duration], ['max', 'max_ns', duration]];
  const same = metrics.kernels.map((other, i) => ({ other, i })).filter(({ other, i }) => other.kernel_name === row.kernel_name && i !== place);
  const measured = counters(row);
  return el('div', { class: 'details-card' },
    el('h3', null, swatch(familyColour(row.family)), middleCut(printable(row.short_name), 160)),
    timeline && launchesOf(timeline, row.kernel_name).length ? el('p', { class: 'jumps' }, el('button', { type: 'button', class: 'show-launches', onclick: () => { timeline.reveal(); toTimeline(); } }, 'Show in the timeline')) : null,
    el('p', null, el('code', { class: 'whole-name' }, middleCut(printable(row.kernel_name), 2000))),
    el('dl', null, facts.map(([label, key, show]) => el('div', null, el('dt', null, label), value('dd', `kernels[${place}].${key}`, row[key], show(row[key])))),
      el('div', null, el('dt', null, 'where'), el('dd', null, `${scopeWords(row.stage)} · ${row.device} · ${row.family}`)),
      el('div', null, el('dt', null, `grid/block${row.num_shapes > row.shapes.length ? `, ${row.shapes.length} of ${row.num_shapes}` : ''}`), el('dd', null, row.shapes.join(', ') || 'n/a'))),
    row.by_shape.length ? el('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Launches by grid and block' }, el('table', { class: 'shapes' },
      el('thead', null, el('tr', null, ['grid/block', 'calls', 'total', 'mean', 'min', 'max'].map((text) => el('th', null, text)))),
      el('tbody', null, row.by_shape.map((one, i) => el('tr', null, el('td', null, one.shape),
        [['calls', count], ['total_ns', duration], ['mean_ns', duration], ['min_ns', duration], ['max_ns', duration]].map(([key, show]) => value('td', `kernels[${place}].by_shape[${i}].${key}`, one[key], show(one[key]), { class: 'n' }))))))) : null,
    row.histogram.length ? el('figure', null, histogramSvg(row.histogram, 320, 64, 'Launches by duration'), el('figcaption', { class: 'hint' }, `Launches by duration, from ${duration(row.min_ns)} to ${duration(row.max_ns)}; heights are square roots.`)) : null,
    measured ? el('ul', { class: 'notes' }, measured.rows.map(({ row: one }) => el('li', null, printable(`${one.bound || 'n/a'}: ${one.bound_reason || one.confidence_reason || 'no reason'}`)))) : null,
    same.length ? el('p', { class: 'hint' }, `Also ${same.slice(0, 8).map(({ other }) => `${scopeWords(other.stage)} ${other.device} ${duration(other.total_ns)}`).join('; ')}`) : null);
}

function drawKernels(page, timeline) {
  const { metrics } = page;
  const node = document.getElementById('kernels');
  if (metrics.kernels.length === 0) return;
  const found = countersOf(metrics);
  const counters = (row) => found.get(`${row.kernel_name}\n${row.stage}`) || found.get(`${row.kernel_name}\n`);
  const columns = kernelColumns(metrics, counters);
  const wanted = { family: '', stage: '', device: '' };
  const open = new Set();
  const distinct = (get) => Array.from(new Set(metrics.kernels.map(get))).sort();
  let merged = mergedKernels(metrics.kernels);
  const places = new Map();
  const number = () => { places.clear(); for (const one of merged) for (const part of one.parts) places.set(part.place, one.place); };
  number();
  const copy = el('button', { type: 'button' }, 'Copy CSV');
  const details = el('div', { id: 'kernel-details', 'aria-live': 'polite' });
  let table = null;
  const pick = (field, one) => {
    wanted[field] = one;
    // Stages and GPUs are added up only as far as they are wanted; places stay those of metrics.json.
    const kept = metrics.kernels.map((row, place) => ({ row, place })).filter(({ row }) => ['family', 'stage', 'device'].every((name) => !wanted[name] || row[name] === wanted[name]));
    merged = mergedKernels(kept.map(({ row }) => row)).map((group) => {
      const parts = group.parts.map(({ row, place }) => ({ row, place: kept[place].place }));
      return { ...group, parts, place: parts[0].place };
    });
    number();
    table.draw();
  };
  const choice = (label, field, values) => (values.length < 2 ? '' : el('label', null, `${label} `, el('select', { 'data-filter': field, onchange: (event) => pick(field, event.target.value) },
    el('option', { value: '' }, 'all'), values.map((one) => el('option', { value: one }, middleCut(printable(one), 40))))));
  const isChosenRow = (one) => chosen.kernel !== null && places.get(chosen.kernel) === one.place;
  const rowOf = (one) => {
    const made = [el('tr', { 'data-row': one.place, class: isChosenRow(one) ? 'chosen' : null }, columns.map((column) => kernelCell(column, one, false)))];
    if (open.has(one.row.kernel_name)) {
      made[0].querySelector('.opens').setAttribute('aria-expanded', 'true');
      made.push(...one.parts.map((part) => el('tr', { class: 'part-row', 'data-row': part.place }, columns.map((column) => kernelCell(column, { ...part, parts: [part] }, true)))));
    }
    return made;
  };
  table = dataTable({ label: 'Kernels', columns, rows: () => merged, order: 'total', kind: 'kernels', rowOf, find: (one) => one.find,
    tools: { searchId: 'kernel-search', more: [choice('family', 'family', distinct((row) => row.family)), choice('stage', 'stage', distinct((row) => row.stage)), choice('GPU', 'device', distinct((row) => row.device)), copy],
      status: (kept) => `${kept.length} of ${plural(new Set(metrics.kernels.map((row) => row.kernel_name)).size, 'kernel')}, ${fraction(kept.reduce((sum, { row }) => sum + row.kernel_fraction, 0))} of kernel time` },
    onClick: (event) => {
      const opens = event.target.closest('[data-open]');
      if (opens) {
        const name = opens.dataset.open;
        if (!open.delete(name)) open.add(name);
        table.draw();
        return;
      }
      const row = event.target.closest('tr[data-row]');
      if (row) chosen.set(Number(row.dataset.row), 'table');
    } });
  copy.addEventListener('click', () => copyText(csvOf(table.kept().flatMap(({ parts }) => parts.map(({ row }) => row))), copy));
  chosen.onChange((kernel, from) => {
    table.body.querySelectorAll('tr').forEach((row) => row.classList.toggle('chosen', kernel !== null && !row.classList.contains('part-row') && Number(row.dataset.row) === places.get(kernel)));
    details.replaceChildren(...(kernel === null ? [] : [kernelDetails(metrics, counters, kernel, timeline)]));
    if (from === 'roofline' && kernel !== null) details.scrollIntoView({ block: 'nearest' });
  });
  for (const child of Array.from(node.children)) if (child.tagName !== 'H2') child.remove();
  node.querySelector('h2').textContent = 'Kernels';
  node.append(
    el('p', { class: 'hint' }, metrics.counters.kernels ? 'Potential saving: the measured time × its distance from the nearest roof. A row shows its details, its dot in the roofline and its launches in the timeline.'
      : 'A row shows its details and its launches in the timeline.'),
    table.nodes[0], details, ...table.nodes.slice(1),
    page.kernels_left_out ? el('p', { class: 'hint' }, `${page.kernels_left_out} rows with the least time are left out here; metrics.json has them.`) : '');
}
