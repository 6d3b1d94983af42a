// SPDX-License-Identifier: Apache-2.0
//
// The page's data: two texts of base64 and gzip in the page itself. src/report/document/page_data.cc
// writes them.
async function unpacked(id) {
  const text = document.getElementById(id).textContent;
  if (!text) return null;
  const raw = atob(text);
  const packed = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i += 1) packed[i] = raw.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Byte planes back to numbers. Up to six bytes: doubles hold 53 bits exactly.
function readPlanes(planes, arrays) {
  const read = {};
  let at = 0;
  for (const { name, count: size, bytes: width } of arrays) {
    const values = width > 4 ? new Float64Array(size) : new Uint32Array(size);
    for (let plane = 0; plane < width; plane += 1) {
      const weight = 256 ** plane;
      const end = at + size;
      for (let i = at, j = 0; i < end; i += 1, j += 1) {
        if (planes[i] !== 0) values[j] += planes[i] * weight;
      }
      at = end;
    }
    (read[name] = read[name] || []).push(values);
  }
  return read;
}

function sumUp(values, from, to) {
  for (let i = from + 1; i < to; i += 1) values[i] += values[i - 1];
}

// Differences that were folded to be positive: 0, -1, 1, -2, ... Zero means that there is none.
function unfoldRow(values, from, to) {
  let at = 0;
  for (let i = from; i < to; i += 1) {
    const folded = values[i];
    at += folded % 2 === 1 ? -(folded + 1) / 2 : folded / 2;
    values[i] = at;
  }
}

// Lanes of the host, starts absolute. Slices of a lane do not overlap.
function readHost(host, read) {
  const slices = { start: read.host_start[0], duration: read.host_duration[0], name: read.host_name[0] };
  for (const lane of host.lanes) sumUp(slices.start, lane.from, lane.to);
  return { ...host, slices };
}

// The timeline ready to draw: starts absolute, a level's series by row.
function readTimeline(timeline, planes) {
  const read = readPlanes(planes, timeline.arrays);
  const slices = { start: read.slice_start[0], duration: read.slice_duration[0], what: read.slice_what[0], stage: read.slice_stage[0], call: read.slice_call ? read.slice_call[0] : null };
  for (const row of timeline.rows) {
    sumUp(slices.start, row.from, row.to);
    if (slices.call) unfoldRow(slices.call, row.from, row.to);
    row.longest = 0;
    for (let i = row.from; i < row.to; i += 1) row.longest = Math.max(row.longest, slices.duration[i]);
  }
  const levels = timeline.levels.map((level, l) => {
    const values = (read.level || [])[l];
    const byRow = timeline.rows.map(() => []);
    level.series.forEach(([row, category], i) => {
      byRow[row].push({ category, fill: values.subarray(i * level.columns, (i + 1) * level.columns) });
    });
    return { column: level.column_ns, columns: level.columns, rows: byRow };
  });
  const start = read.instance_start[0];
  sumUp(start, 0, start.length);
  const instances = Array.from(start, (at, i) => ({
    start: at,
    duration: read.instance_duration[0][i],
    stage: read.instance_stage[0][i],
    isOpen: (read.instance_flags[0][i] & 1) !== 0,
    isStep: (read.instance_flags[0][i] & 2) !== 0,
    tokens: read.instance_tokens[0][i] === 0 ? null : read.instance_tokens[0][i] - 1,
    number: read.instance_number[0][i],
  }));
  const layerMaps = (timeline.layer_maps || []).map((map, i) => {
    const [number, from] = [read.map_number[i], read.map_start[i]];
    sumUp(number, 0, number.length);
    sumUp(from, 0, from.length);
    const length = Float64Array.from(read.map_length[i], (units) => units * map.unit_ns);
    return { ...map, number, start: from, length, block: read.map_block[i] };
  });
  return { ...timeline, slices, levels, instances, layerMaps, host: timeline.host ? readHost(timeline.host, read) : null };
}

async function readPage() {
  const page = JSON.parse(new TextDecoder().decode(await unpacked('data-json')));
  if (page.timeline) page.timeline = readTimeline(page.timeline, await unpacked('data-planes'));
  return page;
}
