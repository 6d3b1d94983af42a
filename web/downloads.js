// SPDX-License-Identifier: Apache-2.0
//
// Files made of the page's own data, and the way into Perfetto. Nothing is asked of the network
// before a click on "Open in Perfetto".
const kPerfetto = 'https://ui.perfetto.dev';

function save(name, text, type) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = el('a', { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

// Slices of the page as Chrome's JSON: streams of GPUs, threads of the host, arrows from launches.
function chromeTrace(page) {
  const { timeline, metrics } = page;
  const events = [];
  const us = (ns) => ns / 1000;
  const name = (pid, tid, label, process) => {
    if (process) events.push({ ph: 'M', name: 'process_name', pid, args: { name: process } });
    events.push({ ph: 'M', name: 'thread_name', pid, tid, args: { name: label } });
  };
  const devices = Array.from(new Set(timeline.rows.map((row) => row.device)));
  const { slices } = timeline;
  timeline.rows.forEach((row, tid) => {
    const pid = 1_000_000 + devices.indexOf(row.device);
    name(pid, tid, row.label, row.device);
    for (let i = row.from; i < row.to; i += 1) {
      const first = row.kind === 'stream' && slices.what[i] > 0 ? timeline.kernel_rows[slices.what[i] - 1] : null;
      const label = row.kind === 'idle' ? timeline.causes[slices.what[i] - 1] : row.kind === 'copies' ? kCopyWords[slices.what[i] - 1] || 'copy' : first === null ? 'kernel' : metrics.kernels[first].short_name;
      events.push({ ph: 'X', name: label, cat: row.kind, pid, tid, ts: us(slices.start[i]), dur: us(slices.duration[i]), args: first === null ? {} : { kernel: metrics.kernels[first].kernel_name } });
      if (slices.call && slices.call[i] > 0) events.push({ ph: 'f', bp: 'e', id: i + 1, name: 'launch', cat: 'launch', pid, tid, ts: us(slices.start[i]) });
    }
  });
  const { host } = timeline;
  if (host) {
    const laneOf = [];
    host.lanes.forEach((lane, at) => {
      const tid = lane.kind === 'calls' ? lane.tid * 2 + 1 : lane.tid * 2;
      if (lane.level === 0) name(lane.pid, tid, lane.kind === 'calls' ? `API calls of ${lane.tid}` : `thread ${lane.tid}`, `process ${lane.pid}`);
      for (let i = lane.from; i < lane.to; i += 1) {
        laneOf[i] = [lane.pid, tid, at];
        events.push({ ph: 'X', name: host.slices.name[i] ? host.names[host.slices.name[i] - 1] : '?', cat: lane.kind, pid: lane.pid, tid, ts: us(host.slices.start[i]), dur: us(host.slices.duration[i]) });
      }
    });
    for (let i = 0; slices.call && i < slices.call.length; i += 1) {
      const call = slices.call[i] - 1;
      if (call >= 0) events.push({ ph: 's', id: i + 1, name: 'launch', cat: 'launch', pid: laneOf[call][0], tid: laneOf[call][1], ts: us(host.slices.start[call]) });
    }
  }
  return JSON.stringify({ traceEvents: events, displayTimeUnit: 'ns' });
}

// Perfetto answers PING with PONG when it is ready; then it takes the trace.
function openInPerfetto(page, title, status) {
  const other = window.open(kPerfetto);
  if (!other) {
    status.textContent = 'The browser did not open a window; save the trace and open it there.';
    return;
  }
  const buffer = new TextEncoder().encode(chromeTrace(page)).buffer;
  const timer = setInterval(() => other.postMessage('PING', kPerfetto), 100);
  setTimeout(() => clearInterval(timer), 60000);
  const listen = (event) => {
    if (event.origin !== kPerfetto || event.data !== 'PONG') return;
    clearInterval(timer);
    window.removeEventListener('message', listen);
    other.postMessage({ perfetto: { buffer, title } }, kPerfetto);
  };
  window.addEventListener('message', listen);
}

function drawDownloads(page) {
  const node = section('files', 'Files');
  const { metrics } = page;
  const base = printable(metrics.capture.file || 'report').replace(/[^A-Za-z0-9._-]/g, '_').slice(0, 80);
  const status = el('span', { class: 'hint', role: 'status' });
  const button = (label, run) => el('button', { type: 'button', onclick: run }, label);
  const partly = page.kernels_left_out ? ` (without ${page.kernels_left_out} kernel rows)` : '';
  const tools = el('div', { class: 'tools', id: 'downloads' }, button(`Save metrics.json${partly}`, () => save(`${base}.metrics.json`, JSON.stringify(metrics, null, 1), 'application/json')));
  if (metrics.kernels.length) tools.append(button('Save kernels.csv', () => save(`${base}.kernels.csv`, csvOf(metrics.kernels), 'text/csv')));
  if (page.timeline && page.timeline.slices.start.length) {
    tools.append(button('Save trace.json', () => save(`${base}.trace.json`, chromeTrace(page), 'application/json')), button('Open in Perfetto', () => openInPerfetto(page, base, status)),
      el('span', { class: 'hint' }, 'Perfetto: opens ui.perfetto.dev and hands it this page\'s slices; nothing is uploaded.'));
  }
  tools.append(status);
  const links = node.querySelector('.links');
  node.querySelector('h2').textContent = 'Downloads';
  node.querySelector('h2').after(tools);
  if (links) links.before(el('p', { class: 'hint' }, 'Written beside this page; the links work where the folder is whole:'));
  document.getElementById('main').append(node);
}
