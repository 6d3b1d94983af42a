// SPDX-License-Identifier: Apache-2.0
//
// Copies and communication: how much, which way, how fast; operators as a table of the same kind.
const bytesPerSecond = (rate_) => `${short(rate_)}B/s`;
const kDirectionWords = { host_to_device: 'host to device', device_to_host: 'device to host', device_to_device: 'device to device', peer_to_peer: 'GPU to GPU', memset: 'memset', unknown: 'unknown' };

function drawTransfers(metrics) {
  const copies = metrics.copies || [];
  const collectives = metrics.collective_rates || [];
  const kernels = metrics.kernels.filter((row) => row.family === 'communication');
  if (copies.length === 0 && collectives.length === 0 && kernels.length === 0) return;
  const node = section('transfers', 'Copies and communication');
  document.getElementById('kernels').after(node);
  if (copies.length) {
    node.append(el('h3', null, 'Copies'), ...plainTable('Copies by direction', 'copies', copies, [
      { id: 'device', title: 'GPU', text: true, get: (row) => row.device },
      { id: 'direction', title: 'Direction', text: true, get: (row) => `${kDirectionWords[row.direction] || row.direction}${row.memory ? `, ${row.memory}` : ''}` },
      { id: 'count', title: 'Copies', get: (row) => row.count, show: count, key: 'count' },
      { id: 'size', title: 'Bytes', get: (row) => row.size_bytes, show: bytes, key: 'size_bytes' },
      { id: 'total', title: 'Total', get: (row) => row.total_ns, show: duration, key: 'total_ns' },
      { id: 'rate', title: 'Bandwidth', get: (row) => row.bytes_per_s, show: bytesPerSecond, key: 'bytes_per_s' }], 'total'));
  }
  if (collectives.length) {
    const fields = Object.keys(collectives[0]);
    const show = (field) => (field.endsWith('_ns') ? duration : field.endsWith('_bytes') || field === 'bytes' ? bytes : field.endsWith('bytes_per_s') ? bytesPerSecond : field.endsWith('fraction') ? fraction : count);
    node.append(el('h3', null, 'Collectives'), ...plainTable('Collectives', 'collective_rates', collectives, fields.filter((field) => typeof collectives[0][field] !== 'object' || collectives[0][field] === null).map((field) => ({
      id: field, title: field.replace(/_(ns|bytes|fraction)$/, '').replaceAll('_', ' '), text: typeof collectives[0][field] === 'string', get: (row) => row[field], show: show(field), key: field })), fields.find((field) => field === 'total_ns') || fields[0]));
  } else if (kernels.length) {
    const time = kernels.reduce((sum, row) => sum + row.total_ns, 0);
    node.append(el('p', { class: 'hint' }, `Communication: ${duration(time)} in ${plural(kernels.length, 'row')} of the kernel table. Bytes and bus bandwidth are known where the recording holds message sizes.`));
  }
}

// Operators: the same table as the kernels'.
function drawOperators(metrics) {
  const node = document.getElementById('operators');
  const rows = metrics.operators ? metrics.operators.rows || [] : [];
  if (!node || rows.length === 0 || !node.querySelector('table')) return;
  node.querySelectorAll('.scroll').forEach((box, i) => { if (i === 0) box.remove(); });
  node.querySelector('h2').textContent = 'Operators';
  const stages = new Set(rows.map((row) => row.stage)).size > 1;
  node.append(...plainTable('Operators by GPU time', 'operators.rows', rows, [
    { id: 'name', title: 'Operator', text: true, code: true, get: (row) => row.name },
    ...(stages ? [{ id: 'stage', title: 'Stage', text: true, get: (row) => row.stage }] : []),
    { id: 'share', title: 'Share', get: (row) => row.share_fraction, show: fraction, key: 'share_fraction' },
    { id: 'total', title: 'Self GPU time', get: (row) => row.total_ns, show: duration, key: 'total_ns' },
    { id: 'calls', title: 'Calls', get: (row) => row.calls, show: count, key: 'calls' },
    { id: 'mean', title: 'Mean', get: (row) => row.mean_ns, show: duration, key: 'mean_ns' },
    { id: 'kernels', title: 'Kernels', get: (row) => row.kernels, show: count, key: 'kernels' }], 'total'));
}
