//! The templates at an etcd of their own, where a simulation has them there: real followers, an operator who pushes, and what goes
//! wrong between them. It draws from an rng of its own, so that all else is as it would be without.

use std::collections::BTreeSet;
use std::time::Duration;

use lessor_proto::Time;
use lessor_server::election::call::{Answer, Call, Failure, Stored, Watched};
use lessor_server::election::lag::Step;
use lessor_server::follower::deference::Deference;
use lessor_server::follower::{FollowerAction, FollowerConfig, TaskStanding, TemplateFollower};
use lessor_server::overrides::{Override, Overrides};
use lessor_server::repository::Repository;
use lessor_server::revision::{Digest, Revision, RevisionDocument, RevisionHead, RevisionKeys, pack};

use super::{ENDLESS, Event, Simulation};
use crate::actor::Actor;
use crate::etcd::Etcd;
use crate::rng::Rng;
use crate::trace::{Happening, Speaker};

/// The etcd of the templates, those who follow it, and the operator.
#[derive(Debug)]
pub(crate) struct TemplateOffice {
    rng: Rng,
    store: Etcd,
    /// A copy of it that an operator keeps.
    copy: Option<Etcd>,
    keys: RevisionKeys,
    /// By task.
    tasks: Vec<FollowingTask>,
    /// The greatest number that was in force anywhere.
    greatest: u64,
    /// The operator pushes nothing before, as somebody may have read what has gone since.
    not_before: Time,
    is_to_be_pushed: bool,
}

/// A task that follows the templates, or does not run.
#[derive(Debug, Default)]
struct FollowingTask {
    follower: Option<Box<TemplateFollower>>,
    deference: Deference,
    /// The number of its process: what comes for an earlier one is not heard.
    process: u32,
    /// The number and the edition that it has in force.
    in_force: Option<(u64, usize)>,
    overrides: Overrides,
    watches: BTreeSet<u64>,
    wake: Time,
    /// News on a watch comes in order.
    seen_until: Time,
}

/// A step of a follower, or of the operator.
#[derive(Clone, Debug)]
pub(crate) enum TemplateStep {
    /// A deadline of the follower, unless it has moved.
    Wake,
    /// It looks whether it should stand for election.
    Look { process: u32 },
    /// A call arrives.
    Call { process: u32, id: u64, call: Call },
    /// Its answer does.
    Answer { process: u32, id: u64, result: Result<Answer, Failure> },
    /// Something is seen on a watch.
    Shows { process: u32, id: u64, watched: Watched },
    /// The operator pushes what is configured.
    Push,
}

/// The name of the only document.
const DOCUMENT: &str = "all.yaml";
/// The time in which whoever has read something of an etcd that has gone has put it in force, or has given that up.
const SETTLED: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_secs(1);
/// Etcd forgets what has been when there is more of it than that.
const HISTORY: usize = 64;

// === impl TemplateOffice ===

impl TemplateOffice {
    pub(super) fn new(seed: u64, tasks: usize) -> TemplateOffice {
        TemplateOffice {
            rng: Rng::new(seed ^ 0x7e3_91a7_e501),
            store: Etcd::new(),
            copy: None,
            keys: RevisionKeys::new("templates").expect("a prefix"),
            tasks: (0..tasks).map(|_| FollowingTask::default()).collect(),
            greatest: 0,
            not_before: Time::ZERO,
            is_to_be_pushed: false,
        }
    }

    /// Under a lease that ends it.
    fn put_override(&mut self, now: Time, it: &Override) -> bool {
        let ttl = Duration::from_secs(it.seconds);
        let Ok(Answer::Granted { lease, .. }) = self.store.carry_out(now, &Call::GrantLease { ttl }) else {
            return false;
        };
        let (key, value) = (self.keys.override_of(&it.id), it.encode());
        self.store.carry_out(now, &Call::Put { lease, key, value }).is_ok()
    }

    /// The first that is there.
    fn lift_override(&mut self) -> bool {
        let Some(lease) = self.overrides().first().and_then(|stored| stored.lease) else { return false };
        self.store.carry_out(Time::ZERO, &Call::Revoke { lease }).is_ok()
    }

    /// Those that are there.
    fn overrides(&mut self) -> Vec<Stored> {
        let read = Call::ReadRecord { prefix: self.keys.overrides(), after: None, limit: Overrides::MOST };
        match self.store.carry_out(Time::ZERO, &read) {
            Ok(Answer::Record { stored, .. }) => stored,
            _ => Vec::new(),
        }
    }

    fn head(&self) -> Option<RevisionHead> {
        let key = self.keys.head();
        let stored = self.store.get(&key)?;
        Some(RevisionHead::decode(&key, &stored.value).expect("the operator has put it"))
    }

    /// Puts an edition in force, as a push does when nobody else pushes.
    fn push(&mut self, edition: usize) -> u64 {
        let text = edition.to_string();
        let (head, document) = (self.head(), RevisionDocument::new("*", DOCUMENT, &text));
        let number = head.map_or(0, |head| head.number).max(self.greatest) + 1;
        let revision = Revision {
            number,
            parent: head.map_or(0, |head| head.number),
            parent_digest: head.map(|head| head.digest),
            documents: vec![document],
            message: format!("edition {edition}"),
            ..Revision::default()
        };
        let (blob, key) = (self.keys.blob(&revision.documents[0].blob), self.keys.revision(number));
        self.store.put_bytes(&blob, &pack(&blob, &text).expect("it is small"));
        let record = revision.encode(&key).expect("it is valid");
        self.store.put(&key, &record);
        self.store.put(&self.keys.head(), &revision.head(Digest::of(&record)).encode());
        number
    }
}

// === impl Simulation: processes ===

impl Simulation {
    /// The process of a task begins to follow. It does not stand for election before it has something in force.
    pub(super) fn begin_following(&mut self, task: u32) {
        let now = self.local(Actor::Task(task));
        let site = self.tree.tasks[task as usize].site;
        let Some(office) = &mut self.configurations.templates else { return };
        let found = &mut office.tasks[task as usize];
        let nonce = u64::from(task) << 32 | u64::from(found.process);
        let name = &self.tree.sites[site as usize].name;
        let config = FollowerConfig::new(office.keys.prefix(), name, nonce).expect("a prefix");
        #[cfg(feature = "mutations")]
        let config = FollowerConfig {
            rules: self.rules.mutation.map(crate::mutation::Mutation::follower).unwrap_or_default(),
            ..config
        };
        found.follower = Some(Box::new(TemplateFollower::new(now, config)));
        found.wake = Time::MAX;
        let process = found.process;
        self.look_at_standing(task, process);
        self.drive_follower(task);
    }

    /// The process of a task has ended.
    pub(super) fn end_following(&mut self, task: u32) {
        let Some(office) = &mut self.configurations.templates else { return };
        let found = &mut office.tasks[task as usize];
        for id in &found.watches {
            office.store.unwatch(number(task, found.process, *id));
        }
        let process = found.process + 1;
        *found = FollowingTask { process, ..FollowingTask::default() };
    }

    /// The number and the edition that a task has in force, where templates are followed; absent in that: none yet.
    pub(super) fn followed(&self, task: u32) -> Option<Option<(u64, usize)>> {
        self.configurations.templates.as_ref().map(|office| office.tasks[task as usize].in_force)
    }

    /// A step of a follower, or of the operator.
    pub(super) fn step_template(&mut self, task: u32, step: TemplateStep) {
        match step {
            TemplateStep::Push => return self.push_edition(),
            TemplateStep::Call { process, id, call } => return self.at_store(task, process, id, &call),
            TemplateStep::Look { process } => return self.look_at_standing(task, process),
            TemplateStep::Wake | TemplateStep::Answer { .. } | TemplateStep::Shows { .. } => {}
        }
        let (global, now) = (self.now, self.local(Actor::Task(task)));
        let Some(office) = &mut self.configurations.templates else { return };
        let found = &mut office.tasks[task as usize];
        let Some(follower) = &mut found.follower else { return };
        match step {
            TemplateStep::Wake if found.wake > global => return,
            TemplateStep::Wake => found.wake = Time::MAX,
            TemplateStep::Answer { process, id, result } if process == found.process => {
                follower.on_answer(now, id, result);
            }
            TemplateStep::Shows { process, id, watched } if process == found.process => {
                follower.on_watched(now, id, watched);
            }
            _ => return,
        }
        self.drive_follower(task);
    }

    /// Does all that a follower wants done.
    fn drive_follower(&mut self, task: u32) {
        let now = self.local(Actor::Task(task));
        for round in 0.. {
            assert!(round < ENDLESS, "follower {task} never comes to rest:\n{}", self.trace());
            let Some(office) = &mut self.configurations.templates else { return };
            let Some(follower) = &mut office.tasks[task as usize].follower else { return };
            let action = follower.poll(now);
            while follower.next_event().is_some() {}
            match action {
                Some(action) => self.perform_following(task, action),
                None => break,
            }
        }
        let global = self.now;
        let clock = self.tree.tasks[task as usize].process.clock;
        let Some(office) = &mut self.configurations.templates else { return };
        let found = &mut office.tasks[task as usize];
        let Some(follower) = &found.follower else { return };
        let deadline = follower.next_deadline().max(now + Duration::from_nanos(2));
        let when = clock.when(deadline).max(global);
        if deadline != Time::MAX && when < found.wake {
            found.wake = when;
            self.queue.put(when, Event::Templates(task, Box::new(TemplateStep::Wake)));
        }
    }

    fn perform_following(&mut self, task: u32, action: FollowerAction) {
        match action {
            FollowerAction::Call { id, call } => {
                let Some((process, delay)) = self.reaches_store(task) else { return };
                let step = TemplateStep::Call { process, id, call };
                self.later(delay, Event::Templates(task, Box::new(step)));
            }
            FollowerAction::Watch { id, prefix, from_revision } => {
                let reached = self.reaches_store(task);
                let Some(office) = &mut self.configurations.templates else { return };
                let found = &mut office.tasks[task as usize];
                if reached.is_none() {
                    let (process, watched) = (found.process, Watched::Ended(Failure::Timeout));
                    let step = TemplateStep::Shows { process, id, watched };
                    return self.later(Duration::from_millis(500), Event::Templates(task, Box::new(step)));
                }
                found.watches.insert(id);
                office.store.watch_prefix(number(task, found.process, id), &prefix, from_revision);
                self.show_heads();
            }
            FollowerAction::Unwatch { id } => {
                let Some(office) = &mut self.configurations.templates else { return };
                let found = &mut office.tasks[task as usize];
                found.watches.remove(&id);
                office.store.unwatch(number(task, found.process, id));
            }
            FollowerAction::Check(check) => {
                let checked = match check.text.parse::<usize>() {
                    Ok(edition) => Ok(self.repository_of(task, edition)),
                    Err(fault) => Err(vec![fault.to_string()]),
                };
                let Some(office) = &mut self.configurations.templates else { return };
                if let Some(follower) = &mut office.tasks[task as usize].follower {
                    follower.on_checked(check.id, checked);
                }
            }
            FollowerAction::PutInForce { repository, last_good } => {
                let edition = last_good.text.parse().expect("it was checked");
                self.put_edition_in_force(task, &repository, edition);
            }
            FollowerAction::Override(overrides) => {
                let Some(office) = &mut self.configurations.templates else { return };
                office.tasks[task as usize].overrides = overrides;
                self.put_overrides_in_force(task);
            }
        }
    }

    /// The overrides that a task has read, where templates are followed.
    pub(super) fn followed_overrides(&self, task: u32) -> Option<&Overrides> {
        self.configurations.templates.as_ref().map(|office| &office.tasks[task as usize].overrides)
    }

    /// The leader that a task is goes by the overrides that it has read.
    pub(super) fn put_overrides_in_force(&mut self, task: u32) {
        let now = self.local(Actor::Task(task));
        let Some(office) = &self.configurations.templates else { return };
        let overrides = office.tasks[task as usize].overrides.clone();
        self.note(Actor::Task(task).who(), Happening::Overrides, [overrides.len() as u64, u64::MAX - 1, 0]);
        let Some(leadership) = &mut self.tree.tasks[task as usize].leadership else { return };
        leadership.node.set_overrides(now, &overrides);
        self.drive_task(task);
    }

    fn put_edition_in_force(&mut self, task: u32, repository: &Repository, edition: usize) {
        let version = repository.version();
        let Some(office) = &mut self.configurations.templates else { return };
        let found = &mut office.tasks[task as usize];
        let before = found.in_force.replace((version, edition)).map_or(0, |(before, _)| before);
        office.greatest = office.greatest.max(version);
        if version <= before {
            self.oracle.fail(36, || format!("task {task} puts revision {version} in force behind {before}"));
        }
        self.note(Actor::Task(task).who(), Happening::Edition, [edition as u64 + 1, version, 0]);
        self.reload(task);
        let process =
            self.configurations.templates.as_ref().map_or(0, |office| office.tasks[task as usize].process);
        self.look_whether_to_stand(task, process);
    }

    /// A task looks whether it should stand, and again after a while.
    fn look_at_standing(&mut self, task: u32, process: u32) {
        if self.look_whether_to_stand(task, process) {
            self.later(LOOK, Event::Templates(task, Box::new(TemplateStep::Look { process })));
        }
    }

    /// Whether that process runs still.
    fn look_whether_to_stand(&mut self, task: u32, process: u32) -> bool {
        let now = self.local(Actor::Task(task));
        let Some(office) = &mut self.configurations.templates else { return false };
        let found = &mut office.tasks[task as usize];
        let Some(follower) = found.follower.as_mut().filter(|_| found.process == process) else {
            return false;
        };
        let of_task = &mut self.tree.tasks[task as usize];
        let leads = of_task.leadership.is_some();
        let step = found.deference.look(now, follower.stands(now), leads);
        let record = of_task.leadership.as_ref().map_or(0, |leadership| leadership.newest);
        follower.set_standing(TaskStanding { leads, stands: !found.deference.is_aside(), record });
        let Some(candidate) = &mut of_task.candidate else { return true };
        match step {
            Some(Step::Aside(time)) => candidate.stand_aside(now, time),
            Some(Step::Stand) => candidate.stand_again(now),
            None => return true,
        }
        self.drive_task(task);
        true
    }
}

// === impl Simulation: the etcd of the templates ===

impl Simulation {
    /// The process of a task, and how long something takes from it to etcd; nothing, if it gets lost.
    fn reaches_store(&mut self, task: u32) -> Option<(u32, Duration)> {
        let is_cut = self.tree.tasks[task as usize].etcd.cut > self.now;
        let is_away = self.tree.etcd.as_ref().is_some_and(|etcd| etcd.is_away(self.now));
        let (faulty, link, faults) = (self.faulty(), self.etcd_plan().link, self.rules.faults.clone());
        let office = self.configurations.templates.as_mut()?;
        let is_lost = faulty && office.rng.chance(faults.etcd_loss);
        if is_cut || is_away || is_lost {
            return None;
        }
        let usual = office.rng.time(link.latency, link.latency + link.jitter);
        let is_slow = faulty && office.rng.chance(faults.etcd_slow);
        let more = if is_slow { office.rng.exponential(faults.slow_mean) } else { Duration::ZERO };
        Some((office.tasks[task as usize].process, usual + more))
    }

    /// A call arrives.
    fn at_store(&mut self, task: u32, process: u32, id: u64, call: &Call) {
        let now = self.now;
        let Some(office) = &mut self.configurations.templates else { return };
        office.store.advance(now);
        let result = office.store.carry_out(now, call);
        if office.store.remembers() > HISTORY {
            office.store.compact(office.store.revision().saturating_sub(HISTORY as u64 / 2));
        }
        self.show_heads();
        if let Some((_, delay)) = self.reaches_store(task) {
            let step = TemplateStep::Answer { process, id, result };
            self.later(delay, Event::Templates(task, Box::new(step)));
        }
    }

    /// Sends what is to be seen to those who watch.
    fn show_heads(&mut self) {
        for task in 0..self.tree.tasks.len() as u32 {
            let is_cut = self.tree.tasks[task as usize].etcd.cut > self.now;
            let Some(office) = &mut self.configurations.templates else { return };
            let found = &mut office.tasks[task as usize];
            let process = found.process;
            let mut shown = Vec::new();
            for &id in &found.watches {
                let watched = office.store.watched(number(task, process, id));
                shown.extend(watched.into_iter().map(|watched| (id, watched)));
            }
            for (id, watched) in shown.into_iter().filter(|_| !is_cut) {
                let Some((_, delay)) = self.reaches_store(task) else { continue };
                let at = self.now + delay;
                let Some(office) = &mut self.configurations.templates else { return };
                let found = &mut office.tasks[task as usize];
                found.seen_until = found.seen_until.max(at);
                let (at, step) = (found.seen_until, TemplateStep::Shows { process, id, watched });
                self.queue.put(at, Event::Templates(task, Box::new(step)));
            }
        }
    }

    /// The operator wants what is configured to be in force.
    pub(super) fn want_push(&mut self) {
        let now = self.now;
        let Some(office) = &mut self.configurations.templates else { return };
        if !std::mem::replace(&mut office.is_to_be_pushed, true) {
            let at = office.not_before.max(now);
            self.queue.put(at, Event::Templates(0, Box::new(TemplateStep::Push)));
        }
    }

    fn push_edition(&mut self) {
        let (now, newest) = (self.now, self.configurations.editions.len() - 1);
        let Some(office) = &mut self.configurations.templates else { return };
        if now < office.not_before {
            let at = office.not_before;
            return self.queue.put(at, Event::Templates(0, Box::new(TemplateStep::Push)));
        }
        office.is_to_be_pushed = false;
        let number = office.push(newest);
        self.note(Speaker::Simulation, Happening::Edition, [newest as u64 + 1, number, 1]);
        self.show_heads();
    }

    /// The operator puts an override there, or lifts one that is there. Whether there was anything to do.
    pub(super) fn push_override(&mut self, it: Option<&Override>) -> bool {
        let now = self.now;
        let Some(office) = &mut self.configurations.templates else { return false };
        office.store.advance(now);
        let done = match it {
            Some(it) => office.put_override(now, it),
            None => office.lift_override(),
        };
        self.show_heads();
        done
    }

    /// A watch of a follower dies, and nobody tells it.
    pub(super) fn deafen_follower(&mut self) {
        let Some(office) = &mut self.configurations.templates else { return };
        let task = office.rng.index(office.tasks.len());
        let found = &mut office.tasks[task];
        for id in std::mem::take(&mut found.watches) {
            office.store.unwatch(number(task as u32, found.process, id));
        }
    }

    /// Forgets what has been.
    pub(super) fn compact_templates(&mut self) {
        if let Some(office) = &mut self.configurations.templates {
            office.store.compact(office.store.revision());
        }
    }

    /// Begins anew: nobody watches.
    pub(super) fn restart_templates(&mut self) {
        let now = self.now;
        let Some(office) = &mut self.configurations.templates else { return };
        office.store.restart(now);
        let mut ended = Vec::new();
        for (task, found) in office.tasks.iter_mut().enumerate() {
            let process = found.process;
            for id in std::mem::take(&mut found.watches) {
                let watched = Watched::Ended(Failure::Unavailable("restarted".to_owned()));
                let delay = office.rng.time(Duration::ZERO, Duration::from_millis(50));
                ended.push((delay, task as u32, TemplateStep::Shows { process, id, watched }));
            }
        }
        for (delay, task, step) in ended {
            self.later(delay, Event::Templates(task, Box::new(step)));
        }
    }

    /// An operator copies the store, or puts the copy back, and pushes what is configured when everybody has settled.
    pub(super) fn restore_templates(&mut self) -> bool {
        let now = self.now;
        let Some(office) = &mut self.configurations.templates else { return false };
        let Some(mut copy) = office.copy.take() else {
            office.copy = Some(office.store.clone());
            return false;
        };
        copy.go_on_from(&office.store);
        office.store = copy;
        office.not_before = now + SETTLED;
        self.note(Speaker::Simulation, Happening::Etcd, [5, now.as_nanos(), 0]);
        self.restart_templates();
        self.want_push();
        true
    }

    /// All tasks that run have the head in force, once nothing has gone wrong for a while (I36).
    pub(super) fn judge_templates(&mut self) {
        let Some(office) = &self.configurations.templates else { return };
        let head = office.head().map_or(0, |head| head.number);
        let running = office.tasks.iter().enumerate().filter(|(_, found)| found.follower.is_some());
        let behind = running.map(|(task, found)| (task, found.in_force.map_or(0, |(number, _)| number)));
        let behind = behind.filter(|&(_, number)| number != head).collect::<Vec<_>>();
        for (task, number) in behind {
            self.oracle
                .fail(36, || format!("task {task} has revision {number} in force, and the head is {head}"));
        }
        self.judge_followed_overrides();
    }

    /// All of them have read the overrides that are there, and no others.
    fn judge_followed_overrides(&mut self) {
        let now = self.now;
        let Some(office) = &mut self.configurations.templates else { return };
        office.store.advance(now);
        let there = office.overrides().len();
        let running = office.tasks.iter().enumerate().filter(|(_, found)| found.follower.is_some());
        let other =
            running.map(|(task, found)| (task, found.overrides.len())).find(|&(_, read)| read != there);
        if let Some((task, read)) = other {
            self.oracle.fail(36, || format!("task {task} has read {read} overrides, and there are {there}"));
        }
    }
}

fn number(task: u32, process: u32, id: u64) -> u64 {
    u64::from(task) << 48 | u64::from(process & 0xffff) << 32 | id
}
