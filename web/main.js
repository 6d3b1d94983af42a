// SPDX-License-Identifier: Apache-2.0
//
// Draws the views over the sections that stand in the page. Whatever fails here leaves those.
const kOrder = ['summary', 'where', 'findings', 'efficiency', 'timeline', 'model', 'kernels', 'counters', 'steps', 'stages', 'ledger', 'operators', 'overhead', 'aggregates', 'environment', 'quality', 'not-here', 'files'];
const kNav = [['summary', 'Summary'], ['findings', 'Fix first'], ['efficiency', 'Speed of light'], ['timeline', 'Timeline'], ['model', 'Model'], ['kernels', 'Kernels'], ['counters', 'Roofline'], ['steps', 'Steps'], ['stages', 'Stages'], ['quality', 'Data quality']];

// Sections that only say why they are empty stand together at the end, each with its reason.
function gatherMissing() {
  const gathered = section('not-here', 'What is not here, and how to get it');
  const list = el('ul', { class: 'notes not-here' });
  for (const node of document.querySelectorAll('main > section')) {
    const reason = node.querySelector(':scope > .missing');
    if (!reason || node.children.length > 2 || node.id === 'findings' || node.id === 'quality') continue;
    list.append(el('li', null, el('b', null, node.querySelector('h2').textContent), `: ${reason.textContent}`));
    node.remove();
  }
  if (list.children.length) {
    gathered.append(list);
    document.getElementById('main').append(gathered);
  }
}

function drawHeader(timeline, model) {
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
    theme, el('button', { type: 'button', onclick: () => window.print() }, 'Print'));
}

async function draw() {
  const page = await readPage();
  const { metrics } = page;
  document.documentElement.classList.add('drawn');
  drawSummary(metrics);
  const timeline = drawTimeline(page);
  drawKernels(page);
  drawRoofline(page);
  drawSteps(page, timeline);
  drawHeatmap(metrics);
  const model = drawModel(page, timeline);
  foldStatic(document.getElementById('aggregates'), 'All figures');
  gatherMissing();
  const main = document.getElementById('main');
  for (const id of kOrder) {
    const node = document.getElementById(id);
    if (node) main.append(node);
  }
  drawHeader(timeline, model);
  window.addEventListener('beforeprint', () => {
    document.querySelectorAll('#findings details').forEach((one) => { one.open = true; });
    if (timeline) timeline.recolour();
    model.recolour();
  });
  document.documentElement.dataset.ready = Math.round(performance.now());
  // For tests and the curious: nothing here is needed by the page.
  window.llmprof = { page, timeline, model, chosen };
}

draw().catch((failure) => {
  document.documentElement.dataset.failed = String(failure);
  document.getElementById('main').prepend(el('p', { class: 'missing' }, `The views could not be drawn (${failure}); the sections below are whole.`));
});
