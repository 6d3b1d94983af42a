// SPDX-License-Identifier: Apache-2.0
//
// What a reader does on report.html, done in a real browser: wheel, keys, search, clicks on gaps and findings, links
// to a place, downloads. `check(holds, sentence)` notes a fault.
'use strict';
const fs = require('fs');

const viewOf = (page) => page.evaluate(() => ({ ...window.gpuwhy.timeline.view }));
const settle = (page) => page.waitForTimeout(120);

async function middleOfCanvas(page) {
  await page.locator('#timeline canvas.lanes').scrollIntoViewIfNeeded();
  const box = await page.locator('#timeline canvas.lanes').boundingBox();
  return { x: box.x + box.width / 2, y: box.y + Math.min(box.height / 2, 60) };
}

async function checkWheel(page, check) {
  await page.evaluate(() => { window.scrollTo(0, 0); window.gpuwhy.timeline.show(0, window.gpuwhy.timeline.data.duration_ns); });
  const at = await middleOfCanvas(page);
  await page.mouse.move(at.x, at.y);
  const [before, top] = [await viewOf(page), await page.evaluate(() => window.scrollY)];
  await page.mouse.wheel(0, 200);
  await settle(page);
  check(await page.evaluate(() => window.scrollY) > top, 'the wheel over the timeline does not scroll the page');
  check((await viewOf(page)).end === before.end, 'the wheel alone zooms the timeline');
  const again = await middleOfCanvas(page);
  await page.mouse.move(again.x, again.y);
  const still = await page.evaluate(() => window.scrollY);
  await page.keyboard.down('Control');
  await page.mouse.wheel(0, -200);
  await page.keyboard.up('Control');
  await settle(page);
  const zoomed = await viewOf(page);
  check(zoomed.end - zoomed.start < before.end - before.start, 'Ctrl and the wheel do not zoom');
  check(await page.evaluate(() => window.scrollY) === still, 'Ctrl and the wheel scroll the page');
}

async function checkKeys(page, check) {
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press('t');
  check(await page.evaluate(() => document.activeElement === window.gpuwhy.timeline.canvas), 'T does not go to the timeline');
  await page.keyboard.press('0');
  await settle(page);
  const whole = await viewOf(page);
  check(whole.start === 0, '0 does not show the whole recording');
  for (const key of ['w', 'w', 'd']) await page.keyboard.press(key);
  await settle(page);
  const moved = await viewOf(page);
  check(moved.end - moved.start < whole.end && moved.start > 0, `W and D lead to ${JSON.stringify(moved)}`);
  await page.keyboard.press('?');
  check(await page.evaluate(() => document.getElementById('keys').open), '? does not list the keys');
  await page.keyboard.press('Escape');
  check(!await page.evaluate(() => document.getElementById('keys').open), 'Esc does not close the list of keys');
}

// A click where the gap is drawn tells its cause, and what a thread of the host did in it.
async function checkGap(page, check) {
  const gap = await page.evaluate(() => {
    const { timeline } = window.gpuwhy;
    const { data } = timeline;
    let best = null;
    for (const row of data.rows.filter((one) => one.kind === 'idle')) {
      for (let i = row.from; i < row.to; i += 1) {
        const cause = data.causes[data.slices.what[i] - 1];
        if (!['tail', 'unrecorded'].includes(cause) && (!best || data.slices.duration[i] > best.length)) best = { start: data.slices.start[i], length: data.slices.duration[i], device: row.device };
      }
    }
    if (!best) return null;
    timeline.choose(best.device);
    timeline.frame(best.start, best.length, 2);
    timeline.draw();
    const lane = timeline.lanes.find((one) => one.kind === 'row' && one.row.kind === 'idle' && one.row.device === best.device);
    timeline.canvas.scrollIntoView({ block: 'center' });
    const box = timeline.canvas.getBoundingClientRect();
    const { view } = timeline;
    return { ...best, hasHost: timeline.host !== null, x: box.left + timeline.left + (best.start + best.length / 2 - view.start) / (view.end - view.start) * timeline.width, y: box.top + lane.y + lane.height / 2 };
  });
  if (!gap) return;
  await page.mouse.click(gap.x, gap.y);
  await settle(page);
  const card = await page.locator('#timeline-details .gap-card').allTextContents();
  check(card.length === 1 && card[0].includes(`${gap.device} idle for`), 'a click on a gap does not describe it');
  if (gap.hasHost) check(/Thread \d+ of process \d+/.test(card[0] || ''), 'a click on a gap does not tell what the host did');
}

async function checkFindings(page, check) {
  const button = page.locator('#findings details[open] .to-gap, #findings details[open] .to-kernel').first();
  if (await button.count() === 0) return;
  await page.evaluate(() => { window.gpuwhy.timeline.select(null); window.scrollTo(0, 0); });
  await button.click();
  await settle(page);
  const seen = await page.evaluate(() => ({ top: document.getElementById('timeline').getBoundingClientRect().top, tall: window.innerHeight, card: document.querySelectorAll('#timeline-details .details-card').length }));
  check(seen.top > -50 && seen.top < seen.tall / 2, `a finding's button leaves the timeline at ${seen.top}`);
  check(seen.card === 1, "a finding's button chooses nothing in the timeline");
}

async function checkSearch(page, check) {
  const name = await page.evaluate(() => { const { kernels } = window.gpuwhy.page.metrics; return kernels[Math.min(1, kernels.length - 1)].short_name.slice(0, 24); });
  await page.evaluate(() => { window.gpuwhy.timeline.show(0, window.gpuwhy.timeline.data.duration_ns); document.activeElement.blur(); });
  await page.keyboard.press('/');
  check(await page.evaluate(() => document.activeElement.id) === 'timeline-search', '/ does not go to the search');
  await page.keyboard.type(name);
  await page.keyboard.press('Enter');
  await settle(page);
  const first = await page.evaluate(() => ({ status: document.querySelector('.search [role=status]').textContent, chosen: window.gpuwhy.timeline.selected }));
  if (/nothing found/.test(first.status)) {
    check(await page.evaluate(() => window.gpuwhy.timeline.data.detail !== 'all'), `a search for "${name}" finds nothing`);
  } else {
    check(/^\d+ of \d+$/.test(first.status) && first.chosen !== null, `a search for "${name}" says "${first.status}"`);
    await page.keyboard.press('Enter');
    check(await page.evaluate((old) => old === '1 of 1' || document.querySelector('.search [role=status]').textContent !== old, first.status), 'Enter does not go to the next match');
  }
  await page.keyboard.press('Escape');
  check(await page.evaluate(() => document.getElementById('timeline-search').value === '' && window.gpuwhy.timeline.matches === null), 'Esc does not clear the search');
}

// Every call that is linked to GPU work began before it; and there are such calls if the recording has any.
async function checkLaunches(page, check) {
  const found = await page.evaluate(() => {
    const { data, host } = window.gpuwhy.timeline;
    if (!host || !data.slices.call) return null;
    let [linked, early] = [0, 0];
    for (let i = 0; i < data.slices.call.length; i += 1) {
      const call = data.slices.call[i] - 1;
      if (call < 0) continue;
      linked += 1;
      if (host.slices.start[call] > data.slices.start[i]) early += 1;
    }
    const overlaps = data.host.lanes.filter((lane) => { for (let i = lane.from + 1; i < lane.to; i += 1) if (host.slices.start[i] < host.slices.start[i - 1] + host.slices.duration[i - 1]) return true; return false; }).length;
    return { linked, early, overlaps, whole: host.data.least_call_ns === 0, calls: window.gpuwhy.page.metrics.capture.calls };
  });
  if (!found) return;
  check(found.overlaps === 0, `${found.overlaps} lanes of the host hold slices that overlap`);
  check(!found.whole || found.calls === 0 || found.linked > 0, 'no kernel is linked to its launch');
  check(found.early <= found.linked * 0.01, `${found.early} of ${found.linked} kernels start before their launch`);
}

// The page opens without lanes that have nothing to show; all of them are there when asked for.
async function checkHostLanes(page, check) {
  const found = await page.evaluate(() => {
    const { timeline } = window.gpuwhy;
    const { host, work } = timeline;
    if (!host) return null;
    const count = (choice) => {
      timeline.hostChoice = choice;
      timeline.resize();
      return timeline.lanes.filter((lane) => lane.kind === 'host');
    };
    const all = count('all').length;
    const opened = count('main');
    const isEmpty = ({ host: lane }) => {
      for (let i = lane.from; i < lane.to; i += 1) if (host.slices.start[i] < work.end && host.slices.start[i] + host.slices.duration[i] > work.start) return false;
      return true;
    };
    return { empty: opened.filter(isEmpty).length, missing: host.data.lanes.length - all };
  });
  if (!found) return;
  check(found.empty === 0, `opens with ${found.empty} empty lanes of the host`);
  check(found.missing === 0, `${found.missing} lanes of the host are not there with all threads`);
}

async function checkAddress(browser, page, one, check) {
  const wanted = await page.evaluate(() => { const { timeline } = window.gpuwhy; const d = timeline.data.duration_ns; timeline.show(d * 0.25, d * 0.5); return { ...timeline.view }; });
  const start = `#t=${Number((wanted.start / 1e6).toFixed(6))}ms-`;
  await page.waitForFunction((text) => location.hash.startsWith(text), start, { timeout: 10000 }).catch(() => {});
  const hash = await page.evaluate(() => location.hash);
  check(/^#t=[\d.]+ms-[\d.]+ms$/.test(hash), `the address has "${hash}"`);
  const other = await browser.newPage();
  await other.goto(`file://${one.path}${hash}`);
  await other.waitForSelector('html[data-ready]', { state: 'attached', timeout: 60000 });
  const got = await viewOf(other);
  check(Math.abs(got.start - wanted.start) <= 2 && Math.abs(got.end - wanted.end) <= 2, `the address ${hash} shows ${JSON.stringify(got)}`);
  await other.close();
}

async function checkDownloads(page, one, check) {
  const metrics = JSON.parse(fs.readFileSync(one.metrics, 'utf8'));
  const saved = async (label) => {
    const [download] = await Promise.all([page.waitForEvent('download', { timeout: 20000 }), page.click(`#downloads button:has-text("${label}")`)]);
    return fs.readFileSync(await download.path(), 'utf8');
  };
  check(JSON.parse(await saved('Save metrics.json')).verdict === metrics.verdict, 'the saved metrics.json is another');
  if (metrics.kernels.length === 0) return;
  const rows = (await saved('Save kernels.csv')).trimEnd().split('\n').length - 1;
  const left = await page.evaluate(() => window.gpuwhy.page.kernels_left_out);
  check(one.hostile || rows === metrics.kernels.length - left, `the saved kernels.csv has ${rows} rows`);
  if (await page.locator('#downloads button:has-text("Save trace.json")').count()) {
    const { traceEvents } = JSON.parse(await saved('Save trace.json'));
    check(traceEvents.some((event) => event.ph === 'X' && event.dur > 0), 'the saved trace holds no slices');
  }
}

async function checkInteractions(browser, page, one, check) {
  await checkDownloads(page, one, check);
  if (!await page.evaluate(() => window.gpuwhy.timeline !== null)) return;
  await checkHostLanes(page, check);
  await checkWheel(page, check);
  await checkKeys(page, check);
  await checkGap(page, check);
  await checkFindings(page, check);
  await checkSearch(page, check);
  await checkLaunches(page, check);
  await checkAddress(browser, page, one, check);
}

module.exports = { checkInteractions };
