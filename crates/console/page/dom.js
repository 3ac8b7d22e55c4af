// Elements, numbers and tables. Names are chosen by clients: they only ever become text.

const SVG = 'http://www.w3.org/2000/svg';

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'data') Object.assign(element.dataset, value);
    else if (name === 'value') element.value = value;
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat(3).filter((child) => child !== undefined && child !== null && child !== false));
  return element;
}

const h = (tag, props, ...children) => fill(document.createElement(tag), props, children);
const s = (tag, props, ...children) => fill(document.createElementNS(SVG, tag), props, children);

/** Puts children in the place of those of an element; nothing where one is absent. */
function refill(element, ...children) {
  element.replaceChildren();
  return fill(element, null, children);
}

/** Sets the text of an element, if it is another. */
function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function attr(element, name, value) {
  const text = String(value);
  if (element.getAttribute(name) !== text) element.setAttribute(name, text);
}

const format = (digits) => new Intl.NumberFormat('en', { maximumFractionDigits: digits });
const [whole, tenths, hundredths, fine] = [0, 1, 2, 4].map(format);

/** A number as people read it. */
function num(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return '–';
  const size = Math.abs(value);
  if (size >= 1e12) return 'all';
  if (size >= 1e9) return `${tenths.format(value / 1e9)} G`;
  if (size >= 1e6) return `${hundredths.format(value / 1e6)} M`;
  if (size >= 1000) return whole.format(value);
  if (size >= 100) return tenths.format(value);
  if (size >= 1 || size === 0) return hundredths.format(value);
  return fine.format(value);
}

const count = (value, one, many = `${one}s`) => `${whole.format(value)} ${value === 1 ? one : many}`;
const per = (unit) => (unit === 'units' ? '' : '/s');
const percent = (part) => (part === null || part === undefined ? '–' : `${part > 0 && part < 0.1 ? tenths.format(part * 100) : whole.format(part * 100)} %`);

/** A time in words. */
function time(seconds) {
  if (seconds === null || seconds === undefined) return '–';
  const left = Math.max(0, seconds);
  if (left < 10) return `${tenths.format(left)} s`;
  if (left < 90) return `${whole.format(left)} s`;
  if (left < 5400) return `${whole.format(left / 60)} min`;
  if (left < 172800) return `${whole.format(left / 3600)} h`;
  return `${whole.format(left / 86400)} days`;
}

/** Text without the marks that turn or hide what stands beside it. */
const plain = (text) => String(text).replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g, '·');

const link = (view, name) => `#/${view}/${encodeURIComponent(name)}`;

/** Children of `parent` in the order of `items`, kept by key: what stays is moved and not made again. */
function keyed(parent, items, key, make, update) {
  const kept = parent.keyed ?? (parent.keyed = new Map());
  const seen = new Set();
  let next = parent.firstElementChild;
  for (const item of items) {
    const id = key(item);
    if (seen.has(id)) continue;
    seen.add(id);
    let element = kept.get(id);
    if (!element) kept.set(id, (element = make(item)));
    update?.(element, item);
    if (element === next) next = next.nextElementSibling;
    else parent.insertBefore(element, next);
  }
  for (const [id, element] of kept) {
    if (!seen.has(id)) {
      element.remove();
      kept.delete(id);
    }
  }
}

/**
 * A table in a frame that scrolls by itself. A column is {name, title, of(row), number, sort, hint}; `of` gives text, a number or an
 * element.
 */
function table({ caption, columns, key, onsort, sort }) {
  const heads = columns.map((column) => {
    const sortable = onsort && column.sort !== false && column.name;
    const title = sortable
      ? h('button', { type: 'button', onclick: () => onsort(column.name) }, column.title)
      : column.title;
    return h('th', { scope: 'col', class: column.number && 'number', title: column.hint }, title);
  });
  const body = h('tbody');
  const inner = h('table', null, h('caption', { class: 'unseen' }, caption), h('thead', null, h('tr', null, heads)), body);
  const element = h('div', { class: 'scroll', role: 'region', 'aria-label': `${caption}, the table`, tabindex: 0 }, inner);
  const mark = (order) => {
    columns.forEach((column, index) => {
      const [name, descending] = order?.startsWith('-') ? [order.slice(1), true] : [order, false];
      const way = column.name === name ? (descending ? 'descending' : 'ascending') : 'none';
      if (onsort && column.sort !== false && column.name) attr(heads[index], 'aria-sort', way);
    });
  };
  mark(sort);
  const cells = (row) =>
    columns.map((column, index) =>
      index === 0 ? h('th', { scope: 'row' }) : h('td', { class: column.number && 'number' }),
    );
  const put = (cell, column, row) => {
    const value = column.of(row);
    if (value instanceof Node) {
      if (cell.firstChild !== value) cell.replaceChildren(value);
    } else {
      const raw = column.raw ? column.raw(row) : row[column.name];
      if (raw !== undefined) cell.dataset.value = raw;
      say(cell, String(value));
    }
  };
  return {
    element,
    mark,
    set(rows, empty = 'Nothing to show.') {
      keyed(body, rows.length ? rows : [{ none: true }], (row) => (row.none ? '\u0000' : key(row)),
        (row) => (row.none ? h('tr', { class: 'none' }, h('td', { colspan: columns.length })) : h('tr', null, cells(row))),
        (line, row) => {
          if (row.none) return say(line.firstChild, empty);
          columns.forEach((column, index) => put(line.children[index], column, row));
          line.row = row;
        });
    },
  };
}

/** A part of a page with its heading. */
const section = (title, ...children) => h('section', { 'aria-label': title }, h('h2', null, title), children);

/** A figure with its name. */
function figure(name, hint) {
  const value = h('dd');
  const element = h('div', { class: 'figure', title: hint }, h('dt', null, name), value);
  return { element, set: (text, mood) => { say(value, text); attr(element, 'data-mood', mood ?? ''); } };
}
