// SPDX-License-Identifier: Apache-2.0
//
// Tables of one kind: sorted by a click on a heading, searched, cut after some rows until all are asked for.
const kFirstRows = 50;
const kSearchedFrom = 12;

function compareValues(a, b) {
  if (a === b) return 0;
  if (a === null || a === undefined) return 2;
  if (b === null || b === undefined) return -2;
  return a < b ? -1 : 1;
}

// Rows in an order; what is not known is last either way.
function ordered(rows, get, isDown) {
  return rows.map((row, place) => ({ row, place, own: get(row) })).sort((a, b) => {
    const order = compareValues(a.own, b.own);
    if (order === 0) return a.place - b.place;
    return Math.abs(order) === 2 ? order : order * (isDown ? -1 : 1);
  }).map(({ row }) => row);
}

// A table over rows of data. Columns: id, title, get, and text (sorted upwards first) or cell (makes the td).
function dataTable({ label, columns, rows, order, kind, rowOf, find, tools, onClick, first = kFirstRows }) {
  const state = { text: '', order, down: true, all: false };
  const body = el('tbody');
  const more = el('button', { type: 'button', class: 'more', onclick: () => { state.all = true; draw(); } });
  const heads = columns.map((column) => el('th', { scope: 'col', class: column.text ? column.id : `n ${column.id}` }, el('button', { type: 'button', 'data-sort': column.id, title: column.hint }, column.title)));
  const table = el('table', { class: kind }, el('caption', { class: 'same' }, label), el('thead', null, el('tr', null, heads)), body);
  const status = el('span', { class: 'hint', role: 'status' });
  const kept = () => {
    const text = state.text.trim().toLowerCase();
    const column = columns.find((one) => one.id === state.order);
    return ordered(rows().filter((row) => !text || find(row).includes(text)), column.get, state.down);
  };
  function draw() {
    const all = kept();
    const shown = state.all ? all : all.slice(0, first);
    body.replaceChildren(...shown.flatMap((row) => rowOf(row)));
    heads.forEach((head, i) => {
      if (columns[i].id === state.order) head.setAttribute('aria-sort', state.down ? 'descending' : 'ascending');
      else head.removeAttribute('aria-sort');
    });
    if (tools.status) status.textContent = tools.status(all);
    more.hidden = shown.length === all.length;
    more.textContent = `Show all ${all.length}`;
  }
  table.addEventListener('click', (event) => {
    const sort = event.target.closest('[data-sort]');
    if (sort) {
      state.down = state.order === sort.dataset.sort ? !state.down : !columns.find((one) => one.id === sort.dataset.sort).text;
      state.order = sort.dataset.sort;
      draw();
    } else if (onClick) {
      onClick(event);
    }
  });
  const search = el('input', { type: 'search', placeholder: 'name or part of it', 'aria-label': `Search: ${label}`, id: tools.searchId });
  search.addEventListener('input', () => { state.text = search.value; draw(); });
  const hasSearch = tools.searchId || rows().length >= kSearchedFrom;
  draw();
  return { body, draw, kept, nodes: [
    hasSearch || tools.more ? el('div', { class: 'tools' }, hasSearch ? search : '', tools.more || '', status) : '',
    el('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': `Table: ${label}` }, table), more] };
}

// A table of plain columns: get, show and the key of each number.
function plainTable(label, list, rows, columns, order) {
  const cell = (column, row, place) => {
    const own = column.get(row);
    if (column.text) return el('td', null, column.code ? el('code', null, middleCut(printable(own ?? ''), 90)) : middleCut(printable(own ?? ''), 60));
    const text = known(own) ? column.show(own) : '–';
    return column.key ? value('td', `${list}[${place}].${column.key}`, own, text, { class: 'n' }) : el('td', { class: 'n' }, text);
  };
  const places = new Map(rows.map((row, place) => [row, place]));
  const made = dataTable({ label, columns, rows: () => rows, order, kind: 'data', first: 15, tools: {},
    rowOf: (row) => [el('tr', null, columns.map((column) => cell(column, row, places.get(row))))],
    find: (row) => columns.filter((column) => column.text).map((column) => String(column.get(row) ?? '').toLowerCase()).join('\n') });
  return made.nodes;
}

const shownNumber = (cell) => {
  const own = cell.dataset.value ?? cell.textContent.trim();
  const number = Number(own);
  return own === '' || Number.isNaN(number) ? null : number;
};

// A table of the program becomes sortable; long ones are searched and cut.
function upgradeTable(box) {
  const table = box.querySelector('table');
  if (!table || table.classList.contains('data') || table.querySelector('[data-sort]') || table.querySelector('tr.sum') || !table.tHead) return;
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const caption = table.caption;
  const heading = box.closest('section') ? box.closest('section').querySelector('h2') : null;
  if (caption && heading && caption.textContent.trim().toLowerCase() === heading.textContent.trim().toLowerCase()) caption.className = 'same';
  if (rows.length < 3) return;
  const first = rows.length > 25 ? 15 : rows.length;
  const state = { order: -1, down: true, text: '', all: false };
  const more = el('button', { type: 'button', class: 'more', onclick: () => { state.all = true; draw(); } });
  const search = el('input', { type: 'search', placeholder: 'name or part of it', 'aria-label': `Search: ${heading ? heading.textContent : 'table'}` });
  const heads = Array.from(table.tHead.rows[0].cells);
  const isNumber = (i) => heads[i].classList.contains('n');
  function draw() {
    const text = state.text.trim().toLowerCase();
    const kept = rows.filter((row) => !text || row.textContent.toLowerCase().includes(text));
    const sorted = state.order < 0 ? kept : ordered(kept, (row) => (isNumber(state.order) ? shownNumber(row.cells[state.order]) : row.cells[state.order].textContent), state.down);
    body.replaceChildren(...(state.all ? sorted : sorted.slice(0, first)));
    more.hidden = state.all || sorted.length <= first;
    more.textContent = `Show all ${sorted.length}`;
    heads.forEach((head, i) => {
      if (i === state.order) head.setAttribute('aria-sort', state.down ? 'descending' : 'ascending');
      else head.removeAttribute('aria-sort');
    });
  }
  heads.forEach((head, i) => {
    const button = el('button', { type: 'button', onclick: () => { state.down = state.order === i ? !state.down : isNumber(i); state.order = i; draw(); } }, head.textContent);
    head.replaceChildren(button);
  });
  search.addEventListener('input', () => { state.text = search.value; draw(); });
  if (rows.length >= kSearchedFrom) box.before(el('div', { class: 'tools' }, search));
  box.after(more);
  draw();
}
