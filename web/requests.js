// SPDX-License-Identifier: Apache-2.0
//
// Requests over time: one row each, coloured by what the request waited for. Rows are those of metrics.json, the
// slowest and a sample of all, so the picture has a bounded size.
const kRequestParts = [
  ['network_ns', 'network', '--i-unknown-idle'], ['queue_busy_ns', 'queue, steps of others run', '--i-queued'],
  ['queue_idle_ns', 'queue, no step runs', '--i-launch-late'], ['prefill_gpu_ns', 'own prefill, GPU works', '--f0'],
  ['prefill_host_ns', 'own prefill, GPU waits', '--i-sync'], ['other_steps_ns', 'steps of others in between', '--b-other-stage'],
  ['between_ns', 'no step in between', '--i-tail'], ['delivery_ns', 'delivery', '--f5']];

function requestPicture(rows, width) {
  const [left, top, tall] = [8, 8, 5];
  const height = top + rows.length * tall + 34;
  const first = Math.min(...rows.map((row) => row.sent_ns));
  const last = Math.max(...rows.map((row) => row.sent_ns + (row.total_ns || row.ttft_ns || 0)), first + 1);
  const x = (time) => left + (time - first) / (last - first) * (width - 2 * left);
  const picture = svg('svg', { viewBox: `0 0 ${width} ${height}`, class: 'chart', role: 'img', 'aria-label': `${plural(rows.length, 'request')} over time, by what they waited for` });
  for (const mark of ticks(last - first).filter((time) => time <= last - first)) {
    picture.append(svg('line', { class: 'grid', x1: x(first + mark), x2: x(first + mark), y1: top, y2: height - 28 }),
      svg('text', { x: x(first + mark), y: height - 14, 'text-anchor': mark === 0 ? 'start' : 'middle' }, duration(mark)));
  }
  rows.forEach((row, i) => {
    let time = row.sent_ns;
    const bar = (length, colour, label) => {
      if (!length) return;
      picture.append(svg('rect', { class: 'request-part', color: `var(${colour})`, x: x(time), y: top + i * tall, width: Math.max(x(time + length) - x(time), 0.4), height: tall - 1, ...noted(() => [`request ${printable(row.id)}`, `${label}: ${duration(length)}`, `TTFT ${duration(row.ttft_ns)}`]) }));
      time += length;
    };
    if (row.told === 'named' || row.told === 'inferred') for (const [key, label, colour] of kRequestParts) bar(row[key], colour, label);
    else bar(row.ttft_ns, '--i-unrecorded', 'first token, parts not told');
    if (row.total_ns !== null && row.ttft_ns !== null) bar(row.total_ns - row.ttft_ns, '--f3', 'decode');
  });
  return picture;
}

function drawRequests(metrics) {
  const node = document.getElementById('requests');
  if (!node || !metrics.requests || metrics.requests.rows.length === 0) return;
  const rows = metrics.requests.rows.slice().sort((a, b) => a.sent_ns - b.sent_ns);
  const sampled = rows.filter((row) => row.is_sample).length;
  const hint = `${plural(rows.length - sampled, 'request')} with the longest time to first token${sampled ? ` and a sample of ${sampled} others` : ''}, by the time they were sent.`;
  node.append(el('h3', null, 'Requests over time'), el('p', { class: 'hint' }, hint),
    legend([...kRequestParts.map(([, label, colour]) => [label, `var(${colour})`]), ['decode', 'var(--f3)'], ['parts not told', 'var(--i-unrecorded)']]),
    el('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Requests over time' }, requestPicture(rows, 1000)));
}
