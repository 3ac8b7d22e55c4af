//! Tasks that stand for election: what their candidates want done is done, and what they say becomes of their nodes, as
//! in the body of a server.

use std::time::Duration;

use lessor_proto::Time;
use lessor_proto::message::Leader;
use lessor_server::election::call::{Action, Call};
use lessor_server::election::record::{RecordWrite, Terms, next_epoch};
use lessor_server::election::{Candidate, ClockBounds, ElectionConfig, Event as Outcome};
use lessor_server::node::{Header, MarkWrite};

use super::clocks::ClockCall;
use super::reign::{Farewell, Left};
use super::{ENDLESS, Event, Town};
use crate::plan::Keeps;
use crate::process::Party;
use crate::story::What;

// === processes ===

impl Town {
    /// The process of a task begins, unless there is one.
    pub(super) fn begin_task(&mut self, task: u32) {
        let place = self.tasks[task as usize].place;
        if !self.is_mortal(task) {
            self.look_at_configuration(task);
        }
        if self.places[place as usize].keeps != Keeps::Etcd {
            if self.begins_alone(task) {
                self.begin_alone(task);
            }
            return;
        }
        let etcd = self.etcd_plan();
        let nonce = self.dice.number();
        let (found, drift) = (&self.tasks[task as usize], self.rules.drift);
        if found.candidate.is_some() {
            return;
        }
        let place = &self.places[found.place as usize];
        let config = ElectionConfig {
            #[cfg(feature = "mutations")]
            rules: self.rules.mutation.map(crate::mutation::Mutation::election).unwrap_or_default(),
            ..etcd.candidate(&place.name, &found.address, place.authority, drift, nonce)
        };
        let now = self.local(Party::Task(task));
        let candidate = Candidate::new(now, config).expect("a plan that can work");
        let found = &mut self.tasks[task as usize];
        found.births += 1;
        found.candidate = Some(Box::new(candidate));
        found.clocks = ClockBounds::default();
        found.losses.clear();
        found.lag = None;
        (found.up, found.knows) = (true, Leader::default());
        let births = found.births;
        self.note(Party::Task(task).who(), What::Begins, [births.into(), nonce, 0]);
        self.begin_asking(task);
        self.drive_task(task);
    }

    /// Whether a task is there when servers are alone: the first of each place, and of some a second one of the same name.
    pub(super) fn begins_alone(&self, task: u32) -> bool {
        let found = &self.tasks[task as usize];
        let below = self.places[found.place as usize].parent.is_some();
        found.number == 0 || found.number == 1 && below && self.rules.namesakes
    }

    /// A server that is alone begins, and leads at once: after those of its place that have led before.
    pub(super) fn begin_alone(&mut self, task: u32) {
        let place = self.tasks[task as usize].place;
        if self.tasks[task as usize].reign.is_some() {
            return;
        }
        self.tasks[task as usize].births += 1;
        match self.places[place as usize].keeps {
            Keeps::File => self.begin_from_file(task),
            Keeps::Nothing | Keeps::Etcd => {
                let epoch = self.next_epoch(place);
                self.begin_reign(task, epoch, Left::Nothing);
            }
        }
    }

    /// The number of a reign that begins without a record.
    pub(super) fn next_epoch(&self, place: u32) -> u64 {
        next_epoch(self.places[place as usize].epoch, self.date_millis())
    }

    /// Whether a task is there, and can die.
    pub(super) fn is_mortal(&self, task: u32) -> bool {
        let found = &self.tasks[task as usize];
        match self.places[found.place as usize].keeps {
            Keeps::Nothing | Keeps::File => found.reign.is_some(),
            Keeps::Etcd => found.candidate.is_some(),
        }
    }

    /// The process of a task is gone, with all it knew. Those connected hear of it, or not.
    pub(super) fn crash_task(&mut self, task: u32, said: bool) {
        if self.tasks[task as usize].reign.as_ref().is_some_and(|reign| reign.keeps_file()) {
            self.cut_short(task);
        }
        self.end_reign(task, &Farewell::Crash { said });
        self.end_process(task, said);
    }

    /// A task gives up its candidature for good, and takes no more calls. It is gone when etcd has heard of that.
    pub(super) fn resign(&mut self, task: u32) -> bool {
        let (now, global) = (self.local(Party::Task(task)), self.now);
        let found = &mut self.tasks[task as usize];
        if found.process.frozen.is_none() && found.reign.as_ref().is_some_and(|reign| reign.keeps_file()) {
            self.close_file(task);
            self.end_process(task, true);
            let back = self.spell();
            self.agenda.put(back, Event::Start(task));
            return true;
        }
        if found.candidate.is_none() || found.process.frozen.is_some() {
            return false;
        }
        let acts = found.acts(global);
        // What is out exactly is written behind all that was asked for before, and then that it leads no more.
        if let Some(write) = found.reign.as_mut().filter(|_| acts).and_then(|reign| reign.node.resign(now)) {
            self.write_record(task, write);
        }
        let found = &mut self.tasks[task as usize];
        if let Some(candidate) = &mut found.candidate {
            candidate.resign(now);
        }
        found.up = false;
        self.end_reign(task, &Farewell::Resigned);
        self.drive_task(task);
        true
    }

    fn end_process(&mut self, task: u32, said: bool) {
        let found = &mut self.tasks[task as usize];
        found.candidate = None;
        (found.up, found.process.wake) = (false, Time::MAX);
        found.births += 1;
        let frozen = found.process.frozen.take();
        self.restart_clock(Party::Task(task));
        let found = &mut self.tasks[task as usize];
        let births = found.births;
        self.note(Party::Task(task).who(), What::Ends, [births.into(), said.into(), 0]);
        for event in frozen.into_iter().flat_map(|frozen| frozen.backlog) {
            self.lost_with_process(&event, said);
        }
        if let Some(stream) = self.process_mut(Party::Task(task)).stream.take() {
            self.abandon(stream, said);
        }
        self.forget_watches(task);
    }
}

// === what others do with leaders ===

impl Town {
    /// The task that leads a place dies with all it knew, and its host says so; it begins again a second later. Another one
    /// leads when etcd lets the key go. Whether there was any.
    pub fn lose_leader(&mut self, place: u32) -> bool {
        let Some(task) = self.places[place as usize].head else { return false };
        self.crash_task(task, true);
        self.later(Duration::from_secs(1), Event::Start(task));
        true
    }

    /// The task that leads a place gives that up in order, and begins again at once. Whether there was any.
    pub fn resign_leader(&mut self, place: u32) -> bool {
        self.places[place as usize].head.is_some_and(|task| self.resign(task))
    }

    /// The task that leads a place neither reaches etcd nor hears of it for so long. Whether there was any.
    pub fn cut_leader_from_etcd(&mut self, place: u32, time: Duration) -> bool {
        let Some(task) = self.places[place as usize].head else { return false };
        self.tasks[task as usize].etcd_cut = self.now + time;
        true
    }

    /// All tasks of a place die, and their hosts say so.
    pub fn close(&mut self, place: u32) {
        self.places[place as usize].tasks.clone().for_each(|task| self.crash_task(task, true));
    }

    /// All tasks of a place begin that are not there.
    pub fn open(&mut self, place: u32) {
        self.places[place as usize].tasks.clone().for_each(|task| self.begin_task(task));
    }
}

// === candidates ===

impl Town {
    /// Does all that a task wants done. Its node may have been touched.
    pub(super) fn drive_task(&mut self, task: u32) {
        self.drive_elector(task);
        self.watch_node(task);
    }

    /// The same if its node has not been, as far as is known.
    pub(super) fn drive_elector(&mut self, task: u32) {
        for round in 0.. {
            assert!(round < ENDLESS, "task {task} never comes to rest:\n{}", self.story());
            self.drive_candidate(task);
            if !self.drive_node(task) {
                break;
            }
        }
        if let Some(candidate) = &self.tasks[task as usize].candidate {
            let deadline = candidate.deadline();
            // A moment that has passed is no reason to wake up in the same again.
            let soonest = self.local(Party::Task(task)) + Duration::from_nanos(2);
            self.wake_at(Party::Task(task), deadline.max(soonest));
        }
    }

    fn drive_candidate(&mut self, task: u32) {
        let party = Party::Task(task);
        for round in 0.. {
            assert!(round < ENDLESS, "candidate {task} never comes to rest:\n{}", self.story());
            let (now, date) = (self.local(party), self.date().since_epoch);
            // Where nobody changes his way to remember, reigns are counted, so that they are easy to read.
            let dated = self.rules.memory.etcd.is_some();
            let found = &mut self.tasks[task as usize];
            let Some(candidate) = &mut found.candidate else { return };
            if dated {
                candidate.set_date(date);
            }
            let action = candidate.poll(now);
            let reign = candidate.epoch().zip(candidate.key_revision());
            let place = found.place;
            if let (Some((epoch, revision)), Some(etcd)) = (reign, &mut self.etcd) {
                etcd.registry.learn(place, epoch, revision);
            }
            let Some(candidate) = &mut self.tasks[task as usize].candidate else { return };
            let outcomes: Vec<Outcome> = std::iter::from_fn(|| candidate.next_event()).collect();
            if !outcomes.is_empty() {
                self.oracle.voted.push(self.tasks[task as usize].place);
            }
            outcomes.into_iter().for_each(|outcome| self.become_of(task, outcome));
            let Some(action) = action else { return };
            match action {
                Action::Call { id, call } => {
                    self.note(party.who(), What::CallsEtcd, [id, number_of(&call), 0]);
                    self.call_etcd(task, id, call);
                }
                Action::Watch { id, key, from_revision } => self.watch_etcd(task, id, &key, from_revision),
                Action::Unwatch { id } => self.unwatch_etcd(task, id),
            }
        }
    }

    /// Something has become of a candidate.
    fn become_of(&mut self, task: u32, outcome: Outcome) {
        let who = Party::Task(task).who();
        match outcome {
            Outcome::Elected { epoch, record } => {
                self.begin_reign(task, epoch, Left::Elected(Box::new(record)));
            }
            Outcome::Resumed => self.note(who, What::Authority, [1, 0, 0]),
            Outcome::Lapsed => self.note(who, What::Authority, [0, 0, 0]),
            Outcome::Deposed => {
                let now = self.local(Party::Task(task));
                let found = &mut self.tasks[task as usize];
                if let Some(epoch) = found.epoch() {
                    found.clocks.note(epoch, now, now, self.rules.drift);
                }
                self.follow(task, Leader::default(), 0);
            }
            Outcome::Leader(leader) => {
                let epoch = leader.as_ref().map_or(0, |leader| leader.revision);
                self.follow(task, Leader { address: leader.map(|leader| leader.address) }, epoch);
                let births = self.tasks[task as usize].births;
                self.later(Duration::ZERO, Event::Clock(task, ClockCall::Seen { births }));
            }
            Outcome::Written(ticket) => {
                let now = self.local(Party::Task(task));
                let Some(reign) = &mut self.tasks[task as usize].reign else { return };
                if let Some((_, ticket)) = reign.writing.take_if(|(writing, _)| *writing == ticket) {
                    reign.node.on_marks(now, ticket, true);
                    self.watch_node(task);
                }
            }
            Outcome::Resigned => {
                self.end_process(task, true);
                let back = self.spell();
                self.agenda.put(back, Event::Start(task));
            }
            Outcome::Faulty(_) | Outcome::Healthy => {}
        }
    }

    /// Another leads, or nobody that is known.
    fn follow(&mut self, task: u32, leader: Leader, epoch: u64) {
        self.note(Party::Task(task).who(), What::Follows, [epoch, 0, 0]);
        self.end_reign(task, &Farewell::Redirect(leader.clone()));
        self.tasks[task as usize].knows = leader;
    }

    /// A node wants something written. Whether its candidate is to see to it.
    pub(super) fn write_record(&mut self, task: u32, write: MarkWrite) -> bool {
        let party = Party::Task(task);
        let ticket = write.ticket;
        self.note(party.who(), What::Writes, [ticket, write.puts.len() as u64, write.deletes.len() as u64]);
        let now = self.local(party);
        let found = &mut self.tasks[task as usize];
        self.places[found.place as usize].writes += 1;
        let Some(reign) = &mut found.reign else { return false };
        let (write, in_file) = (record_write(reign.epoch, write), reign.keeps_file());
        if in_file {
            self.write_file(task, &write, ticket);
            return false;
        }
        match found.candidate.as_mut().and_then(|candidate| candidate.write(now, write)) {
            Some(written) => reign.writing = Some((written, ticket)),
            None => reign.node.on_marks(now, ticket, false),
        }
        true
    }
}

/// The write that the node of a reign wants for its record.
pub(super) fn record_write(epoch: u64, write: MarkWrite) -> RecordWrite {
    let MarkWrite { ticket: _, puts, kinds, rests, proofs, deletes, header } = write;
    RecordWrite { epoch: Some(epoch), terms: header.map(terms), marks: puts, kinds, rests, proofs, deletes }
}

fn terms(header: Header) -> Terms {
    Terms {
        longest_lease: header.longest_lease,
        longest_safe_lease: header.longest_safe_lease,
        authority: header.authority,
        config_version: header.config_version,
        unknown: header.unknown,
        rest_over: header.rest_over,
    }
}

/// For the story.
fn number_of(call: &Call) -> u64 {
    match call {
        Call::GrantLease { .. } => 0,
        Call::KeepAlive { .. } => 1,
        Call::Campaign { .. } => 2,
        Call::Read { .. } => 3,
        Call::ReadRecord { .. } => 4,
        Call::Write(_) => 5,
        Call::Revoke { .. } => 6,
    }
}
