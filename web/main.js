// SPDX-License-Identifier: Apache-2.0
//
// Draws the views over the sections of the page, which stay if anything fails here.
const kOrder = ['of', 'summary', 'findings', 'where', 'requests', 'timeline', 'kernels', 'transfers', 'efficiency', 'model', 'counters', 'gemm_rates', 'operators', 'steps', 'stages', 'host_phases', 'baseline', 'overhead',
  'takeaways', 'recommendations', 'environment', 'quality', 'not-here', 'files'];
const kNav = [['summary', 'Summary'], ['findings', 'Findings'], ['where', 'Time'], ['requests', 'Requests'], ['timeline', 'Timeline'], ['kernels', 'Kernels'], ['transfers', 'Copies'], ['efficiency', 'MFU'], ['model', 'Model'], ['counters', 'Roofline'], ['operators', 'Operators'], ['steps', 'Steps'],
  ['stages', 'Stages'], ['quality', 'Data quality'], ['files', 'Downloads']];

// What is not known stands together at the end, each with its reason: tiles, facts, whole sections.
function gatherMissing(absent, isEmpty) {
  const gathered = section('not-here', 'Not available in this recording');
  const list = el('ul', { class: 'notes not-here' });
  if (absent.length) list.append(el('li', null, el('b', null, 'Summary'), `: ${absent.join(', ')}`));
  for (const node of document.querySelectorAll('main > section')) {
    const title = node.querySelector('h2').textContent;
    const unknown = Array.from(node.querySelectorAll(':scope > dl > div')).filter((fact) => /^n\/a/.test(fact.querySelector('dd').textContent.trim()));
    if (unknown.length) {
      list.append(el('li', null, el('b', null, title), `: ${unknown.map((fact) => `${fact.querySelector('dt').textContent} ${fact.querySelector('dd').textContent.trim().replace(/^n\/a ?/, '')}`.trim()).join(', ')}`));
      unknown.forEach((fact) => fact.remove());
      node.querySelectorAll(':scope > dl').forEach((facts) => { if (facts.children.length === 0) facts.remove(); });
      if (node.children.length < 2) node.remove();
    }
    const reason = node.querySelector(':scope > .missing');
    if (!reason || node.children.length > 2 || node.id === 'findings' || node.id === 'quality') continue;
    list.append(el('li', null, el('b', null, title), `: ${reason.textContent}`));
    node.remove();
  }
  if (list.children.length) {
    // Without GPU work nearly all of it is missing for one reason, which the summary has.
    if (isEmpty) {
      const names = Array.from(list.querySelectorAll(':scope > li > b'), (name) => name.textContent).filter((name) => name !== 'Environment');
      gathered.append(el('p', { class: 'hint' }, `These need recorded GPU work: ${names.join(', ')}.`));
    } else {
      gathered.append(list);
    }
    document.getElementById('main').append(gathered);
  }
}

// Equal messages once, with their number; those that differ in a process only count as equal.
function groupQuality(verdict) {
  const node = document.getElementById('quality');
  if (!node) return;
  // "workload_failed (baseline): ..." is said by the verdict already.
  for (const item of node.querySelectorAll('ul.notes > li')) {
    const said = item.textContent.replace(/^\w+ \(\w+\): /, '').trim().toLowerCase();
    if (said.length > 20 && verdict.toLowerCase().includes(said)) item.remove();
  }
  for (const list of node.querySelectorAll('ul.notes')) {
    const groups = new Map();
    for (const item of Array.from(list.children)) {
      const text = item.textContent.replaceAll('\\x0a', ' ').replaceAll('\\u000a', ' ').replace(/\s+/g, ' ').replace(/\.\.$/, '.');
      const key = text.replace(/\d+/g, '#');
      const group = groups.get(key);
      if (group) group.count += 1;
      else groups.set(key, { text, count: 1 });
    }
    list.replaceChildren(...Array.from(groups.values(), (group) => el('li', null, group.count > 1 ? el('b', null, `${group.count} x `) : '', group.text)));
    if (list.children.length > 6) {
      const rest = Array.from(list.children).slice(4);
      list.after(el('details', null, el('summary', null, `${rest.length} more`), el('ul', { class: 'notes' }, rest)));
    }
  }
}

// A section of the program as a fold of the view that shows the same.
function foldInto(id, view, label) {
  const node = document.getElementById(id);
  const target = document.getElementById(view);
  if (!node) return;
  if (!target) {
    node.remove();
    return;
  }
  const rest = Array.from(node.children).filter((child) => child.tagName !== 'H2');
  node.remove();
  if (rest.length && !rest.every((child) => child.classList.contains('missing'))) target.append(el('details', { class: 'static', id }, el('summary', null, label), rest));
}

function drawHeader(timeline, model, keys) {
  const root = document.documentElement;
  const modes = ['auto', 'light', 'dark'];
  const theme = el('button', { type: 'button' }, 'Theme: auto');
  theme.addEventListener('click', () => {
    const next = modes[(modes.indexOf(root.dataset.theme || 'auto') + 1) % modes.length];
    root.dataset.theme = next;
    theme.textContent = `Theme: ${next}`;
    if (timeline) timeline.recolour();
    model.recolour();
  });
  document.querySelector('header').append(
    el('nav', { 'aria-label': 'Sections' }, kNav.filter(([id]) => document.getElementById(id)).map(([id, label]) => el('a', { href: `#${id}` }, label))),
    el('span', { class: 'header-tools' }, theme, el('button', { type: 'button', onclick: () => keys.showModal(), 'aria-label': 'Keys' }, '?'), el('button', { type: 'button', onclick: () => window.print() }, 'Print')));
}

async function draw() {
  const page = await readPage();
  const { metrics } = page;
  document.documentElement.classList.add('drawn');
  const absent = drawSummary(page);
  const timeline = drawTimeline(page);
  upgradeFindings(page, timeline);
  drawKernels(page, timeline);
  drawTransfers(metrics);
  drawOperators(metrics);
  drawRoofline(page);
  drawSteps(page, timeline);
  drawHeatmap(metrics);
  drawRequests(metrics);
  const model = drawModel(page, timeline);
  foldInto('aggregates', 'summary', 'All figures');
  foldInto('ledger', 'where', 'As a table');
  const isEmpty = metrics.capture.kernel_ns === 0 && metrics.devices.length === 0;
  if (isEmpty) document.getElementById('stages').remove();
  drawDownloads(page);
  groupQuality(metrics.verdict);
  document.querySelectorAll('main > section > .scroll, details.static > .scroll').forEach(upgradeTable);
  gatherMissing(absent, isEmpty);
  const main = document.getElementById('main');
  for (const id of kOrder) {
    const node = document.getElementById(id);
    if (node) main.append(node);
  }
  const keys = listenToKeys(timeline);
  drawHeader(timeline, model, keys);
  if (timeline) {
    timeline.resize();
    followAddress(timeline, true);
    window.addEventListener('hashchange', () => followAddress(timeline, true));
  }
  window.addEventListener('beforeprint', () => {
    document.querySelectorAll('#findings details').forEach((one) => { one.open = true; });
    if (timeline) timeline.recolour();
    model.recolour();
  });
  document.documentElement.dataset.ready = Math.round(performance.now());
  // For tests and the curious: nothing here is needed by the page.
  window.gpuwhy = { page, timeline, model, chosen };
}

draw().catch((failure) => {
  document.documentElement.dataset.failed = String(failure);
  document.getElementById('main').prepend(el('p', { class: 'missing' }, `The views could not be drawn (${failure}); the sections below are whole.`));
});
