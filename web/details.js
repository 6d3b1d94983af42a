// SPDX-License-Identifier: Apache-2.0
//
// What is chosen or pointed at in the timeline, in words: a kernel's launch, a gap and what the host
// did in it, a call or range of the host.
const kMostNamed = 6;

const factList = (facts) => el('dl', null, facts.filter(([, text]) => text !== '' && text !== null).map(([label, text]) => el('div', null, el('dt', null, label), el('dd', null, text))));
const shortName = (text, most = 110) => middleCut(printable(text), most);

function kernelName(timeline, row, slice) {
  const { slices } = timeline.data;
  const place = timeline.kernelOf(row, slices.what[slice], slices.stage[slice]);
  return place === null ? 'a kernel or CUDA graph that the table does not list' : timeline.page.metrics.kernels[place].short_name;
}

const stageWords = (timeline, slice) => {
  const stage = timeline.data.slices.stage[slice];
  return stage === 0 ? 'in no stage' : scopeWords(timeline.data.stages[stage - 1].stage);
};

function hoverLines(timeline, { lane, slice, instance, bar, host }) {
  const span = timeline.view.end - timeline.view.start;
  const { slices } = timeline.data;
  if (instance) {
    return [printable(timeline.data.stages[instance.stage].stage), duration(instance.duration), instance.tokens === null ? '' : plural(instance.tokens, 'token'), instance.isOpen ? 'had no end' : ''];
  }
  if (bar) return [`layer ${bar.layer} of pass ${bar.pass}`, duration(bar.length), printable(bar.kind)];
  if (host !== undefined) {
    const all = timeline.host;
    return [shortName(all.name(host)), `${duration(all.slices.duration[host])} at ${exact(all.slices.start[host], span)}`, lane.host.kind === 'calls' ? `API call · thread ${lane.host.tid}` : `thread ${lane.host.tid}`];
  }
  const when = `${duration(slices.duration[slice])} at ${exact(slices.start[slice], span)}`;
  if (lane.row.kind === 'idle') return [kBucketWords[timeline.data.causes[slices.what[slice] - 1]], when, 'Click: what the host did.'];
  if (lane.row.kind === 'copies') return [kCopyWords[slices.what[slice] - 1] || 'copy', when];
  const place = timeline.kernelOf(lane.row, slices.what[slice], slices.stage[slice]);
  return [shortName(kernelName(timeline, lane.row, slice), 120), when, place === null ? '' : `${timeline.page.metrics.kernels[place].family} · ${stageWords(timeline, slice)} · ${lane.row.label}`];
}

// The neighbours of a gap on its GPU: work that ended last before it, and that begins first after it.
function around(timeline, device, start, end) {
  const { slices, rows } = timeline.data;
  let [before, after] = [null, null];
  for (const row of rows) {
    if (row.device !== device || row.kind === 'idle') continue;
    for (let i = firstSlice(slices, row, start); i < row.to && slices.start[i] <= end + 1; i += 1) {
      if (slices.start[i] >= end - 1 && (!after || slices.start[i] < slices.start[after.slice])) after = { row, slice: i };
    }
    // Those that run up to the gap: at most a few thousand back, since rows are sorted by start.
    for (let i = Math.min(firstSlice(slices, row, start) + 4000, row.to) - 1, least = Math.max(row.from, i - 8000); i >= least; i -= 1) {
      const until = slices.start[i] + slices.duration[i];
      if (until <= start + 1 && (!before || until > slices.start[before.slice] + slices.duration[before.slice])) before = { row, slice: i };
    }
  }
  return { before, after };
}

function workWords(timeline, one) {
  const { slices } = timeline.data;
  return one.row.kind === 'copies' ? kCopyWords[slices.what[one.slice] - 1] || 'copy' : kernelName(timeline, one.row, one.slice);
}

const workButton = (timeline, one) => el('button', { type: 'button', class: 'link', onclick: () => timeline.select(one) }, shortName(workWords(timeline, one), 80));

function launchFacts(timeline, slice) {
  const { slices } = timeline.data;
  const call = slices.call ? slices.call[slice] - 1 : -1;
  if (call < 0) return { call: null, facts: [['launch', timeline.host ? 'not in the page' : 'n/a']] };
  const { host } = timeline;
  const began = host.slices.start[call];
  const thread = host.threadOf(host.laneOf(call));
  const scopes = host.around(thread, began).map((one) => shortName(host.name(one), 60));
  const wait = slices.start[slice] - began;
  return { call, thread, facts: [
    ['launched by', el('button', { type: 'button', class: 'link', onclick: () => { timeline.show(Math.min(began, timeline.view.start), Math.max(slices.start[slice] + slices.duration[slice], timeline.view.end)); timeline.select({ host: call }); } }, `${shortName(host.name(call), 60)}, thread ${thread.tid}`)],
    ['launch call to start', duration(Math.max(wait, 0))],
    ['inside', scopes.length ? scopes.join(' › ') : '']] };
}

function kernelDetailsCard(timeline, { row, slice }) {
  const { slices } = timeline.data;
  const span = timeline.view.end - timeline.view.start;
  const place = timeline.kernelOf(row, slices.what[slice], slices.stage[slice]);
  const name = place === null ? null : timeline.page.metrics.kernels[place].kernel_name;
  const launches = name === null ? [] : launchesOf(timeline, name);
  const at = launches.findIndex((one) => one.slice === slice);
  const go = (step) => {
    const next = launches[(at + step + launches.length) % launches.length];
    const [start, length] = [slices.start[next.slice], slices.duration[next.slice]];
    if (!timeline.isInSight(start, length)) timeline.frame(start, length);
    timeline.select(next);
  };
  timeline.nextLaunch = launches.length > 1 ? go : null;
  const launch = launchFacts(timeline, slice);
  return el('div', { class: 'details-card' },
    el('h3', null, place === null ? '' : swatch(familyColour(timeline.page.metrics.kernels[place].family)), shortName(kernelName(timeline, row, slice), 160)),
    launches.length > 1 ? el('p', { class: 'jumps' }, el('button', { type: 'button', onclick: () => go(-1) }, '◂ previous launch'), el('button', { type: 'button', onclick: () => go(1) }, 'next launch ▸'), `launch ${at + 1} of ${launches.length} in the page`,
      el('a', { href: '#kernels' }, 'all its numbers')) : '',
    factList([['duration', duration(slices.duration[slice])], ['start', exact(slices.start[slice], span)], ['stream', `${row.device} ${row.label}`], ['stage', stageWords(timeline, slice)], ...launch.facts]));
}

// A thread's time in a gap: API calls by name, then what it ran apart from them.
function hostTable(timeline, thread, from, to) {
  const { host } = timeline;
  const did = host.during(thread, from, to);
  const share = (time) => `${duration(time)}, ${fraction(time / (to - from))}`;
  const list = (entries) => [...entries.slice(0, kMostNamed).map(([name, time]) => el('li', null, el('code', null, shortName(name, 90)), ` ${share(time)}`)),
    entries.length > kMostNamed ? el('li', null, `${entries.length - kMostNamed} more`) : ''];
  const idle = Math.max(to - from - did.inCalls, 0);
  return el('div', { class: 'host-did' }, el('h4', null, `Thread ${thread.tid} of process ${thread.pid}`),
    el('div', { class: 'pair' },
      el('div', null, el('p', { class: 'hint' }, did.calls.length ? `In API calls: ${share(did.inCalls)}. Outside them: ${share(idle)}.` : 'No API call: the time went to the program itself, or the thread slept.'), el('ul', { class: 'notes' }, list(did.calls))),
      thread.scopes.length ? el('div', null, el('p', { class: 'hint' }, did.scopes.length ? 'In ranges and operators, without what is nested in them:' : 'In no range or operator.'), el('ul', { class: 'notes' }, list(did.scopes))) : ''));
}

// Why the GPU was idle at all such moments, as the analysis summed it up.
function causeLines(timeline, device, cause) {
  return timeline.page.metrics.idle_causes.filter((row) => row.device === device && causeOf(row.bucket, row.kind) === cause && ['all', 'capture'].includes(row.stage)).slice(0, 4)
    .map((row) => el('li', null, `${row.kind.replaceAll('_', ' ')}${row.call ? ` ${row.call}` : ''}${row.scope ? ` in ${shortName(row.scope, 60)}` : ''}: ${plural(row.gaps, 'gap')}, ${duration(row.total_ns)}, longest ${duration(row.longest_ns)}`));
}

function gapCard(timeline, gap) {
  const { device } = gap.row;
  const end = gap.start + gap.length;
  const span = timeline.view.end - timeline.view.start;
  const { before, after } = around(timeline, device, gap.start, end);
  const launch = after ? launchFacts(timeline, after.slice) : { call: null, facts: [] };
  const { host } = timeline;
  const thread = launch.thread || (host ? host.threads[0] : null);
  let verdict = '';
  if (launch.call !== null && launch.call !== undefined) {
    const began = host.slices.start[launch.call];
    verdict = began >= gap.start ? `The next work was launched ${duration(began - gap.start)} into the gap and started ${duration(end - began)} after its launch call began.`
      : `The next work had been launched ${duration(gap.start - began)} before the gap began: the GPU had it and did not run it.`;
  }
  const causes = causeLines(timeline, device, gap.cause);
  timeline.nextLaunch = null;
  return el('div', { class: 'details-card gap-card' },
    el('h3', null, swatch(bucketColour(gap.cause)), `${device} idle for ${duration(gap.length)}: ${kBucketWords[gap.cause].replace(/^idle: /, '')}`),
    verdict ? el('p', null, verdict) : '',
    factList([['from', exact(gap.start, span)], ['after', before ? workButton(timeline, before) : ''], ['before', after ? workButton(timeline, after) : ''], ...launch.facts]),
    thread ? hostTable(timeline, thread, gap.start, end) : el('p', { class: 'hint' }, 'What the host did: n/a (the recording has no API calls, ranges or operators).'),
    causes.length ? el('details', null, el('summary', null, 'All gaps with this cause on this GPU'), el('ul', { class: 'notes' }, causes)) : '');
}

function hostCard(timeline, slice) {
  const { host } = timeline;
  const lane = host.laneOf(slice);
  const thread = host.threadOf(lane);
  const span = timeline.view.end - timeline.view.start;
  const start = host.slices.start[slice];
  const around_ = host.around(thread, start).filter((one) => one !== slice && host.slices.duration[one] >= host.slices.duration[slice]).map((one) => shortName(host.name(one), 60));
  const { slices, rows } = timeline.data;
  const launched = [];
  for (const row of rows) {
    for (let i = row.from; slices.call && lane.kind === 'calls' && i < row.to; i += 1) if (slices.call[i] - 1 === slice) launched.push({ row, slice: i });
  }
  timeline.nextLaunch = null;
  return el('div', { class: 'details-card' }, el('h3', null, swatch(`var(${host.colour(lane, slice)})`), shortName(host.name(slice), 160)),
    factList([['duration', duration(host.slices.duration[slice])], ['start', exact(start, span)], ['thread', `${lane.tid} of process ${lane.pid}`], ['inside', around_.join(' › ')],
      ['launched', launched.length ? el('span', null, launched.slice(0, 3).map((one) => workButton(timeline, one)), launched.length > 3 ? ` and ${launched.length - 3} more` : '') : '']]));
}

function copyCard(timeline, { row, slice }) {
  const { slices } = timeline.data;
  timeline.nextLaunch = null;
  return el('div', { class: 'details-card' }, el('h3', null, kCopyWords[slices.what[slice] - 1] || 'copy'),
    factList([['duration', duration(slices.duration[slice])], ['start', exact(slices.start[slice], timeline.view.end - timeline.view.start)], ['GPU', row.device], ...launchFacts(timeline, slice).facts]));
}

function detailsOf(timeline, what) {
  const { slices, causes } = timeline.data;
  if (what.host !== undefined) return hostCard(timeline, what.host);
  if (what.row.kind === 'idle') {
    return gapCard(timeline, what.slice === undefined ? what : { row: what.row, start: slices.start[what.slice], length: slices.duration[what.slice], cause: causes[slices.what[what.slice] - 1] });
  }
  return what.row.kind === 'copies' ? copyCard(timeline, what) : kernelDetailsCard(timeline, what);
}
