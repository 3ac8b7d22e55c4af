// Configurations before they are pushed: what is wrong with one, and what it would change for whom.

function openPlan(page, _, query) {
  const text = h('textarea', { id: 'yaml', rows: 16, spellcheck: 'false', placeholder: 'resources:\n  - identifier_glob: "db/orders"\n    capacity: 500' });
  const nodes = h('input', { id: 'for', value: '*', size: 10, spellcheck: 'false' });
  const outcome = h('div.outcome', { 'aria-live': 'polite' });
  const buttons = [button('See what it would change', () => run(plan), { class: 'main' }), button('Only check it', () => run(check))];
  const file = h('input', { type: 'file', id: 'file', accept: '.yaml,.yml,.json,text/*', onchange: async () => { if (file.files[0]) text.value = await file.files[0].text(); } });
  const below = tools(buttons, labelled('for the nodes', nodes));
  page.head('Before it is in force', 'Paste a configuration: who would gain and lose what, who would be refused, and how long it would take. Nothing is put in force by that.');
  page.add(section('The configuration', tools(labelled('From a file, or a saved plan', file)), h('label.unseen', { for: 'yaml' }, 'Configuration in YAML'), text, below), outcome);
  const draft = { text, nodes, below, documents: () => [{ for: nodes.value, name: 'console.yaml', text: text.value }] };
  const ready = operators().then((desk) => desk?.plan?.(draft, query.get('back')));
  page.attempt(async () => await ready && run(plan));

  async function run(act) {
    buttons.forEach((one) => { one.disabled = true; });
    try {
      await ready;
      refill(outcome, await act());
    } catch (fault) {
      refill(outcome, h('p.problem', fault.message));
    }
    buttons.forEach((one) => { one.disabled = false; });
  }

  async function plan() {
    let saved = null;
    try {
      saved = JSON.parse(text.value).plan;
    } catch {
      // It is a configuration.
    }
    if (saved?.resources) return planned(saved, true);
    const documents = await draft.documents();
    const made = await post('plan', { documents });
    return [planned(made), draft.form?.(made, documents)];
  }

  async function check() {
    const { valid, templates, never_used: unused, faults, more_faults: more } = await post('check', text.value);
    return valid
      ? [h('h2', `It is valid: ${count(templates.length, 'template')}.`),
        notes([...templates.map(({ glob, capacity, description }) => [`${plain(glob)}: ${num(capacity)}`, plain(description)].filter(Boolean).join(', ')),
          ...unused.map((glob) => `${plain(glob)} is never used: "*" stands before it`)])]
      : [h('h2', count(faults.length + more, 'fault')),
        faults.map(({ line, column, message, snippet }) => h('figure', h('figcaption', `Line ${line}, column ${column}: ${plain(message)}`), h('pre', { tabindex: 0 }, snippet)))];
  }
}

/** A plan, as it was made or saved. */
function planned(plan, isSaved) {
  const changes = plan.resources.length;
  const refused = total(plan.refused, (one) => one.count);
  const losers = total(plan.resources, (one) => one.losers.count);
  return [
    h('h2', !changes ? 'Nothing would change for anybody.' : `${count(changes, 'resource')} would change, and ${losers ? `${count(losers, 'share')} would shrink` : 'nobody would lose anything'}${refused ? `; ${count(refused, 'client')} would be refused` : ''}.`),
    hint(`${isSaved ? `Saved at ${plan.at}. ` : ''}Against ${plan.base ? `revision ${plan.base}` : 'what is in force'}, asked ${count(plan.nodes.asked.length, 'node')} within ${time(plan.took_seconds)}. A forecast from what was wanted then: nothing is kept free for it.`),
    plan.nodes.silent.length > 0 && h('p.problem', `No answer of ${plan.nodes.silent.map(plain).join(', ')}: whoever is there is not in this.`),
    plan.unplanned > 0 && h('p.problem', `${count(plan.unplanned, 'resource')} that would change as well were not looked at.`),
    plan.resources.map((one) => forecast(one, plan)),
    plan.notes.length > 0 && section('Mind', notes(plan.notes.map(({ note, resource, node }) => `${plain(note)}${resource ? ` (${plain(resource)}${node ? ` at ${plain(node)}` : ''})` : ''}`))),
  ];
}

const MOVERS = [
  column('client', 'Client'), column('node', 'At'), figures('wants', 'Wants'),
  ...['Before', 'After'].map((title, at) => figures('', title, (_, row) => num(row.share[at]))), column('', 'Change', (_, row) => row.picture),
];

/** The resource of a plan: its capacity and shares before and after, and those who lose and gain the most. */
function forecast(one, plan) {
  const { resource, kind, capacity, template, algorithm, levels, shares, losers, gainers } = one;
  const units = (value) => (value === null ? 'no limit' : amount(value, kind.includes('gauge') ? 'gauge' : ''));
  const change = (name, [before, after], say) => before !== after && before !== '' && after !== '' && `${name} ${say(before)} → ${say(after)}`;
  const most = Math.max(...capacity, ...shares) || 1;
  const line = (name, at) => {
    const part = bar();
    part.set(shares[at] / most);
    return h('li.tier', { data: { state: at ? 'current' : 'shadowed' } }, h('span.tier-name', name), part,
      h('span', template[at] === null ? 'no template' : `${units(shares[at])} of ${units(capacity[at])}`));
  };
  const refused = plan.refused.filter((row) => row.resource === resource);
  const many = (number, verb) => `${num(number)} ${verb}${number === 1 ? 's' : ''}`;
  const lost = losers.count && `${many(losers.count, 'lose')} ${units(losers.sum)}`;
  const gained = gainers.count && `${many(gainers.count, 'gain')} ${units(gainers.sum)}`;
  const rows = [...losers.worst, ...gainers.worst];
  const widest = Math.max(...rows.flatMap((row) => row.share)) || 1;
  const movers = table({ caption: `Those who lose and gain the most of ${plain(resource)}`, columns: MOVERS, key: (row) => `${row.node} ${row.client}` });
  movers.set(rows.map((row) => ({ ...row, picture: dumbbell(row.share.map((share) => share / widest)) })));
  const { likely_s: likely, latest_s: latest, because } = one.until;
  return h('section.card.planned', { 'aria-label': plain(resource) },
    h('div.card-head', h('h2', plain(resource)),
      h('p.verdict', { data: { mood: refused.length ? 'fault' : lost ? 'warn' : '' } }, dots(lost, gained, one.keep && `${many(one.keep, 'keep')} what they have`))),
    h('p.card-note', dots(`wanted ${num(one.wants)}`, `${num(one.out)} out`, template[1] !== null && change('template', template, (glob) => plain(glob ?? 'none')),
      change('kind', kind, plain), change('algorithm', algorithm, plain),
      ...levels.map(({ priority, level }) => change(`level${levels.length > 1 ? ` of priority ${priority}` : ''}`, level, (value) => (value === null ? 'all they want' : units(value)))))),
    h('ul.tiers', line('before', 0), line('after', 1)),
    h('p', `In force ${latest > 0 ? `within ${time(likely)}, by ${time(latest)} at the latest` : 'at once'}: ${plain(because)}.`),
    refused.map((row) => h('p.problem', `${num(row.count)} at ${plain(row.node)} would be refused by ${time(row.by_s)}: ${plain(row.why)} (${row.some.map(plain).join(', ')})`)),
    rows.length > 0 && movers.element,
    one.not_named > 0 && hint(`${num(one.not_named)} more are counted together, by what they want.`));
}

/** A share before and after, as parts of the greatest. */
function dumbbell([before, after]) {
  const [from, to] = [before, after].map((part) => 5 + part * 150);
  return s('svg.dumbbell', { viewBox: '0 0 160 14', width: 160, height: 14, 'aria-hidden': 'true', 'data-way': after < before ? 'down' : 'up' },
    s('path', { d: `M${from} 7H${to}` }), s('circle.from', { cx: from, cy: 7, r: 3.5 }), s('circle', { cx: to, cy: 7, r: 4.5 }));
}
