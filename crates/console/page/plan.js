// Configurations before they are pushed: what is wrong with one, and what it would change for whom.


function openPlan(main, of, query) {
  const text = h('textarea', { id: 'yaml', rows: 16, spellcheck: 'false', placeholder: 'resources:\n  - identifier_glob: "db/orders"\n    capacity: 500' });
  const nodes = h('input', { id: 'for', value: '*', size: 10, spellcheck: 'false' });
  const outcome = h('div', { class: 'outcome', 'aria-live': 'polite' });
  const button = (title, ask, kind) => h('button', { type: 'button', class: kind, onclick: () => run(ask) }, title);
  const buttons = [button('See what it would change', plan, 'main'), button('Only check it', check)];
  const file = h('input', { type: 'file', id: 'file', accept: '.yaml,.yml,.json,text/*', onchange: async () => { if (file.files[0]) text.value = await file.files[0].text(); } });
  main.append(h('div', { class: 'title hero' }, h('h1', null, 'Before it is in force'), h('p', { class: 'lead' }, 'Paste a configuration: who would gain and lose what, who would be refused, and how long it would take. Nothing is put in force by that.')),
    section('The configuration', h('div', { class: 'tools' }, h('label', { for: 'file' }, 'From a file, or a saved plan'), file), h('label', { class: 'unseen', for: 'yaml' }, 'Configuration in YAML'), text,
      h('div', { class: 'tools' }, buttons, h('label', { for: 'for' }, 'for the nodes'), nodes)), outcome);
  const push = { text, nodes, documents: () => [{ for: nodes.value, name: 'console.yaml', text: text.value }] };
  const ready = operators().then((desk) => desk?.plan(push, query.get('back')));
  ready.then((isWhole) => isWhole && run(plan));

  async function run(ask) {
    await ready;
    buttons.forEach((one) => { one.disabled = true; });
    try {
      refill(outcome, ...await ask());
    } catch (fault) {
      refill(outcome, h('p', { class: 'problem' }, fault.message));
    }
    buttons.forEach((one) => { one.disabled = false; });
  }

  async function plan() {
    let saved;
    try {
      saved = JSON.parse(text.value).plan;
    } catch {
      saved = null;
    }
    if (saved?.resources) return planned(saved, true);
    const documents = await push.documents();
    const made = await post('plan', { documents });
    return [...planned(made), push.form?.(made, documents)];
  }

  async function check() {
    const said = await post('check', text.value);
    return said.valid
      ? [h('h2', null, `It is valid: ${count(said.templates.length, 'template')}.`),
        h('ul', { class: 'notes' }, said.templates.map((template) => h('li', null, `${plain(template.glob)}: ${num(template.capacity)}${template.description ? `, ${plain(template.description)}` : ''}`)),
          said.never_used.map((glob) => h('li', null, `${plain(glob)} is never used: "*" stands before it`)))]
      : [h('h2', null, `${count(said.faults.length + said.more_faults, 'fault')}`),
        ...said.faults.map((fault) => h('figure', null, h('figcaption', null, `Line ${fault.line}, column ${fault.column}: ${plain(fault.message)}`), h('pre', { tabindex: 0 }, fault.snippet)))];
  }
  return { title: 'Plan', close() {} };
}

/** A plan, as it was made or saved. */
function planned(plan, isSaved) {
  const changes = plan.resources.length;
  const refused = plan.refused.reduce((sum, one) => sum + one.count, 0);
  const losers = plan.resources.reduce((sum, one) => sum + one.losers.count, 0);
  const asked = plan.nodes.asked.length;
  return [
    h('h2', null, !changes ? 'Nothing would change for anybody.' : `${count(changes, 'resource')} would change, and ${losers ? `${count(losers, 'share')} would shrink` : 'nobody would lose anything'}${refused ? `; ${count(refused, 'client')} would be refused` : ''}.`),
    h('p', { class: 'hint' }, `${isSaved ? `Saved at ${plan.at}. ` : ''}Against ${plan.base ? `revision ${plan.base}` : 'what is in force'}, asked ${count(asked, 'node')} within ${time(plan.took_seconds)}. A forecast from the demands of that moment: nothing is granted or kept free by it.`),
    plan.nodes.silent.length > 0 && h('p', { class: 'problem' }, `No answer of ${plan.nodes.silent.map(plain).join(', ')}: whoever is there is not in this.`),
    plan.unplanned > 0 && h('p', { class: 'problem' }, `${count(plan.unplanned, 'resource')} that would change as well were not looked at.`),
    ...plan.resources.map((one) => forecast(one, plan)),
    plan.notes.length > 0 && section('Mind', h('ul', { class: 'notes' }, plan.notes.map((one) => h('li', null, `${plain(one.note)}${one.resource ? ` (${plain(one.resource)}${one.node ? ` at ${plain(one.node)}` : ''})` : ''}`)))),
  ];
}

const MOVERS = [
  { title: 'Client', of: (row) => plain(row.client) },
  { title: 'At', of: (row) => plain(row.node) },
  { title: 'Wants', number: true, of: (row) => num(row.wants) },
  { title: 'Before', number: true, of: (row) => num(row.share[0]) },
  { title: 'After', number: true, of: (row) => num(row.share[1]) },
  { title: 'Change', of: (row) => row.picture },
];

/** The resource of a plan: its capacity and shares before and after, and those who lose and gain the most. */
function forecast(one, plan) {
  const unit = one.kind.includes('gauge') ? '' : '/s';
  const amount = (value) => (value === null ? 'no limit' : `${num(value)}${unit}`);
  const change = (name, [before, after], say) => before !== after && before !== '' && after !== '' && `${name} ${say(before)} → ${say(after)}`;
  const most = Math.max(...one.capacity.map((value) => value ?? 0), ...one.shares) || 1;
  const bar = (name, at) => {
    const fill = h('i', { class: 'tier-fill' });
    fill.style.transform = `scaleX(${Math.min(1, one.shares[at] / most)})`;
    return h('li', { class: 'tier', data: { state: at ? 'current' : 'shadowed' } }, h('span', { class: 'tier-name' }, name), h('span', { class: 'tier-bar', 'aria-hidden': 'true' }, fill),
      h('span', null, one.template[at] === null ? 'no template' : `${amount(one.shares[at])} of ${amount(one.capacity[at])}`));
  };
  const refused = plan.refused.filter((row) => row.resource === one.resource);
  const [lost, gained] = [one.losers, one.gainers].map((moved) => moved.count && `${num(moved.count)} ${moved === one.losers ? 'lose' : 'gain'} ${amount(moved.sum)}`);
  const facts = [
    `wanted ${num(one.wants)}`, `${num(one.out)} out`, one.template[1] !== null && change('template', one.template, (glob) => plain(glob ?? 'none')),
    change('kind', one.kind, plain), change('algorithm', one.algorithm, plain),
    ...one.levels.map((band) => change(`level${one.levels.length > 1 ? ` of priority ${band.priority}` : ''}`, band.level, (level) => (level === null ? 'all they want' : amount(level)))),
  ];
  const rows = [...one.losers.worst, ...one.gainers.worst];
  const widest = Math.max(...rows.flatMap((row) => row.share)) || 1;
  const movers = rows.length > 0 && table({ caption: `Those who lose and gain the most of ${plain(one.resource)}`, columns: MOVERS, key: (row) => `${row.node} ${row.client}` });
  if (movers) movers.set(rows.map((row) => ({ ...row, picture: dumbbell(row.share.map((share) => share / widest)) })));
  const { likely_s: likely, latest_s: latest, because } = one.until;
  return h('section', { class: 'card planned', 'aria-label': plain(one.resource) },
    h('div', { class: 'card-head' }, h('h2', null, plain(one.resource)),
      h('p', { class: 'verdict', data: { mood: refused.length ? 'fault' : lost ? 'warn' : '' } }, [lost, gained, `${num(one.keep)} keep their shares`].filter(Boolean).join(' · '))),
    h('p', { class: 'card-note' }, facts.filter(Boolean).join(' · ')),
    h('ul', { class: 'tiers' }, bar('before', 0), bar('after', 1)),
    h('p', null, latest > 0 ? `In force within ${time(likely)}, by ${time(latest)} at the latest: ${plain(because)}.` : `In force at once: ${plain(because)}.`),
    refused.map((row) => h('p', { class: 'problem' }, `${num(row.count)} at ${plain(row.node)} would be refused by ${time(row.by_s)}: ${plain(row.why)} (${row.some.map(plain).join(', ')})`)),
    movers && movers.element,
    one.not_named > 0 && h('p', { class: 'hint' }, `${num(one.not_named)} more are counted together, by what they want.`));
}

/** A share before and after, as parts of the greatest. */
function dumbbell([before, after]) {
  const [from, to] = [before, after].map((part) => 5 + part * 150);
  return s('svg', { class: 'dumbbell', viewBox: '0 0 160 14', width: 160, height: 14, 'aria-hidden': 'true', 'data-way': after < before ? 'down' : 'up' },
    s('path', { d: `M${from} 7H${to}` }), s('circle', { class: 'from', cx: from, cy: 7, r: 3.5 }), s('circle', { cx: to, cy: 7, r: 4.5 }));
}
