// SPDX-License-Identifier: Apache-2.0
//
// Values in words, as src/base/units.cc and src/report/document/document.cc write them: the page's views and
// the sections beneath them must never disagree by a digit.
const decimals = (value) => (value < 9.995 ? 2 : value < 99.95 ? 1 : 0);

function scaled(value, units, step) {
  let i = 0;
  let shown = value;
  while (i + 1 < units.length && Math.abs(shown) >= step - 0.5) {
    i += 1;
    shown = value / step ** i;
  }
  return `${shown.toFixed(i === 0 ? 0 : decimals(Math.abs(shown)))} ${units[i]}`;
}

const known = (value) => typeof value === 'number' && Number.isFinite(value);
const duration = (ns) => (known(ns) ? scaled(Math.round(ns), ['ns', 'us', 'ms', 's'], 1000) : 'n/a');
const bytes = (n) => (known(n) ? scaled(n, ['B', 'KiB', 'MiB', 'GiB', 'TiB'], 1024) : 'n/a');
const fraction = (x) => (known(x) ? `${(x * 100).toFixed(decimals(Math.abs(x * 100)))} %` : 'n/a');
const factor = (x) => `${x.toFixed(x < 9.995 ? 2 : 0)}x`;
const count = (n) => (known(n) ? String(n) : 'n/a');
const rate = (x) => (known(x) ? x.toFixed(1) : 'n/a');

// 1.5e12 as "1.5 T".
function short(value) {
  const units = ['', 'k', 'M', 'G', 'T', 'P'];
  let i = 0;
  let shown = value;
  while (i + 1 < units.length && Math.abs(shown) >= 1000) {
    shown /= 1000;
    i += 1;
  }
  return `${Number(shown.toPrecision(3))} ${units[i]}`.trim();
}

// A time on the ruler: as many digits as the step needs.
function clock(ns, step) {
  const [size, unit] = step >= 1e9 ? [1e9, 's'] : step >= 1e6 ? [1e6, 'ms'] : step >= 1e3 ? [1e3, 'us'] : [1, 'ns'];
  const digits = Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9));
  return `${(ns / size).toFixed(digits)} ${unit}`;
}

// A moment as exact as a view of `span` shows it, in the unit that suits `like`.
function exact(ns, span, like = ns) {
  const [size, unit] = like >= 1e9 ? [1e9, 's'] : like >= 1e6 ? [1e6, 'ms'] : like >= 1e3 ? [1e3, 'us'] : [1, 'ns'];
  const step = Math.max(10 ** Math.floor(Math.log10(Math.max(span, 1) / 1000)), 1);
  return `${(ns / size).toFixed(Math.min(9, Math.max(0, Math.round(Math.log10(size / step)))))} ${unit}`;
}

// Parts of a recording that no mark names, in the words of the verdict; stages keep their names.
const kScopeWords = { capture: 'whole recording', all: 'whole recording', startup: 'start-up', steady: 'steady phase', ending: 'after the end', outside: 'unmarked' };
const scopeWords = (stage) => (Object.hasOwn(kScopeWords, stage) ? kScopeWords[stage] : printable(stage));

// A stage with how often it ran: a saving is of all of them together.
function timesWords(metrics, stage) {
  const row = metrics.stages.find((one) => one.stage === stage);
  return row && stage !== 'all' && row.instances > 1 ? `all ${row.instances} of '${scopeWords(stage)}'` : scopeWords(stage);
}

const plural = (n, one, many) => `${n} ${n === 1 ? one : many || `${one}s`}`;

// The next round number up: 1, 2 or 5 times a power of ten.
function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return power * ([1, 2, 5].find((m) => m * power >= least) || 10);
}

// Characters that hide or reorder others, written out. Names are untrusted.
const kDeceptive = /[\p{Cc}\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/gu;
const printable = (text) =>
  String(text).replace(kDeceptive, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);

const headCut = (text, most) => (text.length <= most ? text : `${text.slice(0, most - 1)}…`);

// The beginning and the end: kernels of one library differ in their tails.
function middleCut(text, most) {
  if (text.length <= most) return text;
  const tail = Math.floor(most * 0.4);
  return `${text.slice(0, most - tail - 1)}…${text.slice(-tail)}`;
}
