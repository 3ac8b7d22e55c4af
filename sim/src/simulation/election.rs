//! Tasks that stand for election: what their candidates want done is done, and what they say becomes of their nodes, as
//! in the body of a server.

use std::time::Duration;

use lessor_proto::message::Leader;
use lessor_proto::{Epoch, Time};
use lessor_server::election::call::{Action, Call};
use lessor_server::election::record::next_epoch;
use lessor_server::election::{Candidate, ElectionConfig, Event as Outcome};
use lessor_server::node::MarkWrite;

use super::leadership::{Farewell, Left};
use super::{ENDLESS, Event, Simulation};
use crate::actor::Actor;
use crate::event::ClockCall;
use crate::plan::Keeps;
use crate::trace::Happening;

// === processes ===

impl Simulation {
    /// The process of a task begins, unless there is one.
    pub(super) fn begin_task(&mut self, task: u32) {
        let site = self.tree.tasks[task as usize].site;
        if !self.is_mortal(task) {
            self.look_at_configuration(task);
            self.read_rules(task);
        }
        if self.tree.sites[site as usize].keeps != Keeps::Etcd {
            if self.begins_alone(task) {
                self.begin_alone(task);
            }
            return;
        }
        let etcd = self.etcd_plan();
        let nonce = self.rng.number();
        let (found, drift) = (&self.tree.tasks[task as usize], self.rules.drift);
        if found.candidate.is_some() {
            return;
        }
        let site = &self.tree.sites[found.site as usize];
        let config = ElectionConfig {
            #[cfg(feature = "mutations")]
            rules: self.rules.mutation.map(crate::mutation::Mutation::election).unwrap_or_default(),
            has_parent: site.kin.parent.is_some(),
            ..etcd.candidate(&site.name, &found.address, site.lengths.authority, drift, nonce)
        };
        let now = self.local(Actor::Task(task));
        let candidate = Candidate::new(now, config).expect("a plan that can work");
        let found = &mut self.tree.tasks[task as usize];
        found.births += 1;
        found.candidate = Some(Box::new(candidate));
        found.lag = None;
        (found.up, found.knows) = (true, Leader::default());
        let births = found.births;
        self.note(Actor::Task(task).who(), Happening::Begins, [births.into(), nonce, 0]);
        self.begin_following(task);
        self.begin_asking(task);
        self.drive_task(task);
    }

    /// Whether a task is there when servers are alone: the first of each site, and of some a second one of the same name.
    pub(super) fn begins_alone(&self, task: u32) -> bool {
        let found = &self.tree.tasks[task as usize];
        let below = self.tree.sites[found.site as usize].kin.parent.is_some();
        found.number == 0 || found.number == 1 && below && self.rules.namesakes
    }

    /// A server that is alone begins, and leads at once: after those of its site that have led before.
    pub(super) fn begin_alone(&mut self, task: u32) {
        let site = self.tree.tasks[task as usize].site;
        if self.tree.tasks[task as usize].leadership.is_some() {
            return;
        }
        self.tree.tasks[task as usize].births += 1;
        match self.tree.sites[site as usize].keeps {
            Keeps::File => self.begin_from_file(task),
            Keeps::Nothing | Keeps::Etcd => {
                let epoch = self.next_epoch(site);
                self.begin_leadership(task, epoch, Left::Nothing);
            }
        }
    }

    /// The number of an epoch that begins without a record.
    pub(super) fn next_epoch(&self, site: u32) -> Epoch {
        next_epoch(self.tree.sites[site as usize].epoch, self.date_millis())
    }

    /// Whether a task is there, and can die.
    pub(super) fn is_mortal(&self, task: u32) -> bool {
        let found = &self.tree.tasks[task as usize];
        match self.tree.sites[found.site as usize].keeps {
            Keeps::Nothing | Keeps::File => found.leadership.is_some(),
            Keeps::Etcd => found.candidate.is_some(),
        }
    }

    /// The process of a task is gone, with all it knew. Those connected hear of it, or not.
    pub(super) fn crash_task(&mut self, task: u32, said: bool) {
        if self.tree.tasks[task as usize]
            .leadership
            .as_ref()
            .is_some_and(|leadership| leadership.keeps_file())
        {
            self.cut_short(task);
        }
        self.end_leadership(task, &Farewell::Crash { said });
        self.end_process(task, said);
    }

    /// A task gives up its candidature for good, and takes no more calls. It is gone when etcd has heard of that.
    pub(super) fn resign(&mut self, task: u32) -> bool {
        let (now, global) = (self.local(Actor::Task(task)), self.now);
        let found = &mut self.tree.tasks[task as usize];
        if found.process.frozen.is_none()
            && found.leadership.as_ref().is_some_and(|leadership| leadership.keeps_file())
        {
            self.close_file(task);
            self.end_process(task, true);
            let back = self.spell();
            self.queue.put(back, Event::Start(task));
            return true;
        }
        if found.candidate.is_none() || found.process.frozen.is_some() {
            return false;
        }
        let acts = found.acts(global);
        // What is out exactly is written behind all that was asked for before, and then that it leads no more.
        if let Some(write) =
            found.leadership.as_mut().filter(|_| acts).and_then(|leadership| leadership.node.resign(now))
        {
            self.write_record(task, write);
        }
        let found = &mut self.tree.tasks[task as usize];
        if let Some(candidate) = &mut found.candidate {
            candidate.resign(now);
        }
        found.up = false;
        self.end_leadership(task, &Farewell::Resigned);
        self.drive_task(task);
        true
    }

    fn end_process(&mut self, task: u32, said: bool) {
        let found = &mut self.tree.tasks[task as usize];
        found.candidate = None;
        (found.up, found.process.wake) = (false, Time::MAX);
        found.births += 1;
        let frozen = found.process.frozen.take();
        self.restart_clock(Actor::Task(task));
        let found = &mut self.tree.tasks[task as usize];
        let births = found.births;
        self.note(Actor::Task(task).who(), Happening::Ends, [births.into(), said.into(), 0]);
        for event in frozen.into_iter().flat_map(|frozen| frozen.backlog) {
            self.lost_with_process(&event, said);
        }
        if let Some(stream) = self.process_mut(Actor::Task(task)).stream.take() {
            self.abandon(stream, said);
        }
        self.forget_watches(task);
        self.end_following(task);
    }
}

// === what others do with leaders ===

impl Simulation {
    /// The task that leads a site dies with all it knew, and its host says so; it begins again a second later. Another one
    /// leads when etcd lets the key go. Whether there was any.
    pub fn lose_leader(&mut self, site: u32) -> bool {
        let Some(task) = self.tree.sites[site as usize].head else { return false };
        self.crash_task(task, true);
        self.later(Duration::from_secs(1), Event::Start(task));
        true
    }

    /// The task that leads a site gives that up in order, and begins again at once. Whether there was any.
    pub fn resign_leader(&mut self, site: u32) -> bool {
        self.tree.sites[site as usize].head.is_some_and(|task| self.resign(task))
    }

    /// The task that leads a site neither reaches etcd nor hears of it for so long. Whether there was any.
    pub fn cut_leader_from_etcd(&mut self, site: u32, time: Duration) -> bool {
        let Some(task) = self.tree.sites[site as usize].head else { return false };
        self.tree.tasks[task as usize].etcd.cut = self.now + time;
        true
    }

    /// All tasks of a site die, and their hosts say so.
    pub fn close(&mut self, site: u32) {
        self.tree.sites[site as usize].tasks.clone().for_each(|task| self.crash_task(task, true));
    }

    /// All tasks of a site begin that are not there.
    pub fn open(&mut self, site: u32) {
        self.tree.sites[site as usize].tasks.clone().for_each(|task| self.begin_task(task));
    }
}

// === candidates ===

impl Simulation {
    /// Does all that a task wants done. Its node may have been touched.
    pub(super) fn drive_task(&mut self, task: u32) {
        self.drive_elector(task);
        self.consult(|oracle, facts| oracle.watch_node(facts, task));
    }

    /// The same if its candidate has not been touched.
    pub(super) fn drive_leader(&mut self, task: u32) {
        let now = self.local(Actor::Task(task));
        let candidate = self.tree.tasks[task as usize].candidate.as_ref();
        match candidate.is_some_and(|candidate| candidate.next_deadline() <= now) {
            true => self.drive_elector(task),
            false => self.drive_served(task),
        }
        self.consult(|oracle, facts| oracle.watch_node(facts, task));
    }

    /// The same if its node has not been, as far as is known.
    pub(super) fn drive_elector(&mut self, task: u32) {
        self.drive_candidate(task);
        self.drive_served(task);
    }

    fn drive_served(&mut self, task: u32) {
        for round in 0.. {
            assert!(round < ENDLESS, "task {task} never comes to rest:\n{}", self.trace());
            if !self.drive_node(task) {
                break;
            }
            self.drive_candidate(task);
        }
        if let Some(candidate) = &self.tree.tasks[task as usize].candidate {
            let deadline = candidate.next_deadline();
            // A moment that has passed is no reason to wake up in the same again.
            let soonest = self.local(Actor::Task(task)) + Duration::from_nanos(2);
            self.wake_at(Actor::Task(task), deadline.max(soonest));
        }
    }

    fn drive_candidate(&mut self, task: u32) {
        let actor = Actor::Task(task);
        for round in 0.. {
            assert!(round < ENDLESS, "candidate {task} never comes to rest:\n{}", self.trace());
            let (now, date) = (self.local(actor), self.date().since_epoch);
            // Where nobody changes his way to remember, epochs are counted, so that they are easy to read.
            let dated = self.rules.memory.etcd.is_some();
            let found = &mut self.tree.tasks[task as usize];
            let Some(candidate) = &mut found.candidate else { return };
            if dated {
                candidate.set_date(date);
            }
            let action = candidate.poll(now);
            let leadership = candidate.epoch().zip(candidate.key_revision());
            let site = found.site;
            if let (Some((epoch, revision)), Some(etcd)) = (leadership, &mut self.tree.etcd) {
                etcd.registry.learn(site, epoch, revision);
            }
            let Some(candidate) = &mut self.tree.tasks[task as usize].candidate else { return };
            let outcomes: Vec<Outcome> = std::iter::from_fn(|| candidate.next_event()).collect();
            if !outcomes.is_empty() {
                self.oracle.touched.voted.push(self.tree.tasks[task as usize].site);
            }
            outcomes.into_iter().for_each(|outcome| self.become_of(task, outcome));
            let Some(action) = action else { return };
            match action {
                Action::Call { id, call } => {
                    self.note(actor.who(), Happening::CallsEtcd, [id, number_of(&call), 0]);
                    self.call_etcd(task, id, call);
                }
                Action::Watch { id, key, from_revision } => self.watch_etcd(task, id, &key, from_revision),
                Action::Unwatch { id } => self.unwatch_etcd(task, id),
            }
        }
    }

    /// Something has become of a candidate.
    fn become_of(&mut self, task: u32, outcome: Outcome) {
        let who = Actor::Task(task).who();
        match outcome {
            Outcome::Elected { epoch, record } => {
                self.begin_leadership(task, epoch, Left::Elected(record));
            }
            Outcome::Resumed => {
                self.note(who, Happening::Authority, [1, 0, 0]);
                self.later(Duration::ZERO, Event::Waiting(task));
            }
            Outcome::Lapsed => self.note(who, Happening::Authority, [0, 0, 0]),
            Outcome::Deposed => self.follow(task, Leader::default(), 0),
            Outcome::Leader(leader) => {
                let revision = leader.as_ref().map_or(0, |leader| leader.revision);
                self.follow(task, Leader { address: leader.map(|leader| leader.address) }, revision);
                let births = self.tree.tasks[task as usize].births;
                self.later(Duration::ZERO, Event::Clock(task, Box::new(ClockCall::Seen { births })));
            }
            Outcome::Written(ticket) => {
                let now = self.local(Actor::Task(task));
                let Some(leadership) = &mut self.tree.tasks[task as usize].leadership else { return };
                if let Some((_, ticket)) = leadership.writing.take_if(|(writing, _)| *writing == ticket) {
                    leadership.node.on_marks(now, ticket, true);
                    self.consult(|oracle, facts| oracle.watch_node(facts, task));
                }
            }
            Outcome::Resigned => {
                self.end_process(task, true);
                let back = self.spell();
                self.queue.put(back, Event::Start(task));
            }
            Outcome::Faulty(_) | Outcome::Healthy => {}
        }
    }

    /// Another leads, or nobody that is known.
    fn follow(&mut self, task: u32, leader: Leader, revision: u64) {
        self.note(Actor::Task(task).who(), Happening::Follows, [revision, 0, 0]);
        self.end_leadership(task, &Farewell::Redirect(leader.clone()));
        self.tree.tasks[task as usize].knows = leader;
    }

    /// A node wants something written. Whether its candidate is to see to it.
    pub(super) fn write_record(&mut self, task: u32, write: MarkWrite) -> bool {
        let actor = Actor::Task(task);
        let ticket = write.ticket;
        self.note(
            actor.who(),
            Happening::Writes,
            [ticket, write.change.marks.len() as u64, write.change.deletes.len() as u64],
        );
        let now = self.local(actor);
        let found = &mut self.tree.tasks[task as usize];
        self.tree.sites[found.site as usize].figures.writes += 1;
        let Some(leadership) = &mut found.leadership else { return false };
        let (epoch, in_file) = (leadership.epoch, leadership.keeps_file());
        if in_file {
            self.write_file(task, &write.change, ticket);
            return false;
        }
        match found.candidate.as_mut().and_then(|candidate| candidate.write(now, Some(epoch), write.change)) {
            Some(written) => leadership.writing = Some((written, ticket)),
            None => leadership.node.on_marks(now, ticket, false),
        }
        true
    }
}

/// For the trace.
fn number_of(call: &Call) -> u64 {
    match call {
        Call::GrantLease { .. } => 0,
        Call::KeepAlive { .. } => 1,
        Call::Campaign { .. } => 2,
        Call::Read { .. } => 3,
        Call::ReadRecord { .. } => 4,
        Call::Write(_) => 5,
        Call::Revoke { .. } => 6,
        Call::Put { .. } => 7,
    }
}
