// What the server says: one stream of changes, and questions beside it.

const listeners = new Set();
const live = {
  state: 'connecting',
  why: '',
  node: null,
  resources: new Map(),
  findings: [],
  messages: 0,
};

let token = sessionStorage.getItem('token') ?? '';
let paused = false;
let running = null;

class Fault extends Error {
  constructor(status, body) {
    super(body?.error ?? body?.detail ?? `the server answered ${status}`);
    this.status = status;
    this.body = body;
  }
}

/** The answer to a request, if it is none that says no. */
async function reach(path, { headers, ...options }) {
  const shown = token && { authorization: `Bearer ${token}` };
  const response = await fetch(path, { ...options, headers: { ...headers, ...shown }, cache: 'no-store' }).catch((fault) => {
    throw options.signal?.aborted ? fault : new Fault(0, { error: 'the server does not answer' });
  });
  if (!response.ok) throw new Fault(response.status, await read(response));
  return response;
}

async function read(response) {
  const text = await response.text();
  try {
    return JSON.parse(text);
  } catch {
    return { error: text.trim().slice(0, 500) };
  }
}

const ask = async (path, options) => read(await reach(path, options));

/** Asks `/v1/PATH` with these parameters; those without a value are left out. */
function get(path, parameters = {}, signal) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => (value ?? '') !== ''));
  return ask(`/v1/${path}?${query}`, { signal });
}

/** Holders of a resource: none where nobody holds or wants it. */
const holdersOf = (resource, parameters, signal) => get('holders', { resource, ...parameters }, signal).catch((fault) => {
  if (fault.status !== 404) throw fault;
  return { rows: [], matching: 0, holders_in_all: 0 };
});

/** Sends what is asked for: text as it is, all else as JSON. */
function post(path, asked) {
  const isText = typeof asked === 'string';
  const headers = { 'content-type': isText ? 'text/plain' : 'application/json' };
  return ask(`/v1/${path}`, { method: 'POST', headers, body: isText ? asked : JSON.stringify(asked) });
}

let desk;
/** The acts of whoever looks: a script of the port of operators alone. Where it fails, the next view asks for it again. */
const operators = () => (desk ??= get('here')
  .then(async (here) => here.is_of_operators && (await import('/push.js')).open())
  .catch(() => { desk = null; }));

/** Calls `listener` now and after each message, until the signal. */
function listen(listener, signal) {
  listeners.add(listener);
  signal?.addEventListener('abort', () => listeners.delete(listener));
  listener();
}

function tell() {
  for (const listener of listeners) listener();
}

function become(state, why = '') {
  if (live.state === state && live.why === why) return;
  Object.assign(live, { state, why });
  tell();
}

/** From here on it is known who asks. */
function showToken(secret) {
  token = secret.trim();
  sessionStorage.setItem('token', token);
  become('connecting');
  restart();
}

function setPaused(is) {
  paused = is;
  restart();
}

function restart() {
  running?.abort();
  if (paused) return become('paused');
  if (document.hidden) return;
  running = new AbortController();
  follow(running.signal);
}

document.addEventListener('visibilitychange', restart);

/** Waits for so long, or until the signal. */
const rest = (time, signal) => new Promise((done) => {
  const timer = setTimeout(end, time);
  signal.addEventListener('abort', end);
  function end() {
    clearTimeout(timer);
    signal.removeEventListener('abort', end);
    done();
  }
});

async function follow(signal) {
  for (let wait = 500; !signal.aborted; wait = Math.min(wait * 1.6, 8000)) {
    const before = live.messages;
    try {
      await hearAll(signal);
      if (!signal.aborted) become('gone', 'the server has ended the stream');
    } catch (fault) {
      if (signal.aborted) return;
      const isDenied = fault.status === 401 || fault.status === 403;
      become(isDenied ? 'denied' : 'gone', fault.message);
      if (isDenied) return;
    }
    if (live.messages > before) wait = 500;
    await rest(wait, signal);
  }
}

/** Reads the stream to its end. */
async function hearAll(signal) {
  const quiet = new AbortController();
  // A stream that says nothing for so long is broken, whoever holds it open.
  let timer = 0;
  const heard = () => {
    clearTimeout(timer);
    timer = setTimeout(() => quiet.abort(), 6000);
  };
  heard();
  try {
    const both = AbortSignal.any([signal, quiet.signal]);
    const response = await reach('/v1/events', { headers: { accept: 'text/event-stream' }, signal: both });
    // The task that leads, where another one shows what it says.
    live.from = response.headers.get('lessor-from');
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = '';
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      heard();
      const parts = (rest + value).split('\n\n');
      rest = parts.pop();
      parts.forEach(hear);
    }
  } catch (fault) {
    throw quiet.signal.aborted ? new Fault(0, { error: 'it says nothing any more' }) : fault;
  } finally {
    clearTimeout(timer);
  }
}

function hear(message) {
  const [name, data] = ['event', 'data'].map((field) => new RegExp(`^${field}: (.*)$`, 'm').exec(message)?.[1]);
  if (!data) return;
  const said = JSON.parse(data);
  if (name === 'end') throw new Fault(403, said);
  if (name === 'fault') return become('late', said.error);
  const at = performance.now();
  if (said.all) live.resources.clear();
  for (const row of said.resources) live.resources.set(row.resource, { ...row, at });
  for (const gone of said.gone) live.resources.delete(gone);
  if (said.findings) live.findings = said.findings;
  Object.assign(live, { node: said.node, state: 'live', why: '' });
  live.messages += 1;
  tell();
}

/** The seconds that are left of a time which a row said. */
const left = (row, seconds) => seconds - (performance.now() - row.at) / 1000;

/** The findings that are more than notes. */
const wrong = () => live.findings.filter((found) => found.severity !== 'note');
