//! A node and a thousand clients with real sessions and limiters, on one clock, with a constant delay between them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use lessor_client::internals::holding::HoldingConfig;
use lessor_client::internals::limiter::{Clock, Limiter, Waiting};
use lessor_client::internals::session::{Action, Event, Session, SessionConfig};
use lessor_client::{Denied, Kind, Transport};
use lessor_proto::{Amount, ClientId, Incarnation, ResourceId, Time};
use lessor_server::node::NodeConfig;
use lessor_server::repository::{Glob, Repository, Template};
use lessor_sim::net::{Endpoint, Net, NetMessage};

/// Units a second, for all, where nothing else is said.
pub(crate) const CAPACITY: u64 = 100;
/// The burst that a bucket of all of it would save up.
pub(crate) const BURST: Duration = Duration::from_millis(50);
/// The time of a message on the way, where nothing else is said.
const DELAY: Duration = Duration::from_millis(10);
/// Longer than anybody has to wait here.
const PATIENCE: Duration = Duration::from_secs(60);
/// The site of the node.
const NODE: usize = 0;
/// The most events in one world.
const EVENTS: usize = 10_000_000;

pub(crate) struct World {
    /// The time of a message on the way.
    delay: Duration,
    clock: Clocked,
    /// The node, and the streams of clients to it.
    net: Net,
    clients: Vec<Client>,
    messages: BTreeMap<(Time, u64), NetMessage>,
    last: u64,
    /// When sessions have something to do.
    deadlines: BTreeSet<(Time, usize)>,
    tasks: Vec<Task>,
    /// Whose units were granted when: who asked when, and when it passed.
    pub(crate) passes: Vec<Pass>,
}

/// A unit that was waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pass {
    pub(crate) client: usize,
    pub(crate) asked: Time,
    pub(crate) at: Time,
}

struct Client {
    session: Session,
    limiter: Arc<Limiter>,
    deadline: Option<Time>,
    rung: Arc<Flag>,
}

struct Task {
    client: usize,
    asked: Time,
    woken: Arc<Flag>,
    future: Option<Waiter>,
}

type Waiter = Pin<Box<dyn Future<Output = Result<(), Denied>>>>;

/// Set when something is woken, in a list of whose flags are set.
struct Flag {
    index: usize,
    set: Arc<Mutex<BTreeSet<usize>>>,
}

/// The time in a world, and who sleeps until when.
#[derive(Clone, Default)]
struct Clocked(Arc<Mutex<Sleepers>>);

#[derive(Default)]
struct Sleepers {
    now: Time,
    sleepers: VecDeque<(Time, Waker)>,
}

// === impl Flag ===

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.set.lock().unwrap().insert(self.index);
    }
}

// === impl Clocked ===

impl Clock for Clocked {
    fn now(&self) -> Time {
        self.0.lock().unwrap().now
    }

    fn sleep_until(&self, at: Time) -> impl Future<Output = ()> + Send {
        std::future::poll_fn(move |context| {
            let mut state = self.0.lock().unwrap();
            if state.now >= at {
                return Poll::Ready(());
            }
            state.sleepers.push_back((at, context.waker().clone()));
            Poll::Pending
        })
    }
}

impl Clocked {
    fn next(&self) -> Option<Time> {
        self.0.lock().unwrap().sleepers.iter().map(|&(at, _)| at).min()
    }

    fn move_to(&self, now: Time) {
        let mut due = Vec::new();
        {
            let mut state = self.0.lock().unwrap();
            state.now = now;
            state.sleepers.retain(|(at, waker)| {
                let waits = *at > now;
                if !waits {
                    due.push(waker.clone());
                }
                waits
            });
        }
        due.into_iter().for_each(Waker::wake);
    }
}

// === impl World ===

impl World {
    /// A world of `clients` clients that want a unit a second each.
    pub(crate) fn new(clients: usize, config: NodeConfig) -> World {
        World::of(&vec![1.0; clients], config)
    }

    /// Clients that want so much each.
    pub(crate) fn of(wants: &[f64], config: NodeConfig) -> World {
        World::at(CAPACITY, DELAY, wants, config)
    }

    /// The same where all together have so much, and messages take so long.
    pub(crate) fn at(capacity: u64, delay: Duration, wants: &[f64], config: NodeConfig) -> World {
        let clients = wants.len();
        let glob = Glob::new("*").unwrap();
        let template = Template::new(glob, Amount::from_units(capacity));
        let mut net = Net::new(&[None]);
        net.begin(Time::ZERO, NODE, config, Repository::new(vec![template]).unwrap());
        (0..clients).for_each(|_| _ = net.add_holder(NODE));
        let rung = Arc::new(Mutex::new(BTreeSet::new()));
        let client = |index: usize| {
            let name = ClientId::new(format!("client-{index}"), 256).unwrap();
            let config = SessionConfig::new(name, Incarnation(1 + index as u64), vec!["here:1".into()]);
            let mut session = Session::new(SessionConfig { transport: Transport::Stream, ..config });
            session.add(Time::ZERO, resource(), HoldingConfig::new(Kind::Rate, wants[index], 0));
            let waiting = Waiting { max_wait: PATIENCE, ..Waiting::DEFAULT };
            let limiter = Arc::new(Limiter::default().with_waiting(waiting));
            let flag = Arc::new(Flag { index, set: Arc::clone(&rung) });
            limiter.call(Waker::from(Arc::clone(&flag)));
            Client { session, limiter, deadline: None, rung: flag }
        };
        let mut world = World {
            delay,
            clock: Clocked::default(),
            net,
            clients: (0..clients).map(client).collect(),
            messages: BTreeMap::new(),
            last: 0,
            deadlines: BTreeSet::new(),
            tasks: Vec::new(),
            passes: Vec::new(),
        };
        (0..clients).for_each(|index| world.touch(index));
        world
    }

    pub(crate) fn now(&self) -> Time {
        self.clock.now()
    }

    /// The sum of what clients may use, in units a second.
    pub(crate) fn leased(&self) -> f64 {
        let allowance = |client: &Client| client.session.allowance(self.now(), &resource());
        self.clients.iter().map(|client| allowance(client).capacity.unwrap_or(Amount::MAX).as_f64()).sum()
    }

    /// A client waits for one unit from here on.
    pub(crate) fn acquire(&mut self, client: usize) {
        let (limiter, clock) = (Arc::clone(&self.clients[client].limiter), self.clock.clone());
        let future: Waiter = Box::pin(async move { limiter.acquire_by(&clock, 1).await });
        let set = self.tasks.first().map_or_else(Arc::default, |task| Arc::clone(&task.woken.set));
        let index = self.tasks.len();
        set.lock().unwrap().insert(index);
        let woken = Arc::new(Flag { index, set });
        self.tasks.push(Task { client, asked: self.now(), woken, future: Some(future) });
        self.run_tasks();
        self.touch(client);
    }

    /// A client takes a unit, or is told when to come again.
    pub(crate) fn try_acquire(&mut self, client: usize) -> Result<(), Duration> {
        let now = self.now();
        let answer = self.clients[client].limiter.try_acquire(1, || now);
        self.touch(client);
        answer.map(|()| self.passes.push(Pass { client, asked: now, at: now })).map_err(|denied| match denied
        {
            Denied::Spent { retry_after } => retry_after,
            denied => panic!("it has a lease: {denied}"),
        })
    }

    /// The node is gone, and everybody notices at once.
    pub(crate) fn cut_off(&mut self) {
        let now = self.now();
        self.messages.clear();
        for end in self.net.lose(NODE) {
            if let NetMessage::Down(Endpoint::Holder(client), event) = end {
                self.clients[client].session.handle(now, event);
                self.touch(client);
            }
        }
    }

    /// Lets time pass.
    pub(crate) fn pass(&mut self, time: Duration) {
        let end = self.now() + time;
        for _ in 0..EVENTS {
            let nexts = [
                self.messages.first_key_value().map(|(&(at, _), _)| at),
                self.deadlines.first().map(|&(at, _)| at),
                self.net.next_deadline(NODE),
                self.clock.next(),
            ];
            let next = nexts.into_iter().flatten().min().unwrap_or(Time::MAX).max(self.now());
            if next > end {
                return self.clock.move_to(end);
            }
            self.clock.move_to(next);
            self.step();
        }
        panic!("something goes on without end");
    }

    fn step(&mut self) {
        let now = self.now();
        self.run_tasks();
        while let Some((&key, _)) = self.messages.first_key_value().filter(|((at, _), _)| *at <= now) {
            let message = self.messages.remove(&key).expect("it is there");
            self.take(message);
        }
        self.poll_node();
        while let Some(&(_, client)) = self.deadlines.first().filter(|(at, _)| *at <= now) {
            self.touch(client);
        }
        self.run_tasks();
    }

    fn take(&mut self, message: NetMessage) {
        let now = self.now();
        match message {
            NetMessage::Up(from, action) => {
                let answer = self.net.take_up(now, from, action);
                answer.into_iter().for_each(|event| self.send(NetMessage::Down(from, event)));
            }
            NetMessage::Down(Endpoint::Holder(client), event) => {
                self.clients[client].session.handle(now, event);
                self.touch(client);
            }
            NetMessage::Down(Endpoint::Node(_), _) => panic!("there is no node below another"),
        }
    }

    /// Sends what the node has to say. What is sent counts as read at once: only its way takes time.
    fn poll_node(&mut self) {
        let now = self.now();
        loop {
            let messages = self.net.serve(now, NODE);
            if messages.is_empty() {
                return;
            }
            for message in messages {
                if let NetMessage::Down(to, Event::Down { id, .. }) = &message {
                    self.net.read(now, *to, *id);
                }
                self.send(message);
            }
        }
    }

    fn send(&mut self, message: NetMessage) {
        self.last += 1;
        self.messages.insert((self.now() + self.delay, self.last), message);
    }

    /// Does what the session of a client says, as the driver does.
    fn touch(&mut self, index: usize) {
        let now = self.now();
        let mut sent = Vec::new();
        let client = &mut self.clients[index];
        client.rung.set.lock().unwrap().remove(&index);
        let mut moved = true;
        while moved {
            moved = false;
            while let Some((_, units)) = client.session.next_units() {
                client.limiter.bring(units, now);
            }
            if let Some(wish) = client.limiter.wish(now) {
                client.session.wish(&resource(), wish);
            }
            while let Some(action) = client.session.poll(now) {
                moved = true;
                match action {
                    Action::Change(change) => client.limiter.allow(now, change.allowance),
                    action => sent.push(NetMessage::Up(Endpoint::Holder(index), action)),
                }
            }
        }
        let before = client.deadline.replace(client.session.next_deadline());
        if let Some(before) = before {
            self.deadlines.remove(&(before, index));
        }
        self.deadlines.insert((self.clients[index].session.next_deadline(), index));
        sent.into_iter().for_each(|message| self.send(message));
        self.run_tasks();
    }

    /// Polls who was woken, and asks for what limiters rang for.
    fn run_tasks(&mut self) {
        loop {
            let Some(set) = self.tasks.first().map(|task| Arc::clone(&task.woken.set)) else { return };
            let Some(index) = set.lock().unwrap().pop_first() else { return };
            let (now, task) = (self.clock.now(), &mut self.tasks[index]);
            let Some(future) = &mut task.future else { continue };
            let waker = Waker::from(Arc::clone(&task.woken));
            if let Poll::Ready(answer) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                answer.expect("nobody waits in vain");
                task.future = None;
                self.passes.push(Pass { client: task.client, asked: task.asked, at: now });
            }
        }
    }
}

pub(crate) fn resource() -> ResourceId {
    ResourceId::new("db", 256).unwrap()
}

/// The most units that passed in one instant, and the most beyond `capacity` times the window, and so never more than what
/// may be saved up, in any window.
pub(crate) fn worst(passes: &[Pass], capacity: u64) -> (usize, f64) {
    let mut times: Vec<Time> = passes.iter().map(|pass| pass.at).collect();
    times.sort();
    let instant = times.chunk_by(|one, other| one == other).map(<[Time]>::len).max().unwrap_or_default();
    let mut beyond = f64::MIN;
    // What came before each, less what flowed in: the window that begins at the lowest and ends at the highest.
    let mut lowest = f64::MAX;
    for (before, at) in times.iter().enumerate() {
        let flowed = at.as_nanos() as f64 / 1e9 * capacity as f64;
        lowest = lowest.min(before as f64 - flowed);
        beyond = beyond.max((before + 1) as f64 - flowed - lowest);
    }
    (instant, beyond)
}
