// SPDX-License-Identifier: Apache-2.0
//
// Keys: those of the timeline, those of the page, and the list of both.
const kKeyWords = [['W S', 'zoom in and out'], ['A D ← →', 'pan'], ['0', 'whole recording'], ['F', 'zoom to what is chosen or measured'], ['[ ]', 'previous and next launch of the kernel'],
  ['N P', 'next and previous match of the search'], ['/', 'search the timeline'], ['Esc', 'clear what is chosen'], ['T', 'go to the timeline'], ['?', 'this list']];
const kPointerWords = [['Ctrl+wheel, pinch', 'zoom at the pointer'], ['drag, Shift+wheel', 'pan'], ['Shift+drag', 'measure a time'], ['click', 'kernel, gap, call or range: details'], ['overview', 'click or drag: go there']];

function timelineKeys(timeline) {
  const fit = () => timeline.show(0, timeline.data.duration_ns);
  const frame = () => {
    const { selected: what, band } = timeline;
    if (band) timeline.show(band.start, band.end);
    else if (what && what.host !== undefined) timeline.frame(timeline.host.slices.start[what.host], timeline.host.slices.duration[what.host], 1);
    else if (what && what.slice !== undefined) timeline.frame(timeline.data.slices.start[what.slice], timeline.data.slices.duration[what.slice], 1);
    else if (what) timeline.frame(what.start, what.length, 1);
  };
  return { w: () => timeline.zoom(0.7), s: () => timeline.zoom(1.4), a: () => timeline.move(-0.2), d: () => timeline.move(0.2), '+': () => timeline.zoom(0.5), '=': () => timeline.zoom(0.5), '-': () => timeline.zoom(2),
    ArrowLeft: () => timeline.move(-0.2), ArrowRight: () => timeline.move(0.2), 0: fit, Home: fit, f: frame, ']': () => timeline.nextLaunch && timeline.nextLaunch(1), '[': () => timeline.nextLaunch && timeline.nextLaunch(-1),
    n: () => timeline.searchNext(1), p: () => timeline.searchNext(-1), Escape: () => { timeline.band = null; timeline.select(null); if (chosen.kernel !== null) chosen.set(null, 'timeline'); } };
}

function keyList() {
  const rows = (words) => words.map(([keys, what]) => el('tr', null, el('td', null, el('kbd', null, keys)), el('td', null, what)));
  const table = (title, words) => el('table', null, el('caption', null, title), el('tbody', null, rows(words)));
  const list = el('dialog', { id: 'keys', 'aria-label': 'Keys' }, el('h2', null, 'Keys'), table('With the timeline in focus (click it or press T)', kKeyWords), table('Pointer', kPointerWords),
    el('button', { type: 'button', onclick: () => list.close() }, 'Close'));
  document.body.append(list);
  return list;
}

function listenToKeys(timeline) {
  const list = keyList();
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest('input, select, textarea')) return;
    if (event.key === '?') {
      if (list.open) list.close();
      else list.showModal();
    } else if (event.key === '/' && timeline) {
      event.preventDefault();
      document.getElementById('timeline').scrollIntoView({ block: 'nearest' });
      document.getElementById('timeline-search').focus();
    } else if (event.key.toLowerCase() === 't' && timeline) {
      document.getElementById('timeline').scrollIntoView();
      timeline.canvas.focus({ preventScroll: true });
    }
  });
  return list;
}
