//! The servers, the holders and the network between them.

use std::sync::Arc;
use std::time::Duration;

use lessor_client::internals::holding::HoldingConfig;
use lessor_client::internals::session::{Action, Event, JobEvent, Session, SessionConfig};
use lessor_client::{Kind, Transport};
use lessor_proto::message::{Down, Up};
use lessor_proto::{ClientId, Epoch, Features, Incarnation, ResourceId, Time};
use lessor_server::config::ParentConfig;
use lessor_server::node::NodeConfig;

use super::judge::JobsJudge;
use super::{JobsReport, JobsRun, LEASE, NEWS};
use crate::event_queue::EventQueue;
use crate::net::{Endpoint, Net, NetMessage};
use crate::rng::Rng;

/// Something that happens.
#[derive(Debug)]
enum JobsHappening {
    /// A holder does a job, or begins to wait for one of another.
    Acts(usize),
    /// Something is due at a holder, or at a server.
    Holder(usize),
    Node(usize),
    /// Something arrives.
    Message(Box<NetMessage>),
    /// Something goes wrong.
    Fault,
}

/// The time after which all is as it should be: leases end, streams that are dead in silence are given up, and servers have learnt.
const RECOVERS: Duration = Duration::from_secs(90);
/// The mean time between two jobs or waits of a holder.
const PAUSE: Duration = Duration::from_secs(2);

pub(super) struct JobsWorld {
    run: JobsRun,
    now: Time,
    end: Time,
    queue: EventQueue<JobsHappening>,
    rng: Rng,
    net: Net,
    epoch: u64,
    holders: Vec<JobsHolder>,
    /// When the next message from or to each holder and server may arrive, up and down.
    clear: [Vec<[Time; 2]>; 2],
    /// Until when nothing of what is said arrives that a holder says or hears; it is lost.
    cut: Vec<Time>,
    /// When each holder and server is looked at next.
    due: [Vec<Option<Time>>; 2],
    judge: JobsJudge,
}

/// A holder, as the door of a process: those who wait in it are one.
struct JobsHolder {
    session: Session,
    waits: Option<Time>,
}

// === impl JobsWorld ===

impl JobsWorld {
    pub(super) fn new(run: JobsRun, seed: u64) -> JobsWorld {
        let parents: Vec<Option<usize>> = std::iter::once(None).chain(vec![Some(0); run.leaves]).collect();
        let places = run.holders.max(run.leaves + 1);
        let mut world = JobsWorld {
            now: Time::ZERO,
            end: Time::ZERO + RECOVERS + run.lasts,
            queue: EventQueue::small(),
            rng: Rng::new(seed),
            net: Net::new(&parents),
            epoch: 1,
            holders: Vec::new(),
            clear: [vec![[Time::ZERO; 2]; places], vec![[Time::ZERO; 2]; places]],
            cut: vec![Time::ZERO; run.holders],
            due: [vec![None; places], vec![None; places]],
            judge: JobsJudge::default(),
            run,
        };
        world.judge.begin(Time::ZERO + RECOVERS);
        for node in 0..=run.leaves {
            world.net.begin(Time::ZERO, node, world.node_config(node), JobsRun::repository());
        }
        for holder in 0..run.holders {
            world.net.add_holder(if run.leaves > 0 { 1 + holder % run.leaves } else { 0 });
            let session = world.new_session(holder);
            world.holders.push(JobsHolder { session, waits: None });
            world.attend(holder);
            world.queue.put(Time::ZERO + PAUSE, JobsHappening::Acts(holder));
        }
        (0..=run.leaves).for_each(|node| world.serve(node));
        if run.goes_wrong {
            world.queue.put(Time::ZERO + RECOVERS, JobsHappening::Fault);
        }
        world
    }

    pub(super) fn play(mut self) -> JobsReport {
        while let Some((at, happening)) = self.queue.pop(self.end) {
            self.now = at;
            match happening {
                JobsHappening::Acts(holder) => self.act(holder),
                // Another look came in between where it is for later.
                JobsHappening::Holder(holder) => {
                    if self.due[0][holder].take_if(|due| *due <= at).is_some() {
                        self.attend(holder);
                    }
                }
                JobsHappening::Node(node) => {
                    if self.due[1][node].take_if(|due| *due <= at).is_some() {
                        self.serve(node);
                    }
                }
                JobsHappening::Message(message) => self.arrive(*message),
                JobsHappening::Fault => self.go_wrong(),
            }
        }
        self.judge.report
    }

    fn node_config(&self, node: usize) -> NodeConfig {
        let name = if node == 0 { "root".to_owned() } else { format!("leaf-{node}") };
        let parent =
            ParentConfig { servers: vec!["root:1".into()], transport: Transport::Stream, eager: false };
        NodeConfig {
            parent: (node != 0).then_some(parent),
            rules: self.run.grantors,
            // What is to be said to more than one is said in turns.
            heartbeat_slice: 1,
            ..NodeConfig::new(name, Epoch(self.epoch))
        }
    }

    fn new_session(&mut self, holder: usize) -> Session {
        let name = ClientId::new(format!("door-{holder}"), 256).expect("a name");
        let config = SessionConfig::new(name, Incarnation(self.rng.number()), vec![Arc::from("root:1")]);
        let features = if self.is_older(holder) { Features::BASE } else { Features::CURRENT };
        let rules = self.run.rules;
        let mut session =
            Session::new(SessionConfig { transport: Transport::Stream, features, rules, ..config });
        session.add(self.now, gauge(), HoldingConfig::new(Kind::Gauge, 1.0, 0));
        session
    }

    fn is_older(&self, holder: usize) -> bool {
        self.run.has_older && holder == 1
    }

    /// A holder does a job, or begins to wait, or its program wants another number of units.
    fn act(&mut self, holder: usize) {
        let next = self.now + self.rng.exponential(PAUSE);
        self.queue.put(next, JobsHappening::Acts(holder));
        let (draw, is_older) = (self.rng.below(10), self.is_older(holder));
        let JobsHolder { session, waits } = &mut self.holders[holder];
        match (draw, *waits) {
            (0..=3, _) => {
                let is_sayable = session.stream_of(&gauge()).is_some() && !is_older;
                session.job_done(&gauge(), self.now);
                self.judge.see_job(self.now, holder, is_sayable);
                // Whoever waits here is done with it.
                *waits = None;
            }
            (4..=7, None) => {
                *waits = Some(self.now);
                session.await_job(&gauge(), self.now.earlier(NEWS));
            }
            (4..=7, Some(since)) if !is_older => {
                let bound = self.run.two_trips();
                self.judge.see_waiting(self.now, holder, since, bound);
            }
            (8, _) => session.set_wants(self.now, &gauge(), 2.0),
            _ => session.set_wants(self.now, &gauge(), 0.0),
        }
        self.attend(holder);
    }

    /// A holder does what is due, and says what it has to say.
    fn attend(&mut self, holder: usize) {
        let mut actions = Vec::new();
        let JobsHolder { session, waits } = &mut self.holders[holder];
        loop {
            while let Some(event) = session.next_job() {
                let JobEvent::Done { at, .. } = event else { continue };
                match *waits {
                    Some(since) if since.earlier(NEWS) <= at => {
                        self.judge.see_told(self.now, holder, since, self.run.two_trips() / 2);
                        *waits = None;
                    }
                    // It was an earlier one.
                    Some(since) => session.await_job(&gauge(), since.earlier(NEWS)),
                    None => {}
                }
            }
            match session.poll(self.now) {
                Some(Action::Change(_) | Action::News(_)) => {}
                Some(action) => actions.push(action),
                None => break,
            }
        }
        let at = session.next_deadline();
        self.expect(at, 0, holder);
        for action in actions {
            self.judge.report.messages += u64::from(matches!(action, Action::Send { up: Up::Jobs(_), .. }));
            self.send(NetMessage::Up(Endpoint::Holder(holder), action));
        }
    }

    fn serve(&mut self, node: usize) {
        for message in self.net.serve(self.now, node) {
            let is_of_jobs = matches!(&message, NetMessage::Down(_, Event::Down { down: Down::Jobs(_), .. }));
            self.judge.report.messages += u64::from(is_of_jobs);
            self.send(message);
        }
        self.expect(self.net.next_deadline(node).unwrap_or(Time::MAX), 1, node);
    }

    /// A holder or a server, the kind `of`, is to be looked at by then.
    fn expect(&mut self, at: Time, of: usize, number: usize) {
        let at = at.max(self.now + Duration::from_nanos(1));
        let due = &mut self.due[of][number];
        if at < Time::MAX && due.is_none_or(|before| at < before) {
            *due = Some(at);
            let happening = if of == 0 { JobsHappening::Holder(number) } else { JobsHappening::Node(number) };
            self.queue.put(at, happening);
        }
    }

    fn send(&mut self, message: NetMessage) {
        let (endpoint, way) = match &message {
            NetMessage::Up(from, _) => (*from, 0),
            NetMessage::Down(to, _) => (*to, 1),
        };
        let at = self.now + self.rng.time(self.run.way / 20, self.run.way);
        let clear = match endpoint {
            Endpoint::Holder(holder) => &mut self.clear[0][holder][way],
            Endpoint::Node(node) => &mut self.clear[1][node][way],
        };
        *clear = at.max(*clear + Duration::from_nanos(1));
        self.queue.put(*clear, JobsHappening::Message(Box::new(message)));
    }

    fn arrive(&mut self, message: NetMessage) {
        let is_cut =
            |endpoint: Endpoint| matches!(endpoint, Endpoint::Holder(holder) if self.cut[holder] > self.now);
        match message {
            NetMessage::Up(from, _) if is_cut(from) => {}
            NetMessage::Down(to, event) if is_cut(to) => {
                // It was written, and lies on the way.
                if let Event::Down { id, .. } = event {
                    self.net.read(self.now, to, id);
                }
            }
            NetMessage::Up(from, action) => {
                if let Some(event) = self.net.take_up(self.now, from, action) {
                    self.send(NetMessage::Down(from, event));
                }
                self.serve(self.net.home(from));
            }
            NetMessage::Down(to, event) => {
                let event = self.net.take_down(self.now, to, event);
                match (to, event) {
                    (Endpoint::Holder(holder), Some(event)) => {
                        self.holders[holder].session.handle(self.now, event);
                        self.attend(holder);
                    }
                    (Endpoint::Node(leaf), _) => self.serve(leaf),
                    (Endpoint::Holder(_), None) => {}
                }
                self.serve(self.net.home(to));
            }
        }
    }

    /// Lets something go wrong, and something else a while later: mostly when all is as it should be again.
    fn go_wrong(&mut self) {
        let holder = self.rng.index(self.run.holders);
        let lasts = self.rng.time(Duration::ZERO, LEASE * 2);
        match self.rng.below(6) {
            // It dies with what it knows, and another process takes its place.
            0 | 1 => self.reborn(holder),
            // What is said is lost, which the ends of the stream find out by themselves; so another life begins behind it.
            2 => {
                self.cut[holder] = self.now + lasts;
                self.reborn(holder);
            }
            // It lets go of the gauge, and asks for it again.
            3 => {
                let JobsHolder { session, waits } = &mut self.holders[holder];
                session.remove(self.now, &gauge());
                session.add(self.now, gauge(), HoldingConfig::new(Kind::Gauge, 1.0, 0));
                *waits = None;
                self.attend(holder);
            }
            4 => self.lose_server(0),
            _ => {
                let node = self.rng.index(self.run.leaves + 1);
                self.lose_server(node);
            }
        }
        self.judge.disturb(self.now + lasts + RECOVERS);
        let pause = if self.rng.chance(500) { RECOVERS * 2 } else { Duration::from_secs(5) };
        self.queue.put(self.now + self.rng.exponential(pause), JobsHappening::Fault);
    }

    fn reborn(&mut self, holder: usize) {
        let session = self.new_session(holder);
        self.holders[holder] = JobsHolder { session, waits: None };
        self.attend(holder);
    }

    /// A server is lost, and another one begins that knows nothing.
    fn lose_server(&mut self, node: usize) {
        for message in self.net.lose(node) {
            self.send(message);
        }
        self.epoch += 1;
        self.net.begin(self.now, node, self.node_config(node), JobsRun::repository());
        self.serve(node);
    }
}

/// The gauge that all hold.
pub(super) fn gauge() -> ResourceId {
    ResourceId::new("pool|w:2|key", 256).expect("a name")
}
