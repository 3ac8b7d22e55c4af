// Elements, numbers and tables. Names are chosen by clients: they only ever become text.

/** Gives an element its attributes, if the first is an object of them, and its children; those that are absent are left out. */
function fill(element, [first, ...others]) {
  const hasAttributes = first?.constructor === Object;
  for (const [name, value] of Object.entries(hasAttributes ? first : {})) {
    if ((value ?? false) === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'data') Object.assign(element.dataset, value);
    else if (name === 'value') element.value = value;
    else element.setAttribute(name, value === true ? '' : value);
  }
  const children = hasAttributes ? others : [first, ...others];
  element.append(...children.flat(Infinity).filter((child) => (child ?? false) !== false));
  return element;
}

/** A maker of elements: `tag.class`, attributes, children. */
const maker = (create) => (described, ...rest) => {
  const [tag, ...classes] = described.split('.');
  const element = create(tag);
  if (classes.length) element.setAttribute('class', classes.join(' '));
  return fill(element, rest);
};
const h = maker((tag) => document.createElement(tag));
const s = maker((tag) => document.createElementNS('http://www.w3.org/2000/svg', tag));

/** Puts children in the place of those of an element. */
function refill(element, ...children) {
  element.replaceChildren();
  return fill(element, children);
}

/** Sets the text of an element, if it is another. */
function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Sets those attributes of an element that are others. */
function attr(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    const text = String(value);
    if (element.getAttribute(name) !== text) element.setAttribute(name, text);
  }
}

const button = (title, onclick, more) => h('button', { type: 'button', onclick, ...more }, title);
const hint = (...text) => h('p.hint', ...text);
const tools = (...parts) => h('div.tools', parts);
const notes = (lines) => h('ul.notes', lines.map((line) => line && h('li', line)));
const labelled = (title, input) => [h('label', { for: input.id }, title), input];
const still = matchMedia('(prefers-reduced-motion: reduce)');
const verbatim = { spellcheck: 'false', autocomplete: 'off' };

/** A field in which one of several is chosen: pairs of a value and its text. */
const choice = (options, chosen, onchange, more) =>
  h('select', { ...more, onchange: (event) => onchange(event.target.value) },
    options.map(([value, text]) => h('option', { value, selected: value === chosen }, text)));

/** A part of a page with its heading. */
const section = (title, ...children) => h('section', { 'aria-label': title }, h('h2', title), children);

/** The signs of a picture, with their meanings. */
const legend = (meanings) =>
  h('ul.legend', Object.entries(meanings).map(([sign, text]) => h('li', h(`i.key-${sign}`, { 'aria-hidden': 'true' }), text)));

/** A bar of which a part is filled. */
function bar() {
  const inner = h('i');
  return Object.assign(h('span.tier-bar', { 'aria-hidden': 'true' }, inner), {
    set(part) { inner.style.transform = `scaleX(${Math.min(1, part)})`; },
  });
}

const format = (digits) => new Intl.NumberFormat('en', { maximumFractionDigits: digits });
const [whole, tenths, hundredths, fine] = [0, 1, 2, 4].map(format);

/** A number as people read it. */
function num(value) {
  if (Number.isNaN(value ?? NaN)) return '–';
  const size = Math.abs(value);
  if (size >= 1e12) return 'all';
  if (size >= 1e9) return `${tenths.format(value / 1e9)} G`;
  if (size >= 1e6) return `${hundredths.format(value / 1e6)} M`;
  if (size >= 1000) return whole.format(value);
  if (size >= 100) return tenths.format(value);
  return (size >= 1 || size === 0 ? hundredths : fine).format(value);
}

const count = (value, one) => `${whole.format(value)} ${one}${value === 1 ? '' : 's'}`;
const per = (unit) => (unit === 'units' || unit === 'gauge' ? '' : '/s');
const amount = (value, unit) => num(value) + per(unit);
const percent = (part) => `${(part > 0 && part < 0.1 ? tenths : whole).format(part * 100)} %`;
const total = (rows, of) => rows.reduce((sum, row) => sum + of(row), 0);
/** What is to be said of all that could be, in one line. */
const dots = (...parts) => parts.filter(Boolean).join(' · ');

/** A time in words. */
function time(seconds) {
  if ((seconds ?? null) === null) return '–';
  const left = Math.max(0, seconds);
  if (left < 10) return `${tenths.format(left)} s`;
  const [most, size, unit] = [[90, 1, 's'], [5400, 60, 'min'], [172800, 3600, 'h'], [Infinity, 86400, 'days']].find(([end]) => left < end);
  return `${whole.format(left / size)} ${unit}`;
}

/** Text without the marks that turn or hide what stands beside it. */
const plain = (text) => String(text ?? '').replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g, '·');

const link = (view, name) => `#/${view}/${encodeURIComponent(name)}`;

/** Children of `parent` in the order of `items`, kept by key: what stays is moved and set anew, and not made again. */
function keyed(parent, items, key, make) {
  const kept = (parent.keyed ??= new Map());
  const seen = new Set();
  let next = parent.firstElementChild;
  for (const item of items) {
    const id = key(item);
    if (seen.has(id)) continue;
    seen.add(id);
    let element = kept.get(id);
    if (!element) kept.set(id, (element = make(item)));
    element.set?.(item);
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

/** What is made once for each name; all of it anew when it has become too much. */
function once(make) {
  const made = new Map();
  return (name) => {
    if (made.size > 2000) made.clear();
    if (!made.has(name)) made.set(name, make(name));
    return made.get(name);
  };
}

/** A column of a table: `of` gives text or an element, from the field of that name and the row. */
const column = (name, title, of = plain, tip = null) => ({ name, title, of, tip });
const figures = (name, title, of = num, tip = null) => ({ ...column(name, title, of, tip), kind: 'number' });

/** A table in a frame that scrolls by itself. Where it can be sorted, `onsort` hears by what: a field, `-` before it for the greatest first. */
function table({ caption, columns, key, sort, onsort }) {
  let order = sort;
  const heads = columns.map(({ name, title, kind, tip }) =>
    h('th', { scope: 'col', class: kind, title: tip }, onsort && name ? button(title, () => turn(name)) : title));
  const body = h('tbody');
  const mark = () => columns.forEach(({ name }, index) => {
    if (onsort && name) attr(heads[index], { 'aria-sort': order === name ? 'ascending' : order === `-${name}` ? 'descending' : 'none' });
  });
  const turn = (name) => {
    order = order === `-${name}` ? name : `-${name}`;
    mark();
    onsort(order);
  };
  mark();
  const line = () => {
    const cells = columns.map(({ kind }, index) => (index ? h('td', { class: kind }) : h('th', { scope: 'row' })));
    return Object.assign(h('tr', cells), {
      set(row) {
        columns.forEach(({ name, of }, index) => {
          const [cell, raw] = [cells[index], row[name]];
          const value = of(raw, row);
          if (raw !== undefined) cell.dataset.value = raw;
          if (!(value instanceof Node)) say(cell, String(value));
          else if (cell.firstChild !== value) cell.replaceChildren(value);
        });
      },
    });
  };
  const inner = h('table', h('caption.unseen', caption), h('thead', h('tr', heads)), body);
  return {
    element: h('div.scroll', { role: 'region', 'aria-label': `${caption}, the table`, tabindex: 0 }, inner),
    set(rows, empty = 'Nothing to show.') {
      if (rows.length) return keyed(body, rows, key, line);
      keyed(body, [empty], (text) => `\u0000${text}`, (text) => h('tr.none', h('td', { colspan: columns.length }, text)));
    },
  };
}

/** A filter as people type it: a condition, or the beginning of a name. */
function condition(text, field) {
  const typed = text.trim();
  return !typed || /[=<>]/.test(typed) ? typed : `${field}^=${JSON.stringify(typed)}`;
}

/** A table with a filter above it, which counts at once or when it is typed. `onchange` hears of another filter or order: `where` and `sort`. */
function listing({ example, beside, field, onchange, atOnce, ...described }) {
  const list = { sort: described.sort, where: '', tally: h('p.hint') };
  const change = (changed) => onchange(Object.assign(list, changed));
  const filter = h('input', {
    type: 'search', id: 'filter', placeholder: example, ...verbatim,
    [atOnce ? 'oninput' : 'onchange']: () => change({ where: condition(filter.value, field) }),
  });
  const { element, set } = table({ ...described, onsort: (sort) => change({ sort }) });
  return Object.assign(list, { set: (rows, empty) => set(rows, list.where ? 'Nothing matches.' : empty), parts: [tools(beside, labelled('Filter', filter), list.tally), element] });
}

/** The choice of a resource, by which another is looked at in this view. */
function resourceChoice(view) {
  const select = h('select', { id: 'of', onchange: () => { location.hash = link(view, select.value); } });
  return {
    parts: labelled('Resource', select),
    set(names, chosen) {
      keyed(select, names, (name) => name, (name) => h('option', { value: name }, plain(name || 'all resources')));
      if (document.activeElement !== select) select.value = chosen;
    },
  };
}
