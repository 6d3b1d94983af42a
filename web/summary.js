// SPDX-License-Identifier: Apache-2.0
//
// What is read first: tiles, where the time goes, how far from the possible.
const tile = (label, key, number, text, small) => ({ label, key, number, text, small });

const speedOf = (sequences) => (known(sequences) ? `in decode, ${sequences} sequence${sequences === 1 ? '' : 's'} together` : 'in decode');

// How busy a GPU was: of the ledger that the verdict is of.
function busyTile(metrics, device, i) {
  const place = metrics.ledgers.findIndex((row) => row.stage === device.busy_stage && row.device === device.device);
  const recorded = duration(metrics.capture.duration_ns);
  if (place < 0) return tile(`${device.device} busy`, `devices[${i}].busy_fraction`, device.busy_fraction, fraction(device.busy_fraction), `of ${recorded} recorded`);
  const ledger = metrics.ledgers[place];
  const only = ['copy', 'comm'].filter((bucket) => ledger.base_ns > 0 && ledger.buckets_ns[bucket] * 10 >= ledger.base_ns).map((bucket) => `; ${fraction(ledger.buckets_ns[bucket] / ledger.base_ns)} ${kBucketWords[bucket]}`).join('');
  const what = ledger.stage === 'capture' ? '' : ` of ${ledger.stage === 'steady' ? 'the steady phase' : printable(ledger.stage)}`;
  return tile(`${device.device} busy`, `ledgers[${place}].busy_fraction`, ledger.busy_fraction, fraction(ledger.busy_fraction), `of ${duration(ledger.base_ns)}${what}; ${recorded} recorded${only}`);
}

// The length of one step, as the program has it: page.step.
function stepTile(step) {
  return step ? tile(step.label, step.key || null, step.time_ns, duration(step.time_ns), step.note) : null;
}

// Tokens per second in decode; of the tokens of the steps that were recorded where decode has no rate.
function rateTile(metrics, step) {
  const speed = metrics.aggregates.decode_tokens_per_s;
  if (!known(speed) && step && known(step.tokens_per_s)) return tile('Tokens per second', null, step.tokens_per_s, Math.round(step.tokens_per_s).toLocaleString('en-US'), step.rate_note);
  const isDecode = (row) => row.stage === 'decode' || row.stage === 'decode_step';
  const isUncounted = metrics.stages.some(isDecode) && !metrics.stages.some((row) => isDecode(row) && known(row.tokens));
  return tile('Tokens per second', 'aggregates.decode_tokens_per_s', speed, rate(speed), known(speed) ? speedOf(metrics.aggregates.decode_sequences) : (!isUncounted && metrics.aggregates.tpot.reason) || 'the marks carry no token counts');
}

// Whether times of tokens can be expected. A recording of training has none, and its section on times says so.
function makesTokens(metrics) {
  const { ttft, tpot } = metrics.aggregates;
  return known(ttft.p50_ns) || known(tpot.p50_ns) || Boolean(metrics.requests) || metrics.stages.some((row) => ['prefill', 'decode', 'decode_step', 'mixed', 'verify', 'draft'].includes(row.stage));
}

// What is not known takes no room: it is named below with its reason.
function tiles({ metrics, step }) {
  const { ttft, tpot } = metrics.aggregates;
  const areImpossible = metrics.findings.some((row) => row.id === 'impossible_rows');
  const made = areImpossible ? [] : metrics.devices.slice(0, 4).map((device, i) => busyTile(metrics, device, i));
  const hasRates = makesTokens(metrics);
  if (hasRates) made.push(tile('Time to first token', 'aggregates.ttft.p50_ns', ttft.p50_ns, duration(ttft.p50_ns), ttft.reason || `median of ${ttft.n} prefill${ttft.n === 1 ? '' : 's'}`));
  if (hasRates) made.push(tile('Time per token', 'aggregates.tpot.p50_ns', tpot.p50_ns, duration(tpot.p50_ns), tpot.reason || `median of ${tpot.n}: ${tpot.basis || 'steps'}`));
  // Of fewer than a hundred steps the 99th percentile is the slowest, and is called that.
  if (hasRates) made.push(tile(tpot.n < 100 ? 'Slowest token' : 'Time per token, p99', 'aggregates.tpot.p99_ns', tpot.p99_ns, duration(tpot.p99_ns), tpot.reason || `of ${plural(tpot.n, 'step')}`));
  const hasFailed = (metrics.contract || []).some((row) => row.fatal);
  if (known(metrics.aggregates.program_ns) && !hasFailed) made.push(tile('Program', 'aggregates.program_ns', metrics.aggregates.program_ns, duration(metrics.aggregates.program_ns), 'from start to end, without a profiler'));
  if (step && !known(tpot.p50_ns)) made.push(stepTile(step));
  const tokenRate = rateTile(metrics, step);
  if (hasRates || known(tokenRate.number)) made.push(tokenRate);
  const stages = metrics.efficiency ? metrics.efficiency.stages : [];
  const place = Math.max(stages.findIndex((row) => row.stage === 'decode'), 0);
  const light = stages.length ? stages[place].sol.wall_fraction : null;
  made.push(tile('Of theoretical peak', `efficiency.stages[${place}].sol.wall_fraction`, light, fraction(light), known(light) ? `${printable(stages[place].stage)}: of the speed this GPU could reach with this model` : 'needs analyze --model'));
  const best = metrics.findings.findIndex((row) => !row.blocker && row.saving_ns > 0);
  if (best >= 0) {
    const finding = metrics.findings[best];
    made.push(tile('Top opportunity, at most', `findings[${best}].saving_ns`, finding.saving_ns, duration(finding.saving_ns), [`${fraction(finding.saving_fraction)} of ${finding.stage === 'capture' ? 'the recording' : finding.stage === 'steady' ? 'the steady phase' : timesWords(metrics, finding.stage)} (${duration(finding.window_ns)})`, speedUp(finding.saving_ns, finding.window_ns)].filter((part) => part).join(', ')));
  }
  const absent = made.filter((one) => !known(one.number));
  return { absent: metrics.devices.length === 0 ? [] : absent.map((one) => `${one.label.toLowerCase()} (${one.small})`), node: el('div', { class: 'tiles' }, made.filter((one) => known(one.number)).map((one) => el('div', { class: 'tile' }, el('div', { class: 'tile-label' }, one.label),
    one.key ? value('div', one.key, one.number, one.text, { class: 'tile-value' }) : el('div', { class: 'tile-value' }, one.text), el('div', { class: 'tile-note' }, one.small)))) };
}

// Kernel time of a stage on a device by family, largest first.
function familyTimes(metrics, stage, device) {
  const times = new Map();
  for (const row of metrics.kernels) {
    if ((stage === null || row.stage === stage) && (device === null || row.device === device)) {
      times.set(row.family, (times.get(row.family) || 0) + row.total_ns);
    }
  }
  return Array.from(times).sort((a, b) => b[1] - a[1]);
}

// A ledger row as a bar: its compute time split by family in proportion, idle as it is.
function stageBar(metrics, ledger, place, widest) {
  const isCapture = !metrics.stages.some((row) => row.stage === ledger.stage && row.stage !== 'all');
  const nested = metrics.stages.find((row) => row.stage === ledger.stage && row.nested);
  const families = nested ? [] : familyTimes(metrics, isCapture ? null : ledger.stage, ledger.device);
  const sum = families.reduce((total, [, time]) => total + time, 0);
  const bar = el('div', { class: 'bar' });
  const part = (time, colour, lines, kind) => {
    if (time <= 0) return;
    bar.append(el('span', { class: `part ${kind}`, color: colour, width_fraction: time / widest, ...noted(() => lines) },
      time / widest > 0.07 ? fraction(time / ledger.window_ns) : null));
  };
  const kernels = ledger.buckets_ns.compute + ledger.buckets_ns.comm;
  if (sum > 0) {
    for (const [family, time] of families) {
      part(kernels * (time / sum), familyColour(family), [family, `${duration(time)} of kernels`, `${fraction(time / sum)} of the stage's kernel time`], 'busy');
    }
  } else {
    part(ledger.buckets_ns.compute, bucketColour('compute'), [kBucketWords.compute, duration(ledger.buckets_ns.compute)], 'busy');
    part(ledger.buckets_ns.comm, bucketColour('comm'), [kBucketWords.comm, duration(ledger.buckets_ns.comm)], 'busy');
  }
  const parts = timeParts(metrics, ledger);
  for (const bucket of [...kBusyBuckets.slice(2), ...kIdleCauses]) {
    const time = parts.get(bucket) || 0;
    part(time, bucketColour(bucket), [kBucketWords[bucket], duration(time), `${fraction(time / ledger.window_ns)} of the window`], kIdleCauses.includes(bucket) ? 'idle' : 'busy');
  }
  return el('div', { class: 'bar-row' },
    el('div', { class: 'bar-label' }, el('b', null, scopeWords(ledger.stage)), metrics.devices.length > 1 ? ` ${ledger.device}` : '', ' ',
      value('span', `ledgers[${place}].window_ns`, ledger.window_ns, duration(ledger.window_ns))), bar);
}

// Causes of idle time that a ledger has.
function idleLegend(metrics, ledgers) {
  const parts = ledgers.map((ledger) => timeParts(metrics, ledger));
  return kIdleCauses.filter((cause) => parts.some((times) => times.get(cause) > 0)).map((cause) => [kBucketWords[cause], bucketColour(cause)]);
}

// Steps that fill their stage are a second bar of the same length and parts: it is left out.
function isSameAsOuter(metrics, ledger) {
  const isNested = (stage) => metrics.stages.some((row) => row.stage === stage && row.nested);
  return isNested(ledger.stage) && metrics.ledgers.some((other) => other.device === ledger.device && !isNested(other.stage) && other.stage !== 'capture' && other.stage !== 'all' &&
    Math.abs(other.window_ns - ledger.window_ns) * 1000 < ledger.window_ns && Object.keys(ledger.buckets_ns).every((bucket) => Math.abs(other.buckets_ns[bucket] - ledger.buckets_ns[bucket]) * 1000 < ledger.window_ns));
}

function stageBars(metrics) {
  const rows = metrics.ledgers.map((ledger, place) => ({ ledger, place })).filter(({ ledger }) => ledger.stage !== 'all' && !isSameAsOuter(metrics, ledger));
  if (rows.length === 0) return null;
  const widest = Math.max(...rows.map(({ ledger }) => ledger.window_ns), 1);
  const families = familyTimes(metrics, null, null).map(([family]) => [family, familyColour(family)]);
  const idle = idleLegend(metrics, rows.map(({ ledger }) => ledger));
  const split = rows.some(({ ledger }) => metrics.stages.some((row) => row.stage === ledger.stage && row.nested)) ? [['kernels, not split', bucketColour('compute')]] : [];
  const busy = kBusyBuckets.slice(2).filter((bucket) => rows.some(({ ledger }) => ledger.buckets_ns[bucket] > 0)).map((bucket) => [kBucketWords[bucket], bucketColour(bucket)]);
  const most = 12;
  const bars = rows.map(({ ledger, place }) => stageBar(metrics, ledger, place, widest));
  return el('div', { class: 'bars' }, bars.slice(0, most), bars.length > most ? el('details', null, el('summary', null, `${bars.length - most} more`), bars.slice(most)) : null,
    legend([...families.slice(0, 12), ...split, ...busy, ...idle]));
}

// Bullets: how much of the model's least time on this GPU is reached.
function bullets(metrics) {
  const node = document.getElementById('efficiency');
  if (!metrics.efficiency || metrics.efficiency.stages.length === 0) return;
  const rows = metrics.efficiency.stages.map((row, i) => {
    const wall = row.sol.wall_fraction;
    const busy = row.sol.busy_fraction;
    if (!known(wall)) return null;
    return el('div', { class: 'bullet' },
      el('div', { class: 'bullet-label' }, el('b', null, printable(row.stage)), ` ${row.side} roof · ${row.verdict}`),
      el('div', { class: 'bullet-bar' }, el('span', { class: 'reached', width_fraction: wall }),
        known(busy) ? el('span', { class: 'busy-mark', ...noted(() => ['while the GPU works', fraction(busy)]) }) : null),
      el('div', { class: 'bullet-value' }, value('b', `efficiency.stages[${i}].sol.wall_fraction`, wall, fraction(wall)), ' of the bound; ',
        known(busy) ? value('span', `efficiency.stages[${i}].sol.busy_fraction`, busy, fraction(busy)) : 'n/a', ' while the GPU works'));
  });
  const made = el('div', { class: 'bullets' }, rows);
  made.querySelectorAll('.busy-mark').forEach((mark, i) => {
    const shown = metrics.efficiency.stages.filter((row) => known(row.sol.wall_fraction) && known(row.sol.busy_fraction))[i];
    mark.style.left = `${Math.min(1, shown.sol.busy_fraction) * 100}%`;
  });
  node.querySelector('h2').after(made);
}

function drawSummary(page) {
  const { metrics } = page;
  const node = document.getElementById('summary');
  node.querySelector('h2').textContent = 'Summary';
  const verdict = node.querySelector('p');
  if (verdict) verdict.className = 'verdict';
  const made = tiles(page);
  node.append(made.node);
  const bars = stageBars(metrics);
  if (bars) {
    const where = section('where', 'Where the time goes');
    where.append(el('p', { class: 'hint' }, 'Each bar is a stage on a GPU, as long as its window. Dark: kernels by family. Pale: the GPU is idle, by cause.'), bars);
    node.after(where);
  }
  bullets(metrics);
  return made.absent;
}
