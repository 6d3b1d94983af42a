// SPDX-License-Identifier: Apache-2.0
//
// Elements, colours and what is chosen. Text becomes text nodes and nothing else: no markup is ever
// made of a string.
const kSvg = 'http://www.w3.org/2000/svg';

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (name === 'color') node.style.setProperty('--own', value);
    else if (name === 'width_fraction') node.style.width = `${Math.max(0, Math.min(1, value)) * 100}%`;
    else node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ''));
  return node;
}
const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => fill(document.createElementNS(kSvg, tag), attributes, children);

// A value of metrics.json where it is shown, with its key: tests compare the two.
const value = (tag, key, number, text, attributes) =>
  el(tag, { ...attributes, 'data-key': key, 'data-value': known(number) ? number : null }, text);

// A section of the page: one that stands there, or a new one.
function section(id, title) {
  const found = document.getElementById(id);
  if (found) return found;
  return el('section', { id, 'aria-labelledby': `${id}-title` }, el('h2', { id: `${id}-title` }, title));
}

const kFamilyColours = ['gemm', 'attention', 'gemv', 'norm', 'elementwise', 'communication', 'moe', 'kv_cache', 'copy',
  'softmax', 'rope', 'activation', 'quantise', 'sampling', 'embedding', 'reduction', 'ssm',
  'lora', 'spec_decode', 'sort'];
const kIdle = ['graph', 'sync', 'launch_late', 'started_late', 'queued', 'unknown_idle', 'unrecorded', 'tail'];
// Parts of launch_late by what the CPU did; what they leave is launching. The same as the program's tables.
const kLateKinds = ['host_work', 'first_use', 'allocating', 'blocked'];
const kIdleCauses = kIdle.flatMap((bucket) => (bucket === 'launch_late' ? [bucket, ...kLateKinds.map((kind) => `launch_late.${kind}`)] : [bucket]));
const causeOf = (bucket, kind) => (bucket === 'launch_late' && kLateKinds.includes(kind) ? `launch_late.${kind}` : bucket);
const kBusyBuckets = ['compute', 'comm', 'copy', 'other_stage', 'unattributed'];
const kBucketWords = {
  compute: 'kernels', comm: 'communication, no compute', copy: 'copies, no kernel', other_stage: 'work of another stage',
  unattributed: 'work of no stage', graph: 'idle inside a CUDA graph', sync: 'idle: CPU was in a synchronize call',
  launch_late: 'idle: waiting for CPU launch', 'launch_late.host_work': 'idle: CPU did other work', 'launch_late.first_use': 'idle: CPU loaded or compiled code',
  'launch_late.allocating': 'idle: CPU allocated memory', 'launch_late.blocked': 'idle: CPU in a long API call', started_late: 'idle: launched, started late', queued: 'idle: launched, blocked by other GPU work',
  unknown_idle: 'idle: cause unknown', unrecorded: 'nothing recorded', tail: 'idle after the last kernel',
};
const familyVariable = (family) => {
  const place = kFamilyColours.indexOf(family);
  return place < 0 ? '--f-other' : `--f${place}`;
};
const familyColour = (family) => `var(${familyVariable(family)})`;
const idleVariable = (cause) => `--i-${cause.replace('launch_late.', '').replace('_', '-')}`;
// A ledger's time by bucket, the launches that came late divided by what the CPU did instead.
function timeParts(metrics, ledger) {
  const parts = new Map(Object.entries(ledger.buckets_ns));
  for (const row of metrics.idle_causes) {
    const cause = causeOf(row.bucket, row.kind);
    if (row.stage !== ledger.stage || row.device !== ledger.device || cause === row.bucket) continue;
    parts.set(cause, (parts.get(cause) || 0) + row.total_ns);
    parts.set(row.bucket, parts.get(row.bucket) - row.total_ns);
  }
  return parts;
}
const bucketColour = (bucket) => (kIdleCauses.includes(bucket) ? `var(${idleVariable(bucket)})` : `var(--b-${bucket.replace('_', '-')})`);

const swatch = (colour) => el('span', { class: 'swatch', color: colour, 'aria-hidden': 'true' });

function legend(entries) {
  return el('ul', { class: 'legend' }, entries.map(([label, colour]) => el('li', null, swatch(colour), label)));
}

// One note for all charts, beside the pointer.
const note = {
  node: null,
  show(event, lines) {
    if (!this.node) {
      this.node = el('div', { id: 'note', role: 'tooltip' });
      document.body.append(this.node);
    }
    this.node.replaceChildren(...lines.filter((line) => line).map((line) => el('div', null, line)));
    this.node.hidden = false;
    const box = this.node.getBoundingClientRect();
    this.node.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8))}px`;
    this.node.style.top = `${event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 8 : event.clientY + 18}px`;
  },
  hide() {
    if (this.node) this.node.hidden = true;
  },
};
const noted = (lines) => ({ onmousemove: (event) => note.show(event, lines()), onmouseleave: () => note.hide() });

// The chosen kernel, a row of metrics.kernels; views tell each other.
const chosen = {
  kernel: null,
  listeners: [],
  onChange(listener) { this.listeners.push(listener); },
  set(kernel, from) {
    this.kernel = kernel === this.kernel && from !== 'timeline' ? null : kernel;
    for (const listener of this.listeners) listener(this.kernel, from);
  },
};

async function copyText(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = el('textarea', { 'aria-hidden': 'true' });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }
  const before = button.textContent;
  button.textContent = 'copied';
  setTimeout(() => { button.textContent = before; }, 1200);
}
