// SPDX-License-Identifier: Apache-2.0
//
// Findings: foldable, with ways to what they speak of in the timeline and the tables.
const kOpenFindings = 2;
const kFindingPlaces = 5;
const kEvidenceViews = { kernels: 'kernels', families: 'kernels', kernel_chains: 'kernels', ledgers: 'where', idle_causes: 'timeline', counters: 'counters', structure: 'model', operators: 'operators', copies: 'transfers',
  collective_rates: 'transfers', gemm_rates: 'gemm_rates', efficiency: 'efficiency', steps: 'steps', aggregates: 'aggregates', stages: 'stages', devices: 'where', host_phases: 'host_phases', tool_messages: 'quality', data_quality: 'quality' };

// "kernels[stage=all,device=cuda:0].total_ns" as its list and what it picks; null for other texts.
function evidenceParts(key) {
  const found = /^([a-z_]+)(?:\[(.*)\])?/.exec(key);
  if (!found) return null;
  const picks = {};
  for (const [, name, quoted, plain] of (found[2] || '').matchAll(/([a-z_]+)=(?:"((?:[^"\\]|\\.)*)"|([^,\]]*))/g)) picks[name] = quoted === undefined ? plain : quoted.replace(/\\(.)/g, '$1');
  return { list: found[1], picks };
}

function kernelsOfFinding(metrics, finding) {
  const rows = [];
  for (const key of finding.evidence) {
    const parts = evidenceParts(key);
    if (!parts || !['kernels', 'families'].includes(parts.list)) continue;
    const wanted = Object.entries(parts.picks);
    metrics.kernels.forEach((row, place) => { if (wanted.length && wanted.every(([name, text]) => String(row[name]) === text)) rows.push({ row, place }); });
  }
  if (rows.length === 0 && finding.bucket === 'comm') metrics.kernels.forEach((row, place) => { if (row.family === 'communication') rows.push({ row, place }); });
  const seen = new Set();
  return rows.filter(({ row }) => !seen.has(row.kernel_name) && seen.add(row.kernel_name)).slice(0, kFindingPlaces);
}

function toTimeline() { document.getElementById('timeline').scrollIntoView(); }

// Causes of the gaps that a finding speaks of: those its evidence names, else its bucket.
function gapCauses(finding) {
  const named = finding.evidence.map(evidenceParts).filter((parts) => parts && parts.list === 'idle_causes').map(({ picks }) => causeOf(picks.bucket, picks.kind));
  return named.length ? named : [finding.bucket];
}

// Buttons that go where a finding is to be seen: gaps by cause, kernels by name.
function findingPlaces(page, timeline, finding) {
  const { metrics } = page;
  const made = [];
  if (timeline && kIdle.includes(finding.bucket)) {
    const gaps = longestGaps(timeline, finding.device || '', gapCauses(finding), kFindingPlaces);
    if (gaps.length) {
      made.push(el('p', { class: 'jumps' }, el('span', null, 'Longest gaps'), gaps.map((gap) => el('button', { type: 'button', class: 'to-gap', onclick: () => { goToGap(timeline, gap); toTimeline(); } },
        `${duration(gap.length)} at ${exact(gap.start, timeline.data.duration_ns)}`))));
    }
  }
  if (timeline && finding.bucket === 'sync') {
    const calls = longestCalls(timeline, 'sync', kFindingPlaces);
    if (calls.length) {
      made.push(el('p', { class: 'jumps' }, el('span', null, 'Longest waits'), calls.map((call) => el('button', { type: 'button', class: 'to-call', onclick: () => { timeline.frame(call.start, call.length, 1); timeline.select({ host: call.host }); toTimeline(); } },
        `${duration(call.length)} ${middleCut(printable(timeline.host.name(call.host)), 40)}`))));
    }
  }
  const kernels = kernelsOfFinding(metrics, finding);
  if (kernels.length) {
    made.push(el('p', { class: 'jumps' }, el('span', null, plural(kernels.length, 'kernel')), kernels.map(({ row, place }) => el('button', { type: 'button', class: 'to-kernel', onclick: () => {
      chosen.kernel = null;  // chosen again, its launch is shown again
      chosen.set(place, 'finding');
      if (timeline) toTimeline();
    } }, middleCut(printable(row.short_name), 48)))));
  }
  return made;
}

// Evidence in a view of the page leads there.
function linkEvidence(item) {
  for (const chip of item.querySelectorAll('.evidence li')) {
    const words = chip.querySelector('span');
    const parts = words ? evidenceParts(chip.dataset.evidence || '') : null;
    const view = parts ? kEvidenceViews[parts.list] : null;
    if (!view) continue;
    const link = el('a', { href: `#${view}`, 'data-view': view });
    words.replaceWith(link);
    link.append(words);
  }
}

// Its id is what gpuwhy explain takes: at its end, not in its name.
function explainWith(id) {
  return el('p', { class: 'explain' }, 'More about this: ', el('code', null, `gpuwhy explain ${printable(id)}`));
}

const speedUp = (saving, window) => (saving > 0 && saving < window * 0.95 ? `up to ${factor(window / (window - saving))} faster` : '');

// The static list becomes foldable, two open; its bar tells the saving at a glance.
function upgradeFindings(page, timeline) {
  const { metrics } = page;
  const node = document.getElementById('findings');
  const most = Math.max(...metrics.findings.map((row) => row.saving_ns), 1);
  node.querySelectorAll('li.finding').forEach((item, i) => {
    const finding = metrics.findings[i];
    if (!finding) return;
    const title = item.querySelector('h3');
    const worth = item.querySelector('.worth');
    const label = finding.blocker ? 'fix this first' : finding.saving_ns > 0 ? `at most ${duration(finding.saving_ns)}` : 'not estimated';
    const place = [timesWords(metrics, finding.stage), finding.device].filter((part) => part).join(' · ');
    const summary = el('summary', null,
      el('span', { class: 'finding-name' }, ...Array.from(title.childNodes).filter((node) => node.nodeName !== 'CODE')),
      el('span', { class: 'finding-place' }, printable(place)),
      el('span', { class: 'saving', 'aria-hidden': 'true' }, el('span', { width_fraction: finding.blocker ? 1 : finding.saving_ns / most, class: finding.blocker ? 'blocker' : '' })),
      finding.blocker || !(finding.saving_ns > 0) ? el('span', { class: 'finding-worth' }, label) : value('span', `findings[${i}].saving_ns`, finding.saving_ns, label, { class: 'finding-worth' }),
      el('span', { class: 'finding-sure' }, `${finding.confidence} confidence`));
    title.remove();
    worth.remove();
    // A blocker is the verdict itself: only what to do about it is new here.
    const sentence = item.querySelector('p');
    if (finding.blocker && sentence && metrics.verdict.toLowerCase().includes(finding.sentence.toLowerCase())) sentence.remove();
    linkEvidence(item);
    const rest = Array.from(item.childNodes);
    const evidence = rest.findIndex((child) => child.classList && child.classList.contains('evidence'));
    rest.splice(evidence < 0 ? rest.length : evidence, 0, ...findingPlaces(page, timeline, finding));
    item.replaceChildren(el('details', { open: i < kOpenFindings }, summary, rest, explainWith(finding.id)));
  });
  foldChecks(page, node);
}

// Rules that did not speak: which looked and found nothing, and which could not look.
function foldChecks({ metrics, rules = [] }, node) {
  const silent = metrics.silent_rules || [];
  const fold = (title, rows) => {
    if (rows.length) node.append(el('details', { class: 'checks' }, el('summary', null, title), el('ul', { class: 'notes' }, rows)));
  };
  const spoke = new Set([...metrics.findings, ...silent].map((row) => row.id));
  const passed = metrics.devices.length ? rules.filter((rule) => !spoke.has(rule.id)) : [];
  fold(`${plural(passed.length, 'check')} found nothing`, passed.map((rule) => el('li', null, el('b', null, rule.id.replaceAll('_', ' ')), rule.title ? `: ${rule.title}` : '')));
  fold(`${plural(silent.length, 'check')} could not run on this recording`, silent.map((row) => el('li', null, el('b', null, printable(row.id).replaceAll('_', ' ')), `: ${printable(row.reason)}`)));
}
