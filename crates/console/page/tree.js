// The tree of nodes around this one for a resource, and all its resources.

const ROWS = 100;
const POINTS = 90;
/** The place of the capacity in a level, in per cent: what is wanted beyond that stands to the right of it. */
const FULL = 84;

/** What is so here, in a sentence or two. */
function inShort() {
  const { node } = live;
  if (!node) return ['Looking …'];
  const rows = [...live.resources.values()];
  if (!node.leads) return ['Nobody leads this node.', 'Holders live on their leases until somebody does.'];
  if (!rows.length) return ['Nobody holds anything here yet.', 'Resources appear as soon as a client asks for one.'];
  const first = `${count(total(rows, (row) => row.clients), 'lease')} of ${count(node.resources_in_all, 'resource')}.`;
  const full = rows.filter((row) => row.used > 0.98 && row.wants > row.capacity * 1.02 && row.wants < 1e12);
  if (!full.length) return [`${first} There is enough for everybody.`];
  const [worst] = full.sort((one, other) => other.wants / other.capacity - one.wants / one.capacity);
  const much = worst.capacity > 0 ? `${num(worst.wants / worst.capacity)} times as much is wanted as there is` : 'there is nothing';
  return [`${first} ${full.length === 1 ? 'One is' : `${full.length} are`} full.`, `Of ${plain(worst.resource)}, ${much}.`];
}

/** A level in a box: what is out of the capacity, and a mark for what is wanted. */
function gauge() {
  const [had, want] = [h('i.gauge-fill'), h('i.gauge-want')];
  const element = h('div.gauge', { 'aria-hidden': 'true' }, had, want);
  return Object.assign(element, {
    draw(out, capacity, wants) {
      const part = (value) => (capacity > 0 ? value / capacity : 0);
      had.style.transform = `scaleX(${(Math.min(1, part(out)) * FULL) / 100})`;
      want.style.left = `${FULL * Math.min(1, part(wants)) + (100 - FULL) * Math.min(1, Math.max(0, part(wants) - 1))}%`;
      attr(element, { 'data-full': part(wants) > 1.001 });
      return element;
    },
  });
}

/** One node of the picture. */
function box(of) {
  const [note, level, facts, line, inside] = [h('p.box-note'), gauge(), h('p.box-facts'), spark(150, 34), h('ul.boxes')];
  const element = h('li.box', h('div.box-head', h('h3', plain(of.name)), note), h('div.box-body', h('div', level, facts), line), inside);
  return Object.assign(element, {
    set({ state, note: said = '', facts: told = '', capacity = null, out, wants, spark: points, sparkWants, children = [] }) {
      say(note, said);
      say(facts, told);
      attr(element, { 'data-state': state });
      level.hidden = capacity === null;
      level.draw(out, capacity, wants);
      line.draw(points, sparkWants);
      keyed(inside, children, (child) => child.name, box);
      inside.hidden = !children.length;
    },
  });
}

const leaseOf = (seconds) => (seconds ?? null) !== null && `lease ${time(seconds)}`;
const versionOf = (number) => `version ${number || 'unnumbered'}`;
/** What is out of what may be, and who wants how much. */
const factsOf = ({ out, capacity, wants, unit }, holders) => `${num(out)} of ${amount(capacity, unit)} out, ${num(wants)} wanted by ${holders}`;

/** How a node was seen that has not answered. */
const UNSEEN = { silent: 'has not answered', cannot_be_asked: 'cannot be asked', left_out: 'is left out', malformed: 'cannot be read' };

/** A node, and all below it, from a look down the tree. */
function fromLook({ node, seen, figures: known, below, unnamed }, of) {
  const row = known?.resources.find((one) => one.resource === of);
  return {
    ...row, name: node, state: seen === 'shown' ? 'known' : 'silent', ends: row?.lease_ends_in_seconds,
    note: known ? dots(versionOf(known.config_version), leaseOf(row?.lease_ends_in_seconds), known.age_seconds > 5 && `${time(known.age_seconds)} old`) : UNSEEN[seen],
    facts: row ? factsOf({ ...row, unit: row.kind }, count(row.clients, 'holder')) : known && 'holds none of it',
    children: [...below.map((one) => fromLook(one, of)), ...(unnamed ? [{ name: `${count(unnamed, 'node')} more`, state: 'clients' }] : [])],
  };
}

/** The nodes of a picture one by one, each with its path. */
function flat(node, above = []) {
  const path = [...above, plain(node.name)];
  const below = (node.children ?? []).flatMap((child) => flat(child, path));
  return (node.capacity ?? null) === null ? below : [{ ...node, path: path.join(' › ') }, ...below];
}

function openTree(page, chosen) {
  let [tree, sparks, wanted, leased, direct, shown] = [{}, {}, {}, [], 0, ROWS];

  const choice = resourceChoice('tree');
  const root = h('ul.boxes.top');
  const nodes = table({
    caption: 'Nodes', key: (row) => row.path,
    columns: [column('path', 'Node'), figures('capacity', 'Capacity'), figures('out', 'Out'), figures('wants', 'Wanted'), figures('clients', 'Clients'), figures('ends', 'Lease ends in', time)],
  });
  const pictures = once((resource) => ({ name: h('a', { href: link('r', resource) }, plain(resource)), level: gauge(), line: spark(110, 26) }));
  const list = listing({
    caption: 'Resources', key: (row) => row.resource, sort: '-used', field: 'resource', example: 'db/  or  short>0, clients>=10', atOnce: true,
    onchange: () => rows(),
    columns: [
      column('resource', 'Resource', (resource) => pictures(resource).name),
      column('used', 'Level', (_, row) => pictures(row.resource).level.draw(row.outstanding, row.capacity, row.wants)),
      figures('outstanding', 'Out', (value, row) => amount(value, row.unit)), figures('capacity', 'Capacity', (value, row) => amount(value, row.unit)),
      figures('wants', 'Wanted'), figures('clients', 'Holders'), figures('short', 'Short', (value) => (value >= 0.005 ? num(value) : '·')),
      column('', 'Last 90 s', (_, { resource }) => pictures(resource).line.draw(sparks[resource], wanted[resource])),
    ],
  });
  const more = button('Show more', () => {
    shown += ROWS;
    rows();
  });
  page.add(
    section('The tree', tools(choice.parts), root, h('details', h('summary', 'The same as a table'), nodes.element)),
    section('Resources', list.parts, h('div.pager', more)),
  );

  const busiest = () => [...live.resources.values()].sort((one, other) => other.clients - one.clients || (one.resource < other.resource ? -1 : 1))[0]?.resource ?? '';
  const resource = () => (live.resources.has(chosen) ? chosen : busiest());

  async function lookAround(signal) {
    const of = resource();
    if (!of) return;
    const found = await holdersOf(of, { where: 'kind=node', limit: 1000 }, signal);
    leased = found.rows;
    direct = found.holders_in_all - found.matching;
    const looked = await get('tree', { resources: 1, matching: of.replace(/[*?[\]\\]/g, '[$&]') }, signal);
    tree = { ...fromLook(looked.tree, of), of };
    update();
  }

  async function lookBack(signal) {
    const found = await Promise.all(['outstanding', 'wants'].map((field) => get('series', { field, points: POINTS }, signal)));
    [sparks, wanted] = found.map((one) => one.rows);
  }

  /** The picture from what this node knows: those above it by name, and those below by a look. */
  function around(row) {
    const { node } = live;
    const path = node.path ?? [node.node];
    const here = {
      name: path.at(-1), state: 'here', note: dots(node.leads ? 'leads' : 'follows', versionOf(node.config_version), row && row.lease_ends_in_seconds !== null && leaseOf(left(row, row.lease_ends_in_seconds))),
      ...(row && {
        capacity: row.capacity, out: row.outstanding, wants: row.wants, clients: row.subclients, ends: row.lease_ends_in_seconds,
        facts: factsOf({ ...row, out: row.outstanding }, count(row.subclients, 'client')), spark: sparks[row.resource], sparkWants: wanted[row.resource],
      }),
      children: tree.of && tree.of === row?.resource ? [...tree.children] : [],
    };
    if (direct > 0 && row && here.children.length) {
      const [has, wants] = [['has', row.leased], ['wants', row.wants]].map(([of, all]) => Math.max(0, all - total(leased, (child) => child[of])));
      here.children.push({ name: count(direct, 'client'), state: 'clients', note: 'directly here', capacity: has, out: has, wants, clients: direct, facts: `${num(has)} leased, ${num(wants)} wanted` });
    }
    return path.slice(0, -1).reduceRight((inner, above) => ({ name: above, state: 'above', note: 'above', children: [inner] }), here);
  }

  function update() {
    page.head(...inShort());
    if (!live.node) return;
    const of = resource();
    choice.set([...live.resources.keys()].sort().slice(0, 1000), of);
    const top = around(live.resources.get(of));
    keyed(root, [top], (one) => one.name, box);
    nodes.set(flat(top), 'No node is known.');
    rows();
  }

  function rows() {
    const { sort, where, tally } = list;
    const [name, way] = sort.startsWith('-') ? [sort.slice(1), -1] : [sort, 1];
    const value = (row) => row[name] ?? way * Infinity;
    let [found, fault] = [[...live.resources.values()], ''];
    try {
      found = found.filter(sieve(where));
    } catch (problem) {
      fault = problem.message;
    }
    found.sort((one, other) => {
      const [a, b] = [value(one), value(other)];
      return (a < b ? -way : a > b ? way : 0) || (one.resource < other.resource ? -1 : 1);
    });
    list.set(found.slice(0, shown), 'Nobody holds anything here yet.');
    more.disabled = found.length <= shown;
    const others = live.node?.others;
    say(tally, fault || `${count(found.length, 'resource')}${others?.resources ? `, and ${num(others.resources)} less busy ones with ${count(others.holders, 'lease')}` : ''}`);
  }

  page.listen(update);
  page.every(2000, lookAround);
  page.every(5000, lookBack);
}

const SIGNS = {
  '=': (a, b) => a === b, '!=': (a, b) => a !== b, '<': (a, b) => a < b, '>': (a, b) => a > b,
  '<=': (a, b) => a <= b, '>=': (a, b) => a >= b, '^=': (a, b) => String(a).startsWith(b),
};

/** A word of a condition: the field of a row, or a value. */
function valueOf(word, row) {
  if (word in row) return row[word];
  try {
    return JSON.parse(word);
  } catch {
    return word;
  }
}

/** A filter of rows that the page has already, as the server reads it: all conditions have to hold. */
function sieve(text) {
  const conditions = text.split(/,(?=(?:[^"]*"[^"]*")*[^"]*$)/).filter(Boolean).map((part) => {
    const [, field, sign, word] = /^\s*(\w+)\s*(<=|>=|\^=|!=|=|<|>)\s*(.*?)\s*$/.exec(part) ?? [];
    if (!field) throw new Error(`found ${part.trim()}; wanted a field, one of ${Object.keys(SIGNS).join(' ')}, and a value`);
    return (row) => {
      if (!(field in row)) throw new Error(`found ${field}; wanted a field, one of ${Object.keys(row).join(', ')}`);
      const [a, b] = [row[field], valueOf(word, row)];
      // Nothing is greater or less than what is absent.
      return ('=!'.includes(sign[0]) || (a !== null && b !== null)) && SIGNS[sign](a, b);
    };
  });
  return (row) => conditions.every((holds) => holds(row));
}
