// SPDX-License-Identifier: Apache-2.0
//
// Lanes of the host: which there are, their colours, and what a thread did in a stretch of time.
const kHostLane = 14;
const kScopeColours = 6;
const kMainProcesses = 4;
const kCallKinds = [['launch', /launch/i], ['sync', /synchronize|waitevent|streamwait|query/i], ['copy', /memcpy|memset/i], ['memory', /malloc|free|alloc|memory|mempool/i]];
const kCallWords = { launch: 'launch call', sync: 'synchronize call', copy: 'copy call', memory: 'memory call', other: 'other API call' };

const callKind = (name) => (kCallKinds.find(([, pattern]) => pattern.test(name)) || ['other'])[0];

// Equal names have equal colours.
function scopeColour(name) {
  let hash = 0;
  for (let i = 0; i < Math.min(name.length, 40); i += 1) hash = (hash * 31 + name.charCodeAt(i)) >>> 0;
  return `--h${hash % kScopeColours}`;
}

class Host {
  constructor(data) {
    this.data = data;
    this.slices = data.slices;
    this.colours = data.names.map(() => null);
    // Threads in their order: those of a process together, the one that launches most first.
    this.threads = [];
    for (const lane of data.lanes) {
      let thread = this.threads.find((one) => one.pid === lane.pid && one.tid === lane.tid);
      if (!thread) this.threads.push(thread = { pid: lane.pid, tid: lane.tid, scopes: [], calls: [] });
      thread[lane.kind].push(lane);
    }
    this.pids = Array.from(new Set(this.threads.map((one) => one.pid)));
  }

  name(slice) {
    const number = this.slices.name[slice];
    return number === 0 ? '(name left out)' : this.data.names[number - 1];
  }

  colour(lane, slice) {
    const number = this.slices.name[slice];
    if (number === 0) return lane.kind === 'calls' ? '--k-other' : '--h0';
    if (this.colours[number - 1] === null) {
      const name = this.data.names[number - 1];
      this.colours[number - 1] = lane.kind === 'calls' ? `--k-${callKind(name)}` : scopeColour(name);
    }
    return this.colours[number - 1];
  }

  laneOf(slice) { return this.data.lanes.find((lane) => slice >= lane.from && slice < lane.to); }

  threadOf(lane) { return this.threads.find((one) => one.pid === lane.pid && one.tid === lane.tid); }

  // The first slice of a lane that ends after a time.
  first(lane, time) {
    let low = lane.from;
    let high = lane.to;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.slices.start[middle] + this.slices.duration[middle] <= time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  at(lane, time) {
    const slice = this.first(lane, time);
    return slice < lane.to && this.slices.start[slice] <= time ? slice : null;
  }

  // Ranges and operators around a time, the outermost first.
  around(thread, time) { return thread.scopes.map((lane) => this.at(lane, time)).filter((slice) => slice !== null); }

  overlap(slice, from, to) {
    const start = this.slices.start[slice];
    return Math.min(start + this.slices.duration[slice], to) - Math.max(start, from);
  }

  // Time by name in [from, to): calls, and scopes without what is nested in them.
  during(thread, from, to) {
    const add = (times, name, time) => { if (time > 0) times.set(name, (times.get(name) || 0) + time); };
    const sorted = (times) => Array.from(times).sort((a, b) => b[1] - a[1]);
    const calls = new Map();
    let inCalls = 0;
    const outer = thread.calls[0];
    for (let i = outer ? this.first(outer, from) : 0; outer && i < outer.to && this.slices.start[i] < to; i += 1) {
      const time = this.overlap(i, from, to);
      inCalls += time;
      add(calls, this.name(i), time);
    }
    const own = new Map();
    thread.scopes.forEach((lane, level) => {
      for (let i = this.first(lane, from); i < lane.to && this.slices.start[i] < to; i += 1) {
        const time = this.overlap(i, from, to);
        own.set(i, (own.get(i) || 0) + time);
        const parent = level > 0 ? this.at(thread.scopes[level - 1], this.slices.start[i]) : null;
        if (parent !== null) own.set(parent, (own.get(parent) || 0) - time);
      }
    });
    const scopes = new Map();
    for (const [slice, time] of own) add(scopes, this.name(slice), time);
    return { calls: sorted(calls), inCalls, scopes: sorted(scopes) };
  }

  // Threads to draw: the first of each process, or all.
  shown(choice, pids) {
    if (choice === 'none') return [];
    const wanted = this.pids.filter((pid) => !pids || pids.has(pid));
    if (choice === 'all') return this.threads.filter((one) => wanted.includes(one.pid));
    return wanted.slice(0, kMainProcesses).map((pid) => this.threads.find((one) => one.pid === pid));
  }

  leftOut() {
    const parts = [];
    if (this.data.threads > this.data.kept_threads) parts.push(`${this.data.kept_threads} of ${this.data.threads} threads`);
    if (this.data.least_call_ns > 0) parts.push(`API calls from ${duration(this.data.least_call_ns)}`);
    if (this.data.least_scope_ns > 0) parts.push(`ranges and operators from ${duration(this.data.least_scope_ns)}`);
    return parts.length ? `Of the host the page holds ${parts.join(', ')}; shorter ones only in the moments above.` : '';
  }
}
