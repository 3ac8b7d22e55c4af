// The tree of nodes around this one for a resource, and all its resources.


const ROWS = 100;
const POINTS = 90;
/** The place of the capacity in a level, in per cent: what is wanted beyond that stands to the right of it. */
const FULL = 84;

/** What is so here, in a sentence or two. */
function inShort() {
  const { node } = live;
  if (!node) return ['Looking …', ''];
  const rows = [...live.resources.values()];
  if (!node.leads) return ['Nobody leads this node.', 'Holders live on their leases until somebody does.'];
  if (!rows.length) return ['Nobody holds anything here yet.', 'Resources appear as soon as a client asks for one.'];
  const full = rows.filter((row) => (row.used ?? 0) > 0.98 && row.wants > row.capacity * 1.02 && row.wants < 1e12);
  const holders = rows.reduce((sum, row) => sum + row.clients, 0);
  const worst = full.sort((one, other) => other.wants / other.capacity - one.wants / one.capacity)[0];
  const first = `${count(holders, 'lease')} of ${count(node.resources_in_all, 'resource')}.`;
  if (!worst) return [`${first} There is enough for everybody.`, ''];
  const much = worst.capacity > 0 ? `${num(worst.wants / worst.capacity)} times as much is wanted as there is` : 'there is nothing';
  return [`${first} ${full.length === 1 ? 'One is' : `${full.length} are`} full.`, `Of ${plain(worst.resource)}, ${much}.`];
}

/** A level in a box: what is out of the capacity, and a mark for what is wanted. */
function gauge() {
  const fill = h('i', { class: 'gauge-fill' });
  const want = h('i', { class: 'gauge-want' });
  const element = h('div', { class: 'gauge', 'aria-hidden': 'true' }, fill, want);
  return {
    element,
    set(out, capacity, wants) {
      const part = (value) => (capacity > 0 ? value / capacity : 0);
      fill.style.transform = `scaleX(${(Math.min(1, part(out)) * FULL) / 100})`;
      want.style.left = `${part(wants) <= 1 ? part(wants) * FULL : FULL + (100 - FULL) * Math.min(1, part(wants) - 1)}%`;
      attr(element, 'data-full', part(wants) > 1.001);
    },
  };
}

/** One node of the picture. */
function box() {
  const name = h('h3');
  const note = h('p', { class: 'box-note' });
  const level = gauge();
  const facts = h('p', { class: 'box-facts' });
  const line = spark(150, 34);
  const inside = h('ul', { class: 'boxes' });
  const element = h('li', { class: 'box' }, h('div', { class: 'box-head' }, name, note), h('div', { class: 'box-body' }, h('div', null, level.element, facts), line.element), inside);
  return Object.assign(element, {
    set(node) {
      say(name, plain(node.name));
      say(note, node.note ?? '');
      attr(element, 'data-state', node.state ?? 'known');
      const known = node.capacity !== undefined && node.capacity !== null;
      level.element.hidden = !known;
      if (known) level.set(node.out, node.capacity, node.wants);
      say(facts, node.facts ?? '');
      line.set(node.spark ?? [], node.sparkWants);
      keyed(inside, node.children ?? [], (child) => child.name, box, (inner, child) => inner.set(child));
      inside.hidden = !node.children?.length;
    },
  });
}

function openTree(main, name) {
  let chosen = name ?? '';
  let [tree, sparks, wanted, children, whole] = [null, {}, {}, [], 0];
  let [sort, where, shown] = ['-used', '', ROWS];

  const headline = h('h1');
  const lead = h('p', { class: 'lead' });
  const choose = h('select', { id: 'choose', onchange: () => { location.hash = link('tree', choose.value); } });
  const root = h('ul', { class: 'boxes top' });
  const treeTable = table({
    caption: 'Nodes', key: (row) => row.path,
    columns: [
      { title: 'Node', of: (row) => row.path },
      { title: 'Capacity', number: true, of: (row) => num(row.capacity) },
      { title: 'Out', number: true, of: (row) => num(row.out) },
      { title: 'Wanted', number: true, of: (row) => num(row.wants) },
      { title: 'Clients', number: true, of: (row) => num(row.clients) },
      { title: 'Lease ends in', number: true, of: (row) => time(row.ends) },
    ],
  });
  const lines = new Map();
  const visual = (row) => {
    let kept = lines.get(row.resource);
    if (!kept) {
      const [level, line] = [gauge(), spark(110, 26)];
      kept = { level, line, name: h('a', { href: link('r', row.resource) }, plain(row.resource)) };
      lines.set(row.resource, kept);
    }
    return kept;
  };
  const filter = h('input', { type: 'search', id: 'find', placeholder: 'db/  or  short>0, clients>=10', spellcheck: 'false', autocomplete: 'off', oninput: () => { where = filter.value; update(); } });
  const tally = h('p', { class: 'hint' });
  const list = table({
    caption: 'Resources', key: (row) => row.resource, sort,
    onsort: (column) => {
      sort = sort === `-${column}` ? column : `-${column}`;
      list.mark(sort);
      update();
    },
    columns: [
      { name: 'resource', title: 'Resource', of: (row) => visual(row).name },
      { name: 'used', title: 'Level', of: (row) => { const { level } = visual(row); level.set(row.outstanding, row.capacity, row.wants); return level.element; } },
      { name: 'outstanding', title: 'Out', number: true, of: (row) => `${num(row.outstanding)}${per(row.unit)}` },
      { name: 'capacity', title: 'Capacity', number: true, of: (row) => `${num(row.capacity)}${per(row.unit)}` },
      { name: 'wants', title: 'Wanted', number: true, of: (row) => num(row.wants) },
      { name: 'clients', title: 'Holders', number: true, of: (row) => num(row.clients) },
      { name: 'short', title: 'Short', number: true, of: (row) => (row.short >= 0.005 ? num(row.short) : '·') },
      { title: 'Last 90 s', sort: false, of: (row) => { const { line } = visual(row); line.set(sparks[row.resource] ?? [], wanted[row.resource]); return line.element; } },
    ],
  });
  const more = h('button', { type: 'button', onclick: () => { shown += ROWS; update(); } }, 'Show more');

  main.append(
    h('div', { class: 'title hero' }, headline, lead),
    section('The tree',
      h('div', { class: 'tools' }, h('label', { for: 'choose' }, 'Resource'), choose),
      root,
      h('details', null, h('summary', null, 'The same as a table'), treeTable.element)),
    section('Resources',
      h('div', { class: 'tools' }, h('label', { for: 'find' }, 'Filter'), filter, tally),
      list.element, h('div', { class: 'pager' }, more)),
  );

  const resource = () => (live.resources.has(chosen) ? chosen : busiest());
  const busiest = () => [...live.resources.values()].sort((one, other) => other.clients - one.clients || (one.resource < other.resource ? -1 : 1))[0]?.resource ?? '';

  async function askTree(signal) {
    const of = resource();
    if (!of) return;
    const found = await get('holders', { resource: of, where: 'kind=node', limit: 1000 }, signal);
    children = found.rows;
    whole = found.holders_in_all - found.matching;
    const said = await get('tree', { resources: 1, matching: of.replace(/[*?[\]\\]/g, '[$&]') }, signal).catch(() => null);
    tree = said && { ...said, of };
    update();
  }

  async function askSparks(signal) {
    [sparks, wanted] = (await Promise.all(['outstanding', 'wants'].map((field) => get('series', { field, points: POINTS }, signal)))).map((found) => found.rows);
  }

  /** The picture from what this node knows: those above it by name, and those below as holders. */
  function around(row) {
    const path = live.node.path ?? [live.node.node];
    const here = {
      name: path.at(-1), state: 'here',
      note: `${live.node.leads ? 'leads' : 'follows'} · version ${live.node.config_version || 'unnumbered'}${row?.lease_ends_in_seconds != null ? ` · lease ${time(left(row, row.lease_ends_in_seconds))}` : ''}`,
      capacity: row?.capacity, out: row?.outstanding ?? 0, wants: row?.wants ?? 0, clients: row?.subclients,
      facts: row ? `${num(row.outstanding)} of ${num(row.capacity)}${per(row.unit)} out, ${num(row.wants)} wanted by ${count(row.subclients, 'client')}` : '',
      spark: sparks[row?.resource], sparkWants: wanted[row?.resource],
      ends: row?.lease_ends_in_seconds ?? null,
      children: children.map((child) => ({
        name: child.client, state: child.heard_seconds_ago > 20 ? 'silent' : 'known',
        note: `lease ${time(child.ends_in_seconds)}`,
        capacity: child.has, out: Math.min(child.has, child.wants), wants: child.wants, clients: child.weight, ends: child.ends_in_seconds,
        facts: `${num(child.has)} leased, ${num(child.wants)} wanted by ${count(child.weight, 'client')}`,
      })),
    };
    // Where the whole tree was looked at, that is what is below.
    if (tree && tree.of === row?.resource) here.children = fromLook(tree.tree, tree.of).children;
    if (whole > 0 && row && here.children.length) {
      const rest = (of, all) => Math.max(0, all - children.reduce((sum, child) => sum + child[of], 0));
      const [has, wants] = [rest('has', row.leased), rest('wants', row.wants)];
      here.children.push({ name: count(whole, 'client'), state: 'clients', note: 'directly here', capacity: has, out: has, wants, clients: whole, facts: `${num(has)} leased, ${num(wants)} wanted` });
    }
    return path.slice(0, -1).reduceRight((inner, above) => ({ name: above, state: 'above', note: 'above', children: [inner] }), here);
  }

  function flat(node, path = []) {
    const here = [...path, plain(node.name)];
    const row = node.capacity === undefined ? [] : [{ path: here.join(' › '), capacity: node.capacity, out: node.out, wants: node.wants, clients: node.clients, ends: node.ends ?? null }];
    return [...row, ...(node.children ?? []).flatMap((child) => flat(child, here))];
  }

  function update() {
    const [first, second] = inShort();
    say(headline, first);
    say(lead, second);
    if (!live.node) return;
    const names = [...live.resources.keys()].sort();
    const of = resource();
    keyed(choose, names.slice(0, 1000), (one) => one, (one) => h('option', { value: one }, plain(one)));
    if (choose.value !== of && document.activeElement !== choose) choose.value = of;
    const row = live.resources.get(of);
    const top = around(row);
    keyed(root, [top], (one) => one.name, box, (element, node) => element.set(node));
    treeTable.set(flat(top), 'No node is known.');
    rows();
  }

  function rows() {
    if (lines.size > 2 * live.resources.size + 100) for (const gone of [...lines.keys()]) if (!live.resources.has(gone)) lines.delete(gone);
    let all = [...live.resources.values()];
    const asked = where.trim();
    let fault = '';
    if (asked) {
      try {
        const passes = sieve(condition(asked, 'resource'));
        all = all.filter(passes);
      } catch (problem) {
        fault = problem.message;
      }
    }
    const [name, way] = sort.startsWith('-') ? [sort.slice(1), -1] : [sort, 1];
    const value = (row) => row[name] ?? (way > 0 ? Infinity : -Infinity);
    all.sort((one, other) => {
      const [a, b] = [value(one), value(other)];
      return (a < b ? -1 : a > b ? 1 : 0) * way || (one.resource < other.resource ? -1 : 1);
    });
    list.set(all.slice(0, shown), asked ? 'No resource matches.' : 'Nobody holds anything here yet.');
    more.hidden = all.length <= shown;
    const others = live.node.others?.resources ?? 0;
    say(tally, fault || `${count(all.length, 'resource')}${others ? `, and ${num(others)} less busy ones with ${count(live.node.others.holders, 'lease')}` : ''}`);
  }

  const ends = [listen(update), poll(2000, askTree), poll(5000, askSparks)];
  update();
  return { title: 'Tree', close: () => ends.forEach((end) => end()) };
}

/** A filter of rows that the page has already, as the server reads it: all conditions have to hold. */
function sieve(text) {
  const conditions = text.split(/,(?=(?:[^"]*"[^"]*")*[^"]*$)/).map((part) => {
    const [, field, sign, word] = /^\s*(\w+)\s*(<=|>=|\^=|!=|=|<|>)\s*(.*?)\s*$/.exec(part) ?? [];
    if (!field) throw new Error(`found ${part.trim()}; wanted a field, one of = != < > <= >= ^=, and a value`);
    const value = (row) => {
      if (word.startsWith('"')) return JSON.parse(word);
      if (word in row) return row[word];
      if (word === 'null') return null;
      if (word === 'true' || word === 'false') return word === 'true';
      return word !== '' && !Number.isNaN(Number(word)) ? Number(word) : word;
    };
    const holds = { '=': (a, b) => a === b, '!=': (a, b) => a !== b, '<': (a, b) => a < b, '>': (a, b) => a > b, '<=': (a, b) => a <= b, '>=': (a, b) => a >= b, '^=': (a, b) => String(a).startsWith(b) }[sign];
    return (row) => {
      if (!(field in row)) throw new Error(`found ${field}; wanted a field, one of ${Object.keys(row).join(', ')}`);
      const [a, b] = [row[field], value(row)];
      return '=!'.includes(sign[0]) ? holds(a, b) : a !== null && b !== null && holds(a, b);
    };
  });
  return (row) => conditions.every((holds) => holds(row));
}

/** How a node was seen that has not answered. */
const UNSEEN = { silent: 'has not answered', cannot_be_asked: 'cannot be asked', left_out: 'is left out', malformed: 'cannot be read' };

/** A node, and all below it, from a look down the tree. */
function fromLook(branch, of) {
  const { figures } = branch;
  const row = figures?.resources.find((one) => one.resource === of);
  return {
    name: branch.node,
    state: branch.seen === 'shown' ? 'known' : 'silent',
    note: figures ? `version ${figures.config_version || 'unnumbered'}${row?.lease_ends_in_seconds != null ? ` · lease ${time(row.lease_ends_in_seconds)}` : ''}${figures.age_seconds > 5 ? ` · ${time(figures.age_seconds)} old` : ''}` : UNSEEN[branch.seen],
    capacity: row?.capacity, out: row?.out ?? 0, wants: row?.wants ?? 0, clients: row?.clients, ends: row?.lease_ends_in_seconds ?? null,
    facts: row ? `${num(row.out)} of ${num(row.capacity)}${row.kind === 'gauge' ? '' : '/s'} out, ${num(row.wants)} wanted by ${count(row.clients, 'holder')}` : figures ? 'holds none of it' : '',
    children: [...branch.below.map((below) => fromLook(below, of)), ...(branch.unnamed ? [{ name: `${count(branch.unnamed, 'node')} more`, state: 'clients' }] : [])],
  };
}
