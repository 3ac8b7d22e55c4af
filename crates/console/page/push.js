// What whoever looks may do: a script that the port of operators alone has. Nothing is pushed that was not planned.

import { ask, button, column, count, get, h, hint, labelled, plain, refill, section, table, time, tools, verbatim } from '/console.js';

/** Calls an act, as no page but this one can. */
const act = (method, name, body) =>
  ask(`/admin/${name}`, { method, headers: { 'content-type': 'application/json', 'lessor-page': 'console' }, body: body && JSON.stringify(body) });
const problem = (text) => h('p.problem', plain(text));
const frozen = ({ until, by, message }) => `Nobody may push until ${until}: ${by} says: ${message}`;

/** The documents of a revision; none of none. */
async function documentsOf(number) {
  if (!number) return [];
  const { documents, texts } = await get('revision', { number });
  return documents.map((document, index) => ({ for: document.for, name: document.name, text: texts[index] }));
}

const SIDES = { conflict: 'both, not the same', theirs: 'them', mine: 'you', both: 'both, the same' };

/** Who was faster, and how what both have changed goes together. */
function overtaken({ theirs, base, conflicts, age_seconds: age, documents }) {
  const side = (name, title) => column(name, title, (value) => plain(value ?? '–'));
  const fields = table({
    caption: 'What both have changed', key: (row) => `${row.nodes} ${row.template} ${row.field}`,
    columns: [
      column('field', 'Field', (field, row) => plain(`${row.template} ${field}`.trim())), side('nodes', 'For'),
      column('changed_by', 'Changed by', (by) => h(by === 'conflict' ? 'strong' : 'span', SIDES[by])),
      side('base', base ? `In ${base}` : 'Before'), side('theirs', `In ${theirs.number}`), side('mine', 'Yours'),
    ],
  });
  fields.set(documents.flatMap((document) => document.fields.map((field) => ({ ...field, nodes: document.for }))), 'No field differs.');
  return [problem(`Somebody was faster: revision ${theirs.number} by ${theirs.by.name}, ${time(age)} ago: ${theirs.message.split('\n')[0]}. Nothing of yours was pushed.`),
    h('p', conflicts ? `${count(conflicts, 'field')} changed by both, each to something else. Look whether the rest goes together, and plan again.` : 'No field was changed by both to something else. Plan again on top of it.'), fields.element];
}

/** The acts; nothing where nobody can push, or whoever asks may not. */
export async function open() {
  const who = await act('GET', 'whoami');
  if (!who.roles.some((role) => role === 'push' || role === 'all')) return null;
  await act('GET', 'push');

  /** What a push needs of the view of plans: the documents of a whole revision, and the form below a plan. Whether that is whole already. */
  async function plan(draft, back) {
    let { head, freeze } = await act('GET', 'push');
    const number = Number(back) || head;
    let documents = await documentsOf(number);
    const names = () => documents.map((document) => `${plain(document.name)} for ${plain(document.for)}`).join(', ');
    const note = hint();
    draft.below.after(note);
    if (back) {
      refill(note, `The content of revision ${number}: ${names()}.`);
      draft.text.value = documents.map((document) => document.text).join('\n');
      draft.text.disabled = draft.nodes.disabled = true;
      draft.documents = () => documents;
      draft.form = (made) => form(made, [freeze && frozen(freeze)], { rollback_of: number });
      return true;
    }
    let taken = 0;
    const load = button('', () => look().then(() => {
      const document = documents.find((one) => one.for === draft.nodes.value) ?? documents[0];
      [draft.text.value, draft.nodes.value, taken] = [document.text, document.for, head];
    }).catch((fault) => refill(note, fault.message)), { class: 'quiet' });
    const say = () => {
      load.hidden = !head;
      load.textContent = `Take it from revision ${head}`;
      refill(note, head ? `In force is revision ${head}: ${names()}. What is for other nodes stays as it is.` : 'Nothing has been pushed yet.');
    };
    const look = async () => {
      const before = head;
      ({ head, freeze } = await act('GET', 'push'));
      if (head !== before) documents = await documentsOf(head);
      say();
    };
    say();
    draft.below.append(load);
    // One document takes its place among the others of what is in force now, which stay as they are.
    draft.documents = async () => {
      await look();
      const own = { for: draft.nodes.value, name: 'console.yaml', text: draft.text.value };
      const at = documents.findIndex((document) => document.for === own.for);
      return at < 0 ? [own, ...documents] : documents.with(at, { ...own, name: documents[at].name });
    };
    draft.form = (made, pushed) => form(made, [freeze && frozen(freeze),
      taken && taken !== made.base && `This was taken from revision ${taken}, and ${made.base} is in force: what came between is undone by it, unless it stands here as well.`], { documents: pushed });
    return false;
  }

  /** The form below a plan: why, and the push. */
  function form({ digest, base, at, moved }, warnings, what) {
    const why = h('input', { id: 'why', size: 44, maxlength: 2000 });
    const ticket = h('input', { id: 'ticket', size: 10, maxlength: 200, ...verbatim });
    const said = h('div', { 'aria-live': 'polite' });
    const pushed = button(what.rollback_of ? `Go back to revision ${what.rollback_of}` : 'Push it', push, { class: 'main' });
    async function push() {
      if (!why.value.trim()) {
        refill(said, problem('It takes a reason, which stands in the history.'));
        why.focus();
        return;
      }
      pushed.disabled = true;
      try {
        const done = await act('POST', 'push', { ...what, message: why.value.trim(), ticket: ticket.value.trim() || undefined, plan: { digest, base, at, moved } });
        refill(said, h('p.verdict', done.outcome === 'same' ? `Revision ${done.number} has that content already.` : `Revision ${done.number} is in force. `, h('a', { href: `#/history/${done.number}` }, 'What it changed, and which tasks have it')),
          done.notes?.map((note) => hint(plain(note))));
      } catch (fault) {
        refill(said, fault.body?.outcome === 'faster' && fault.body.theirs ? overtaken(fault.body) : problem(fault.status ? fault.message : `${fault.message}: whether it was pushed stands in the history.`));
        pushed.disabled = false;
      }
    }
    return section('Put it in force', warnings.filter(Boolean).map(problem), tools(labelled('Why', why), labelled('Ticket', ticket), pushed),
      hint(`As ${plain(who.identity)}, in the place of ${base ? `revision ${base}` : 'nothing'}: at every task at once, or at none. The plan above counts for 15 minutes.`), said);
  }

  /** What is done about pushes in the view of the history. Returns what each revision has of it. */
  function history(page) {
    const place = h('div');
    page.add(place);
    const look = async () => {
      const { freeze } = await act('GET', 'push');
      const [why, long, said] = [h('input', { id: 'freeze-why', size: 30, maxlength: 2000 }), h('input', { id: 'freeze-for', size: 5, value: '2h', ...verbatim }), h('div', { 'aria-live': 'polite' })];
      const change = (title, method, body) => button(title, () => act(method, 'push-freeze', body()).then(look).catch((fault) => refill(said, problem(fault.message))));
      refill(place, section('Pushes', freeze && problem(frozen(freeze)),
        tools(freeze ? change('Let everybody push again', 'DELETE', () => ({}))
          : [labelled('Let nobody push for', long), labelled('because', why), change('Freeze pushes', 'POST', () => ({ message: why.value, for: long.value }))]),
        !freeze && hint('Everybody may push who has the role.'), said));
    };
    look().catch((fault) => refill(place, problem(fault.message)));
    return (line, number, newest) => {
      line.back ??= line.appendChild(button('go back', () => { location.hash = `#/plan?back=${number}`; }, { class: 'quiet', 'aria-label': `go back to revision ${number}` }));
      line.back.style.visibility = number === newest ? 'hidden' : '';
    };
  }

  return { plan, history };
}
