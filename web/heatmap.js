// SPDX-License-Identifier: Apache-2.0
//
// Stages against families: a table whose cells are tinted by their share of the stage's windows.
function drawHeatmap(metrics) {
  const node = document.getElementById('stages');
  const families = familyTimes(metrics, null, null).map(([family]) => family);
  const windows = new Map();
  for (const ledger of metrics.ledgers) {
    const sum = windows.get(ledger.stage) || { window: 0, idle: 0 };
    sum.window += ledger.window_ns;
    sum.idle += kIdle.reduce((total, bucket) => total + ledger.buckets_ns[bucket], 0);
    windows.set(ledger.stage, sum);
  }
  const stages = Array.from(windows.keys()).filter((stage) => metrics.kernels.some((row) => row.stage === stage));
  if (stages.length === 0 || families.length === 0) return;
  const cell = (part, colour, stage, family) => {
    const made = el('td', { class: 'n heat', color: colour, 'data-stage': stage, 'data-family': family }, part === 0 ? '–' : fraction(part));
    made.style.setProperty('--part', `${Math.min(1, part) * 70}%`);
    return made;
  };
  const rows = stages.map((stage) => {
    const { window, idle } = windows.get(stage);
    const times = new Map(familyTimes(metrics, stage, null));
    return el('tr', null, el('th', { scope: 'row' }, scopeWords(stage)), families.map((family) => cell((times.get(family) || 0) / Math.max(window, 1), familyColour(family), stage, family)), cell(idle / Math.max(window, 1), 'var(--i-tail)', stage, 'idle'));
  });
  node.append(el('h3', null, 'Stage by family'), el('p', { class: 'hint' }, 'Kernel time over the windows of the stage; where kernels overlap the row sums to more than what is not idle.'),
    el('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Table of stages by family' }, el('table', { class: 'heatmap' }, el('caption', { class: 'same' }, 'Share of a stage by family'),
      el('thead', null, el('tr', null, el('th', { scope: 'col' }, 'Stage'), families.map((family) => el('th', { scope: 'col', class: 'n' }, family)), el('th', { scope: 'col', class: 'n' }, 'idle'))), el('tbody', null, rows))));
}
