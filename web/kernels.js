// SPDX-License-Identifier: Apache-2.0
//
// The table of kernels: search, filters, order, what each could win. Fifty rows are drawn until all
// are asked for: laying out thousands takes longer than a keystroke.
const kFirstRows = 50;

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

function kernelColumns(metrics, counters) {
  const columns = [
    { id: 'name', title: 'Kernel', text: true, get: (row) => row.short_name },
    { id: 'family', title: 'Family', text: true, get: (row) => row.family },
    { id: 'stage', title: 'Stage', text: true, get: (row) => row.stage },
    { id: 'device', title: 'GPU', text: true, get: (row) => row.device, hidden: metrics.devices.length < 2 },
    { id: 'share', title: 'Share', get: (row) => row.kernel_fraction, key: 'kernel_fraction', show: fraction },
    { id: 'total', title: 'Total', get: (row) => row.total_ns, key: 'total_ns', show: duration },
    { id: 'calls', title: 'Calls', get: (row) => row.calls, key: 'calls', show: count },
    { id: 'mean', title: 'Mean', get: (row) => row.mean_ns, key: 'mean_ns', show: duration },
    { id: 'spread', title: 'Spread', get: (row) => (row.p99_ns ? row.p99_ns / Math.max(row.median_ns, 1) : null) },
    { id: 'roof', title: '% of roof', get: (row) => (counters(row) ? counters(row).roof : null), hidden: !metrics.counters.kernels, show: fraction },
    { id: 'wasted', title: 'Can win', get: (row) => (counters(row) ? counters(row).winnable : null), hidden: !metrics.counters.kernels, show: duration },
  ];
  return columns.filter((column) => !column.hidden);
}

function kernelCell(column, row, place) {
  if (column.id === 'name') {
    return el('td', { class: 'name' }, el('button', { class: 'name-button', 'data-kernel': place, title: middleCut(printable(row.kernel_name), 400) },
      swatch(familyColour(row.family)), el('code', null, middleCut(printable(row.short_name), 64))));
  }
  if (column.text) return el('td', null, middleCut(printable(column.get(row)), 40));
  if (column.id === 'spread') {
    return el('td', { class: 'n' }, histogramSvg(row.histogram, 72, 18,
      `from ${duration(row.min_ns)} over a median of ${duration(row.median_ns)} to ${duration(row.max_ns)}`));
  }
  const number = column.get(row);
  const text = known(number) ? column.show(number) : 'n/a';
  if (!column.key) return el('td', { class: 'n' }, text);
  const cell = value('td', `kernels[${place}].${column.key}`, number, text, { class: 'n' });
  if (column.id === 'share') cell.prepend(el('span', { class: 'share-bar' }, el('span', { color: familyColour(row.family), width_fraction: number })));
  return cell;
}

function csvOf(rows) {
  const cell = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const fields = ['kernel_name', 'device', 'stage', 'family', 'total_ns', 'calls', 'mean_ns', 'min_ns', 'max_ns'];
  return `${fields.join(',')}\n${rows.map(({ row }) => fields.map((field) => cell(String(row[field] ?? ''))).join(',')).join('\n')}\n`;
}

function kernelDetails(metrics, counters, place) {
  const row = metrics.kernels[place];
  const facts = [['total', 'total_ns', duration], ['calls', 'calls', count], ['mean', 'mean_ns', duration], ['min', 'min_ns', duration],
    ['median', 'median_ns', duration], ['p99', 'p99_ns', duration], ['max', 'max_ns', duration]];
  const same = metrics.kernels.map((other, i) => ({ other, i })).filter(({ other, i }) => other.kernel_name === row.kernel_name && i !== place);
  const measured = counters(row);
  return el('div', { class: 'details-card' },
    el('h3', null, swatch(familyColour(row.family)), middleCut(printable(row.short_name), 160)),
    el('p', null, el('code', { class: 'whole-name' }, middleCut(printable(row.kernel_name), 2000))),
    el('dl', null, facts.map(([label, key, show]) => el('div', null, el('dt', null, label), value('dd', `kernels[${place}].${key}`, row[key], show(row[key])))),
      el('div', null, el('dt', null, 'where'), el('dd', null, `${printable(row.stage)} · ${row.device} · ${row.family}`)),
      el('div', null, el('dt', null, `grid/block${row.num_shapes > row.shapes.length ? `, ${row.shapes.length} of ${row.num_shapes}` : ''}`), el('dd', null, row.shapes.join(', ') || 'n/a'))),
    row.histogram.length ? histogramSvg(row.histogram, 320, 64, 'Launches by duration') : null,
    measured ? el('ul', { class: 'notes' }, measured.rows.map(({ row: one }) => el('li', null, printable(`${one.bound || 'n/a'}: ${one.bound_reason || one.confidence_reason || 'no reason'}`)))) : null,
    same.length ? el('p', { class: 'hint' }, `Also ${same.slice(0, 8).map(({ other }) => `${printable(other.stage)} ${other.device} ${duration(other.total_ns)}`).join('; ')}`) : null);
}

function drawKernels(page) {
  const { metrics } = page;
  const node = document.getElementById('kernels');
  if (metrics.kernels.length === 0) return;
  const found = countersOf(metrics);
  const counters = (row) => found.get(`${row.kernel_name}\n${row.stage}`) || found.get(`${row.kernel_name}\n`);
  const columns = kernelColumns(metrics, counters);
  const state = { text: '', family: '', stage: '', order: 'total', down: true, all: false };
  const rows = metrics.kernels.map((row, place) => ({ row, place, find: `${row.kernel_name}\n${row.short_name}`.toLowerCase() }));
  const distinct = (get) => Array.from(new Set(metrics.kernels.map(get))).sort();
  const choice = (label, values, onPick) => el('label', null, `${label} `, el('select', { onchange: (event) => onPick(event.target.value) },
    el('option', { value: '' }, 'all'), values.map((one) => el('option', { value: one }, middleCut(printable(one), 40)))));
  const search = el('input', { type: 'search', placeholder: 'name or part of it', 'aria-label': 'Search kernels', id: 'kernel-search' });
  const status = el('span', { class: 'hint', role: 'status' });
  const copy = el('button', { type: 'button' }, 'Copy CSV');
  const more = el('button', { type: 'button', class: 'more' });
  const body = el('tbody');
  const heads = columns.map((column) => el('th', { scope: 'col', class: column.text ? column.id : `n ${column.id}` },
    el('button', { type: 'button', 'data-sort': column.id }, column.title)));
  const details = el('div', { id: 'kernel-details', 'aria-live': 'polite' });
  const table = el('table', { class: 'kernels' }, el('caption', null, 'Kernels'), el('thead', null, el('tr', null, heads)), body);

  const wanted = () => {
    const text = state.text.toLowerCase();
    const column = columns.find((one) => one.id === state.order);
    const kept = rows.filter(({ row, find }) => (!text || find.includes(text)) && (!state.family || row.family === state.family) && (!state.stage || row.stage === state.stage));
    const sign = state.down ? -1 : 1;
    return kept.sort((a, b) => {
      const x = column.get(a.row);
      const y = column.get(b.row);
      if (x === y) return a.place - b.place;
      if (x === null || x === undefined) return 1;
      if (y === null || y === undefined) return -1;
      return (x < y ? -1 : 1) * sign;
    });
  };
  const draw = () => {
    const kept = wanted();
    const shown = state.all ? kept : kept.slice(0, kFirstRows);
    body.replaceChildren(...shown.map(({ row, place }) => el('tr', { 'data-row': place, class: place === chosen.kernel ? 'chosen' : null }, columns.map((column) => kernelCell(column, row, place)))));
    heads.forEach((head, i) => {
      if (columns[i].id === state.order) head.setAttribute('aria-sort', state.down ? 'descending' : 'ascending');
      else head.removeAttribute('aria-sort');
    });
    const share = kept.reduce((sum, { row }) => sum + row.kernel_fraction, 0);
    status.textContent = `${kept.length} of ${rows.length} rows, ${fraction(share)} of kernel time`;
    more.hidden = shown.length === kept.length;
    more.textContent = `Show all ${kept.length}`;
  };
  search.addEventListener('input', () => { state.text = search.value; draw(); });
  more.addEventListener('click', () => { state.all = true; draw(); });
  copy.addEventListener('click', () => copyText(csvOf(wanted()), copy));
  table.addEventListener('click', (event) => {
    const sort = event.target.closest('[data-sort]');
    if (sort) {
      state.down = state.order === sort.dataset.sort ? !state.down : !columns.find((one) => one.id === sort.dataset.sort).text;
      state.order = sort.dataset.sort;
      draw();
      return;
    }
    const row = event.target.closest('tr[data-row]');
    if (row) chosen.set(Number(row.dataset.row), 'table');
  });
  chosen.onChange((kernel, from) => {
    body.querySelectorAll('tr').forEach((row) => row.classList.toggle('chosen', Number(row.dataset.row) === kernel));
    details.replaceChildren(...(kernel === null ? [] : [kernelDetails(metrics, counters, kernel)]));
    if (from === 'roofline' && kernel !== null) details.scrollIntoView({ block: 'nearest' });
  });
  for (const child of Array.from(node.children)) if (child.tagName !== 'H2') child.remove();
  node.querySelector('h2').textContent = 'Kernels';
  node.append(
    el('p', { class: 'hint' }, metrics.counters.kernels ? 'Can win: the measured time × its distance from the nearest roof. A row shows its details, its dot in the roofline and its launches in the timeline.'
      : 'A row shows its details and its launches in the timeline. What bounds a kernel: n/a (needs an ncu capture).'),
    el('div', { class: 'tools' }, search, choice('family', distinct((row) => row.family), (one) => { state.family = one; draw(); }),
      choice('stage', distinct((row) => row.stage), (one) => { state.stage = one; draw(); }), copy, status),
    details, el('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Table of kernels' }, table), more,
    page.kernels_left_out ? el('p', { class: 'hint' }, `${page.kernels_left_out} rows with the least time are left out here; metrics.json has them.`) : '');
  draw();
}
