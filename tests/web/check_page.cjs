// SPDX-License-Identifier: Apache-2.0
//
// Opens pages in a real browser and holds them to what they promise. Called by the scripts beside it:
//   node check_page.cjs SPEC.json    prints a JSON object of measurements; fails with a sentence a fault
'use strict';
const fs = require('fs');
const path = require('path');

const spec = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
const modules = path.join(spec.modules, 'node_modules');
const { chromium } = require(path.join(modules, 'playwright-core'));
const { checkInteractions } = require('./interactions.cjs');
const axeSource = fs.readFileSync(path.join(modules, 'axe-core', 'axe.min.js'), 'utf8');

// GPUWHY_WEB_VERBOSE=1 tells where the time goes.
const began = Date.now();
const tell = (what) => { if (process.env.GPUWHY_WEB_VERBOSE) console.error(`${((Date.now() - began) / 1000).toFixed(1)} s ${what}`); };

const faults = [];
let current = '';
const check = (holds, sentence) => { if (!holds) faults.push(`${current}: ${sentence}`); };

// The value at a key of metrics.json: a.b, a[3].b, a[stage=x,device="y"].b
function at(document, key) {
  let value = document;
  let rest = key;
  while (rest) {
    const name = /^\.?([A-Za-z0-9_]+)/.exec(rest);
    if (!name) throw new Error(`no key: ${key}`);
    value = value?.[name[1]];
    rest = rest.slice(name[0].length);
    if (!rest.startsWith('[')) continue;
    rest = rest.slice(1);
    const number = /^(\d+)\]/.exec(rest);
    if (number) {
      value = value?.[Number(number[1])];
      rest = rest.slice(number[0].length);
      continue;
    }
    const choices = [];
    while (!rest.startsWith(']')) {
      const choice = /^,?([A-Za-z0-9_]+)=("(?:[^"\\]|\\.)*"|[^,\]]*)/.exec(rest);
      if (!choice) throw new Error(`no key: ${key}`);
      choices.push([choice[1], choice[2].startsWith('"') ? JSON.parse(choice[2]) : choice[2]]);
      rest = rest.slice(choice[0].length);
    }
    rest = rest.slice(1);
    value = (value || []).find((row) => choices.every(([field, wanted]) => String(row[field]) === wanted));
  }
  return value;
}

async function open(browser, one, options) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  const seen = { errors: [], requests: [] };
  page.on('console', (message) => { if (['error', 'warning'].includes(message.type())) seen.errors.push(message.text()); });
  page.on('pageerror', (error) => seen.errors.push(String(error)));
  page.on('request', (request) => { if (request.url() !== `file://${one.path}`) seen.requests.push(request.url()); });
  page.on('dialog', (dialog) => { seen.errors.push(`dialog ${dialog.message()}`); dialog.dismiss(); });
  await page.goto(`file://${one.path}`);
  return { context, page, seen };
}

async function ready(page) {
  await page.waitForSelector('html[data-ready], html[data-failed]', { state: 'attached', timeout: 60000 });
  return page.evaluate(() => ({ ms: Number(document.documentElement.dataset.ready), failed: document.documentElement.dataset.failed || null }));
}

// Every number on the page that names its key, against metrics.json; and its words against the program's own.
async function checkNumbers(page, one) {
  const metrics = JSON.parse(fs.readFileSync(one.metrics, 'utf8'));
  const texts = new Map();
  for (const section of JSON.parse(fs.readFileSync(one.report, 'utf8')).sections) {
    const values = [...section.facts, ...section.tables.flatMap((table) => table.rows.flatMap((row) => row.cells))];
    for (const value of values) texts.set(value.key, (texts.get(value.key) || new Set()).add(value.text));
  }
  const shown = await page.$$eval('[data-key]', (nodes) => nodes.map((node) => ({ key: node.dataset.key, value: node.dataset.value, text: node.textContent.trim(), isBare: node.children.length === 0 })));
  let compared = 0;
  for (const { key, value, text, isBare } of shown) {
    const truth = at(metrics, key);
    if (value === undefined) {
      check(truth === null || truth === undefined, `${key} is shown as not known, metrics.json has ${truth}`);
    } else {
      check(Number(value) === truth, `${key} is ${value} on the page and ${truth} in metrics.json`);
    }
    // Where views and the program's sections show one value in the same unit, words must agree.
    const words = texts.get(key);
    if (words && isBare && !/_ms|0\.\d{6}/.test(text) && ![...words].some((word) => /^\d+\.\d{6}$/.test(word))) {
      check([...words].some((word) => text === word || text.endsWith(word) || text.startsWith(word)), `${key} reads "${text}", the program says "${[...words].join('" or "')}"`);
    }
    compared += 1;
  }
  check(compared >= one.leastNumbers, `only ${compared} numbers name their key`);
  const heat = await page.$$eval('[data-family]', (nodes) => nodes.map((node) => ({ stage: node.dataset.stage, family: node.dataset.family, text: node.textContent })));
  for (const cell of heat.filter((one_) => one_.family !== 'idle')) {
    const time = metrics.kernels.filter((row) => row.stage === cell.stage && row.family === cell.family).reduce((sum, row) => sum + row.total_ns, 0);
    const window = metrics.ledgers.filter((row) => row.stage === cell.stage).reduce((sum, row) => sum + row.window_ns, 0);
    const percent = parseFloat(cell.text) || 0;
    check(Math.abs(percent - time / window * 100) <= 0.5, `heat map ${cell.stage} ${cell.family}: ${cell.text}, it is ${time / window * 100} %`);
  }
  // Gaps of the timeline, column by column, are the idle buckets of the ledger.
  const idle = await page.evaluate(() => {
    const { timeline } = window.gpuwhy;
    if (!timeline) return null;
    const { data } = timeline;
    return data.levels.map((level) => data.rows.map((row, place) => ({ device: row.device, kind: row.kind, ns: level.rows[place].reduce((sum, series) => sum + series.fill.reduce((a, b) => a + b, 0), 0) / 65535 * level.column })).filter((row) => row.kind === 'idle'));
  });
  for (const level of idle || []) {
    for (const row of level) {
      const ledger = metrics.ledgers.find((one_) => one_.stage === 'capture' && one_.device === row.device);
      const truth = ['graph', 'sync', 'launch_late', 'started_late', 'queued', 'unknown_idle', 'unrecorded', 'tail'].reduce((sum, bucket) => sum + ledger.buckets_ns[bucket], 0);
      check(Math.abs(row.ns - truth) <= 1000 + ledger.window_ns * 1e-4, `idle time of ${row.device} is ${row.ns} in the timeline and ${truth} in the ledger`);
    }
  }
  // Late launches in the timeline, by what the CPU did, are the causes that the program summed up.
  const late = await page.evaluate(() => {
    const { timeline } = window.gpuwhy;
    if (!timeline) return [];
    const { data } = timeline;
    return data.rows.flatMap((row, place) => (row.kind === 'idle' ? data.levels[0].rows[place].map((series) => ({ device: row.device, cause: data.causes[series.category], ns: series.fill.reduce((a, b) => a + b, 0) / 65535 * data.levels[0].column })) : []))
      .filter((row) => row.cause.startsWith('launch_late'));
  });
  for (const row of late) {
    const split = ['host_work', 'first_use', 'allocating', 'blocked'];
    const kinds = row.cause === 'launch_late' ? null : [row.cause.slice('launch_late.'.length)];
    const truth = metrics.idle_causes.filter((one_) => one_.stage === 'capture' && one_.device === row.device && one_.bucket === 'launch_late' && (kinds ? kinds.includes(one_.kind) : !split.includes(one_.kind))).reduce((sum, one_) => sum + one_.total_ns, 0);
    check(Math.abs(row.ns - truth) <= 1000 + metrics.capture.duration_ns * 1e-4, `${row.cause} of ${row.device} is ${row.ns} in the timeline and ${truth} in the tables`);
  }
  return compared;
}

async function axe(page, label, rules) {
  await page.evaluate(axeSource);
  const result = await page.evaluate((only) => globalThis.axe.run(document, { resultTypes: ['violations'], ...(only ? { runOnly: { type: 'rule', values: only } } : {}) }), rules);
  for (const violation of result.violations) {
    check(false, `axe ${label}: ${violation.id}: ${violation.nodes.slice(0, 3).map((node) => node.target.join(' ')).join(' | ')} ${violation.nodes[0].failureSummary || ''}`);
  }
}

// A page without scripts: the same promises, and every number is that of the JSON.
async function visitStatic(browser, one) {
  current = one.name;
  const result = { name: one.name, bytes: fs.statSync(one.path).size };
  const truth = JSON.parse(fs.readFileSync(one.metrics, 'utf8'));
  check(result.bytes <= 2000000, `the file has ${result.bytes} bytes`);
  for (const colorScheme of ['light', 'dark']) {
    const { context, page, seen } = await open(browser, one, { colorScheme });
    // axe sees what is folded away only where it is not.
    await page.evaluate(() => { for (const one_ of document.querySelectorAll('details')) one_.open = true; });
    await axe(page, colorScheme);
    await page.evaluate(() => { for (const one_ of document.querySelectorAll('details')) one_.open = false; });
    await page.screenshot({ path: path.join(spec.out, `${one.name}-${colorScheme}.png`), fullPage: true });
    if (colorScheme === 'light') {
      const shown = await page.$$eval('[data-key]', (nodes) => nodes.map((node) => ({ key: node.dataset.key, value: node.dataset.value })));
      for (const { key, value } of shown) check(Number(value) === at(truth, key), `${key} is ${value} on the page and ${at(truth, key)} in the JSON`);
      result.numbers = shown.length;
      check(shown.length >= one.leastNumbers, `only ${shown.length} numbers name their key`);
      // Bars of a table are as long as its differences, each on its side of the middle.
      const bars = await page.$$eval('td.bar-cell', (cells) => cells.map((cell) => ({ table: [...document.querySelectorAll('table')].indexOf(cell.closest('table')), x: Number(cell.querySelector('rect').getAttribute('x')), length: Number(cell.querySelector('rect').getAttribute('width')), value: Number(cell.nextElementSibling.dataset.value) })));
      const keyed = bars.filter((bar) => Number.isFinite(bar.value));
      for (const bar of keyed) {
        const longest = keyed.filter((other) => other.table === bar.table).reduce((a, c) => (Math.abs(c.value) > Math.abs(a.value) ? c : a));
        check(bar.value < 0 ? Math.abs(bar.x + bar.length - 100) < 0.02 : bar.x === 100, `the bar of ${bar.value} stands at ${bar.x}`);
        check(bar.length <= 99.01 && (longest.value === 0 || Math.abs(bar.length - longest.length * Math.abs(bar.value / longest.value)) < 0.02), `the bar of ${bar.value} is ${bar.length} long`);
      }
      result.bars = bars.length;
      const pdf = (await page.pdf({ format: 'A4', printBackground: true })).toString('latin1');
      result.pages = (pdf.match(/\/Type\s*\/Page\b(?!s)/g) || []).length;
      fs.writeFileSync(path.join(spec.out, `${one.name}.pdf`), pdf, 'latin1');
      check(result.pages >= 1 && result.pages <= 8, `prints on ${result.pages} pages`);
      await page.setViewportSize({ width: 390, height: 844 });
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      check(wide <= 390, `is ${wide} wide on a screen of 390`);
      const cards = await page.evaluate(() => Array.from(document.querySelectorAll('table.cards')).filter((table) => table.checkVisibility()).map((table) => {
        const box = table.closest('.scroll');
        const name = table.querySelector('tbody .name').getBoundingClientRect();
        const row = table.querySelector('tbody tr').getBoundingClientRect();
        return { over: box.scrollWidth - box.clientWidth, below: name.top - row.top };
      }));
      for (const card of cards) check(card.over <= 0 && card.below < 40, `a table of cards is ${card.over} too wide on a phone, and its first name ${card.below} below the top`);
      await page.screenshot({ path: path.join(spec.out, `${one.name}-390.png`), fullPage: true });
      if (one.hostile) {
        const found = await page.evaluate(() => ({ owned: globalThis.owned === undefined, foreign: document.querySelectorAll('img,script,iframe,object,embed,link,[onerror],[onload]').length, text: document.body.textContent }));
        check(found.owned && found.foreign === 0, 'a name became an element');
        check(!/[\0\u202a-\u202e\u2066-\u2069]/.test(found.text), 'characters that reorder text are shown as they are');
        check(found.text.includes('<svg') || found.text.includes('</script>'), 'no hostile name is shown at all');
      }
      await page.evaluate(() => { const script = document.createElement('script'); script.textContent = 'globalThis.owned = 2'; document.body.append(script); });
      check(await page.evaluate(() => globalThis.owned === undefined), 'the policy let a foreign script run');
      seen.errors = seen.errors.filter((error) => !/Refused to execute inline script|Executing inline script/.test(error));
    }
    check(seen.errors.length === 0, `the console has ${seen.errors.slice(0, 3).join(' | ')}`);
    check(seen.requests.length === 0, `it asks for ${seen.requests.slice(0, 3).join(' | ')}`);
    await context.close();
  }
  // Neither scripts nor styles: the verdict and where the difference went are still words.
  const context = await browser.newContext({ javaScriptEnabled: false });
  const page = await context.newPage();
  const file = path.join(spec.out, `${one.name}-bare.html`);
  fs.writeFileSync(file, fs.readFileSync(one.path, 'utf8').replace(/<style>[^]*?<\/style>/, ''));
  await page.goto(`file://${file}`);
  const words = (await page.innerText('body')).replace(/\s+/g, ' ');
  if (!one.hostile) check(words.includes(truth.sentence.replace(/\s+/g, ' ').replace(/^(slower|faster|not decided|not comparable): /, '')), 'the verdict is not there without styles');
  for (const row of truth.families.filter((one_) => one_.difference_ns !== 0 && !one.hostile)) check(words.includes(row.family), `family ${row.family} is not there without styles`);
  await page.screenshot({ path: path.join(spec.out, `${one.name}-unstyled.png`) });
  await context.close();
  return result;
}

async function measure(page, script, rounds) {
  const times = [];
  for (let i = 0; i < rounds; i += 1) times.push(await page.evaluate(script));
  return Math.min(...times);
}

const kSearch = `(() => { const input = document.getElementById('kernel-search'); if (!input) return 0;
  const start = performance.now(); input.value = 'ker'; input.dispatchEvent(new Event('input')); document.body.offsetHeight;
  const time = performance.now() - start; input.value = ''; input.dispatchEvent(new Event('input')); return time; })()`;
const kSort = `(() => { const button = document.querySelector('[data-sort="calls"]'); if (!button) return 0;
  const start = performance.now(); button.click(); document.body.offsetHeight; return performance.now() - start; })()`;
// Thirty steps of a wheel into the middle and out again, one a frame.
const kWheel = `(async () => { const { timeline } = window.gpuwhy; if (!timeline) return 0;
  const canvas = timeline.canvas; const box = canvas.getBoundingClientRect(); const times = [];
  let last = await new Promise(requestAnimationFrame);
  for (let i = 0; i < 40; i += 1) {
    canvas.dispatchEvent(new WheelEvent('wheel', { deltaY: i < 20 ? -240 : 240, clientX: box.left + box.width / 2, clientY: box.top + 60, bubbles: true, cancelable: true, ctrlKey: true }));
    await new Promise(requestAnimationFrame); const now = await new Promise(requestAnimationFrame); times.push((now - last) / 2); last = now;
  }
  times.sort((a, b) => a - b); return times[Math.floor(times.length * 0.95)]; })()`;

// What the checks above look at where there are kernels: they do not cover what is missing.
async function checkParts(page, one) {
  const metrics = JSON.parse(fs.readFileSync(one.metrics, 'utf8'));
  if (metrics.devices.length === 0 && metrics.kernels.length === 0) {
    const said = await page.evaluate(() => ({ reasons: document.querySelectorAll('#not-here li').length, title: document.querySelector('#findings h2').textContent }));
    check(said.reasons === 0, `without GPU work ${said.reasons} reasons are listed`);
    check(!/opportunit/.test(said.title), `without GPU work there is a section "${said.title}"`);
  }
  if (metrics.kernels.length === 0) return;
  // Every rule is in one of three places: it found something, it found nothing, or it could not look.
  const rules = await page.evaluate(() => ({ all: window.gpuwhy.page.rules.map((rule) => rule.id), shown: Array.from(document.querySelectorAll('#findings .checks li b'), (name) => name.textContent.replaceAll(' ', '_')) }));
  const placed = new Set([...rules.shown, ...metrics.findings.map((row) => row.id)]);
  const lost = metrics.devices.length ? rules.all.filter((id) => !placed.has(id)) : [];
  check(rules.all.length > 20 && lost.length === 0, `${rules.all.length} rules, not shown: ${lost}`);
  check(!rules.shown.some((id) => metrics.findings.some((row) => row.id === id)), 'a rule is among the findings and among those that found nothing');
  // The time of a step is that of the program's sentence, and what is read first has no ids and no names of functions of a library.
  const first = await page.evaluate(() => ({ step: window.gpuwhy.page.step,
    tiles: Array.from(document.querySelectorAll('.tile'), (node) => ({ label: node.querySelector('.tile-label').textContent, text: node.querySelector('.tile-value').textContent })),
    said: Array.from(document.querySelectorAll('#summary > p, #findings .finding-name, #findings .finding > details > p:not(.explain):not(.jumps)'), (node) => node.textContent).join('\n'),
    names: Array.from(document.querySelectorAll('#findings .finding-name'), (node) => node.textContent), explained: document.querySelectorAll('#findings .explain code').length }));
  const stepTile = first.step ? first.tiles.find((one_) => one_.label === first.step.label) : null;
  if (first.step && metrics.aggregates.tpot.p50_ns === null) check(stepTile && first.said.includes(stepTile.text), `the tile says ${stepTile && stepTile.text}, the summary does not`);
  check(!/\(after [a-z_]+\)|DataLoader\)#/.test(first.said), 'an id or the name of a function is in what is read first');
  check(first.names.every((name) => !metrics.findings.some((row) => row.id.includes('_') && name.includes(row.id))), `a finding is called by its id: ${first.names}`);
  check(first.explained === first.names.length, `${first.explained} of ${first.names.length} findings say how to ask about them`);
  const places = await page.$$eval('#findings .finding-place', (nodes) => nodes.map((node) => node.textContent));
  metrics.findings.forEach((row, i) => {
    const often = (metrics.stages.find((stage) => stage.stage === row.stage && stage.stage !== 'all') || { instances: 0 }).instances;
    check(often < 2 || places[i].includes(`all ${often} of`), `a saving of ${often} steps is placed in "${places[i]}"`);
  });
  const slowest = await page.evaluate(() => Array.from(document.querySelectorAll('.tile-label'), (node) => node.textContent).filter((text) => /p99/.test(text)).length);
  check(slowest === 0 || metrics.aggregates.tpot.n >= 100, `a p99 of ${metrics.aggregates.tpot.n} steps is shown`);
  const parts = await page.evaluate(() => ({
    search: document.querySelectorAll('#kernel-search').length,
    sort: document.querySelectorAll('[data-sort="calls"]').length,
    row: document.querySelectorAll('tr[data-row] .name-button').length,
    'heat map': document.querySelectorAll('[data-family]').length,
    'idle row of the timeline': window.gpuwhy.timeline ? window.gpuwhy.timeline.data.rows.filter((row) => row.kind === 'idle').length : 0,
  }));
  // A table of kernels has no times to draw.
  const wanted = Object.entries(parts).slice(0, metrics.ledgers.length > 0 ? 5 : 3);
  for (const [part, count] of wanted) check(count > 0, `there is no ${part}`);
}

// How much longer work takes here than the processor time it needs: others want the processor too. 1 on an idle machine.
function slowness() {
  const start = process.hrtime.bigint();
  const before = process.cpuUsage();
  let used = process.cpuUsage(before);
  while (used.user < 50000) used = process.cpuUsage(before);
  return Math.max(1, Number(process.hrtime.bigint() - start) / 1000 / (used.user + used.system));
}

async function visit(browser, one) {
  current = one.name;
  let factor = spec.factor * slowness();
  const result = { name: one.name, bytes: fs.statSync(one.path).size };
  check(result.bytes <= 2000000, `the file has ${result.bytes} bytes`);
  const first = await open(browser, one);
  const firstMs = (await ready(first.page)).ms;
  await first.context.close();
  tell(`${one.name}: loaded`);
  const { context, page, seen } = await open(browser, one, { colorScheme: 'light' });
  const state = await ready(page);
  factor = Math.max(factor, spec.factor * slowness());
  check(state.failed === null, `views failed: ${state.failed}`);
  result.ready_ms = Math.min(firstMs, state.ms);
  check(result.ready_ms <= one.readyMs * factor, `interactive after ${result.ready_ms} ms`);
  await checkParts(page, one);
  result.numbers = await checkNumbers(page, one);
  tell('numbers');
  result.search_ms = await measure(page, kSearch, 5);
  result.sort_ms = await measure(page, kSort, 5);
  result.wheel_p95_ms = await measure(page, kWheel, 3);
  tell('measured');
  check(result.search_ms <= 100 * factor, `a keystroke in the search takes ${result.search_ms} ms`);
  check(result.sort_ms <= 100 * factor, `sorting takes ${result.sort_ms} ms`);
  check(result.wheel_p95_ms <= 50 * factor, `a frame while zooming takes ${result.wheel_p95_ms} ms (p95)`);
  await page.evaluate(() => { const { timeline } = window.gpuwhy; if (timeline) timeline.show(0, timeline.data.duration_ns); });
  await page.waitForTimeout(100);
  await page.screenshot({ path: path.join(spec.out, `${one.name}.png`), fullPage: true });
  tell('picture');
  await axe(page, 'light');
  tell('axe');
  const pdf = (await page.pdf({ format: 'A4', printBackground: true })).toString('latin1');
  result.pages = (pdf.match(/\/Type\s*\/Page\b(?!s)/g) || []).length;
  fs.writeFileSync(path.join(spec.out, `${one.name}.pdf`), pdf, 'latin1');
  check(result.pages >= 1 && result.pages <= 8, `prints on ${result.pages} pages`);
  tell('printed');
  // A click on a kernel's row opens its details and marks it everywhere.
  if (await page.$('tr[data-row]')) {
    await page.click('tr[data-row] .name-button');
    check(await page.$('#kernel-details .details-card') !== null, 'a click on a row shows no details');
    check(await page.$('tr.chosen') !== null, 'a click on a row does not mark it');
  }
  // The roofline has a dot a profiled launch with FLOPs; one is chosen where its row is.
  if (one.roofline) {
    const metrics = JSON.parse(fs.readFileSync(one.metrics, 'utf8'));
    const truth = metrics.counters.kernels.filter((row) => row.roofline.intensity_flops_per_byte > 0 && row.roofline.flops_per_s > 0);
    const dots = await page.$$eval('.dot', (nodes) => nodes.length);
    check(truth.length > 0 && dots === truth.length, `${dots} dots for ${truth.length} launches with FLOPs`);
    check(await page.$$eval('.dot.chosen', (nodes) => nodes.length) <= dots, 'too many dots are chosen');
    const roofs = await page.$$eval('#counters line.roof', (nodes) => nodes.length);
    check(!one.roofs || roofs >= 2, `the roofline has ${roofs} roofs`);
  }
  // A layer is drawn as wide as its parts take, and a cell of the map moves the timeline there.
  if (one.model) {
    const { structure } = JSON.parse(fs.readFileSync(one.metrics, 'utf8'));
    const drawn = await page.$$eval('.piece', (nodes) => nodes.map((node) => Number(node.getAttribute('width'))));
    const layer = structure.parts.filter((part) => part.place.startsWith('layer'));
    const longest = Math.max(...layer.map((part) => part.median_ns));
    const whole = layer.reduce((sum, part) => sum + part.median_ns, 0);
    check(drawn.length > 3 && Math.abs(drawn.reduce((sum, width) => sum + width, 0) - 1160) < 8, `pieces are ${drawn} wide`);
    check(Math.abs(Math.max(...drawn) - longest / whole * 1160) < 2, `the longest piece is ${Math.max(...drawn)} wide`);
    check(await page.$('.layer-map') !== null, 'there is no map of layers');
    const found = await page.evaluate(() => {
      const { timeline, model } = window.gpuwhy;
      const map = model.maps[0];
      map.jump({ column: map.columns - 1, layer: 1 });
      const start = map.map.start[map.columns - 1] + map.map.length[(map.columns - 1) * map.map.layers];
      return { start, view: timeline.view, columns: map.columns, passes: map.map.passes };
    });
    check(found.view.start <= found.start && found.start < found.view.end, `a cell at ${found.start} shows ${JSON.stringify(found.view)}`);
    check(found.columns <= Math.min(200, found.passes), `${found.columns} columns for ${found.passes} passes`);
  }
  if (!one.hostile) await checkInteractions(browser, page, one, check);
  tell('interactions');
  const crowded = await page.$$eval('table th', (heads) => heads.filter((head) => head.checkVisibility() && head.clientWidth > 0 && head.scrollWidth > head.clientWidth + 1).map((head) => head.textContent));
  check(crowded.length === 0, `titles wider than their column: ${crowded}`);
  await page.setViewportSize({ width: 390, height: 844 });
  await page.waitForTimeout(50);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  check(wide <= 390, `is ${wide} wide on a screen of 390`);
  const total = await page.$('table.kernels th.total');
  if (total) check((await total.boundingBox()).x + 40 < 390, 'the times of kernels need scrolling on a phone');
  // A name in a column of two letters makes a row as tall as the screen.
  const narrow = await page.$$eval('main td:has(> code), main td.name', (cells) => Math.min(390, ...cells.filter((cell) => cell.checkVisibility() && cell.textContent.length > 20).map((cell) => cell.getBoundingClientRect().width)));
  check(narrow >= 100, `a column of names is ${narrow} wide on a phone`);
  const tall = await page.$$eval('main tbody tr', (rows) => Math.max(0, ...rows.filter((row) => row.checkVisibility()).map((row) => row.getBoundingClientRect().height)));
  check(one.hostile || tall <= 260, `a row of a table is ${tall} tall on a phone`);
  await page.screenshot({ path: path.join(spec.out, `${one.name}-390.png`), fullPage: true });
  check(seen.errors.length === 0, `the console has ${seen.errors.slice(0, 3).join(' | ')}`);
  check(seen.requests.length === 0, `it asks for ${seen.requests.slice(0, 3).join(' | ')}`);
  await context.close();
  tell('narrow');
  const dark = await open(browser, one, { colorScheme: 'dark' });
  await ready(dark.page);
  // Colours are all that differs.
  await axe(dark.page, 'dark', ['color-contrast', 'link-in-text-block']);
  await dark.page.screenshot({ path: path.join(spec.out, `${one.name}-dark.png`) });
  await dark.context.close();
  if (one.hostile) await checkHostile(browser, one);
  return result;
}

// Nothing that a name says has become an element, a script or an attribute.
async function checkHostile(browser, one) {
  const { context, page, seen } = await open(browser, one);
  await ready(page);
  const found = await page.evaluate(() => ({
    owned: globalThis.owned === undefined ? null : String(globalThis.owned), images: document.images.length, scripts: document.scripts.length, handlers: document.querySelectorAll('[onerror],[onload],[onclick]').length,
    frames: document.querySelectorAll('iframe,object,embed,link').length, text: document.body.textContent }));
  check(found.owned === null, 'a name ran as a script');
  check(found.images === 0 && found.frames === 0 && found.handlers === 0, 'a name became an element');
  check(found.scripts === 3, `the page has ${found.scripts} scripts`);
  check(!/[\0\u202a-\u202e\u2066-\u2069]/.test(found.text), 'characters that reorder text are shown as they are');
  check(found.text.includes('</script>'), 'the hostile name is not shown at all');
  // What gets in all the same is not run.
  await page.evaluate(() => { const script = document.createElement('script'); script.textContent = 'globalThis.owned = 2'; document.body.append(script); });
  check(await page.evaluate(() => globalThis.owned === undefined), 'the policy let a foreign script run');
  check(seen.requests.length === 0, `it asks for ${seen.requests.slice(0, 3).join(' | ')}`);
  await context.close();
}

// Without scripts, and without scripts and styles: how good, where the time goes, what to fix.
async function checkBare(browser, one) {
  current = `${one.name}, bare`;
  const metrics = JSON.parse(fs.readFileSync(one.metrics, 'utf8'));
  for (const hasStyles of [true, false]) {
    const context = await browser.newContext({ javaScriptEnabled: false });
    const page = await context.newPage();
    let source = fs.readFileSync(one.path, 'utf8');
    if (!hasStyles) source = source.replace(/<style>[^]*?<\/style>/, '').replace(/style-src [^;]*/, "style-src 'none'");
    const file = path.join(spec.out, `${one.name}-bare.html`);
    fs.writeFileSync(file, source);
    await page.goto(`file://${file}`);
    const text = (await page.innerText('body')).replace(/\s+/g, ' ');
    check(text.includes(metrics.verdict.split(' Top opportunity: ')[0].replace(/\s+/g, ' ')), 'the verdict is not there');
    for (const finding of metrics.findings) check(text.includes(finding.id) && text.includes(finding.sentence.replace(/\s+/g, ' ')), `finding ${finding.id} is not there`);
    for (const kernel of metrics.kernels.slice(0, 20)) check(text.includes(kernel.short_name.replace(/\s+/g, ' ').slice(0, 200)), `kernel ${kernel.short_name} is not there`);
    for (const stage of metrics.stages.filter((row) => row.stage !== 'vision')) check(text.includes(stage.stage), `stage ${stage.stage} is not there`);
    check(!text.includes('H4sI'), 'the data is shown as text');
    await page.screenshot({ path: path.join(spec.out, `${one.name}-bare${hasStyles ? '' : '-unstyled'}.png`) });
    await context.close();
  }
}

(async () => {
  fs.mkdirSync(spec.out, { recursive: true });
  const browser = await chromium.launch({ executablePath: spec.chromium, args: ['--no-sandbox', '--disable-gpu'] });
  const results = [];
  for (const one of spec.pages) {
    results.push(await (one.static ? visitStatic : visit)(browser, one));
    if (one.bare) await checkBare(browser, one);
  }
  await browser.close();
  for (const result of results) console.log(JSON.stringify(result));
  for (const fault of faults) console.error(fault);
  process.exit(faults.length ? 1 : 0);
})().catch((error) => { console.error(error); process.exit(1); });
