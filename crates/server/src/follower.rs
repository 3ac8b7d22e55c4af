//! The follower of the templates at etcd: which revision a task has in force, and what it says of the next.
//!
//! It reads the head, then the revision that it names, then the document for its node; has that checked, and puts it in force:
//! whole, or not at all. A number below the one in force is never put in force, whatever an etcd says that was restored. It
//! reads the overrides of operators beside it, and has them in force as they stand there. It
//! checks drafts in the same way as revisions, and says in its report what came of them, so that who pushes knows before it counts.
//!
//! It watches the head, and reads it again once a minute in any case, as a watch can die without a word; after a compaction it
//! reads first and watches from there, as what lay between is lost to a watch.
//!
//! No clock, no etcd and no YAML is in it: [`TemplateFollower::poll`] gives out what is to be done, and what came of that is
//! handed in.
//!
//! ```
//! use lessor_proto::Time;
//! use lessor_server::election::call::{Answer, Call};
//! use lessor_server::follower::{FollowerAction, FollowerConfig, TemplateFollower};
//!
//! let config = FollowerConfig::new("lessor-templates", "root", 0xa1)?;
//! let mut follower = TemplateFollower::new(Time::ZERO, config);
//! let Some(FollowerAction::Call { id, call: Call::Read { key } }) = follower.poll(Time::ZERO) else { panic!() };
//! assert_eq!(key, "lessor-templates/head");
//! follower.on_answer(Time::ZERO, id, Ok(Answer::Read { stored: None, revision: 7 }));
//! let Some(FollowerAction::Watch { prefix, from_revision, .. }) = follower.poll(Time::ZERO) else { panic!() };
//! assert_eq!((prefix.as_str(), from_revision), ("lessor-templates/head", 8));
//! # Ok::<(), lessor_server::revision::BadPrefix>(())
//! ```

mod action;
mod config;
pub mod deference;
mod drafts;
mod heads;
mod lane;
mod loading;
pub mod mutation;
mod outbox;
mod overriding;
mod presence;
mod watching;

use std::collections::VecDeque;
use std::sync::Arc;

use lessor_proto::Time;

pub use self::action::{FollowerAction, FollowerEvent, RevisionCheck};
pub use self::config::{FollowerConfig, TaskStanding};
use self::drafts::Drafts;
use self::heads::{KnownHeads, Refusing};
use self::lane::{Job, Lane};
use self::loading::{Loading, Stage, Target};
use self::mutation::FollowerRule;
use self::outbox::FollowerOutbox;
use self::overriding::FollowedOverrides;
use self::presence::Presence;
use self::watching::Watching;
use crate::election::call::{Answer, Call, Failure, Stored, Watched};
use crate::overrides::Overrides;
use crate::repository::Repository;
use crate::revision::{Digest, LastGood, RefusedRevision, RevisionHead, TaskReport};

/// A follower.
#[derive(Clone, Debug)]
pub struct TemplateFollower {
    config: FollowerConfig,
    /// The calls that read, one after the other.
    reads: Lane,
    /// Those that keep the report, which may be forbidden where reading is not.
    reports: Lane,
    watching: Watching,
    presence: Presence,
    heads: KnownHeads,
    loading: Option<Loading>,
    drafts: Drafts,
    overrides: FollowedOverrides,
    /// Documents that were checked and found good, the last first: they are not read again.
    checked: VecDeque<CheckedDocument>,
    /// When the head was read last.
    read_at: Option<Time>,
    out: FollowerOutbox,
}

/// A document that can be put in force.
#[derive(Clone, Debug)]
struct CheckedDocument {
    blob: Digest,
    text: Arc<str>,
    repository: Repository,
}

/// The number of checked documents that are kept: the one in force, and the next.
const CHECKED: usize = 2;

// === impl TemplateFollower ===

impl TemplateFollower {
    /// One that has nothing in force.
    #[must_use]
    pub fn new(now: Time, config: FollowerConfig) -> TemplateFollower {
        TemplateFollower {
            config,
            reads: Lane::default(),
            reports: Lane::default(),
            watching: Watching::new(now),
            presence: Presence::new(now),
            heads: KnownHeads::default(),
            loading: None,
            drafts: Drafts::default(),
            overrides: FollowedOverrides::default(),
            checked: VecDeque::new(),
            read_at: None,
            out: FollowerOutbox::default(),
        }
    }

    /// One that begins with the last good revision, which its caller has put in force.
    #[must_use]
    pub fn resumed(
        now: Time,
        config: FollowerConfig,
        last: &LastGood,
        repository: Repository,
    ) -> TemplateFollower {
        let mut follower = TemplateFollower::new(now, config);
        follower.heads = KnownHeads::in_force_is(last.head);
        follower.keep(last.document.blob, last.text.as_str().into(), repository);
        follower
    }

    /// Its settings.
    #[must_use]
    pub fn config(&self) -> &FollowerConfig {
        &self.config
    }

    /// The revision in force, if one is.
    #[must_use]
    pub fn in_force(&self) -> Option<RevisionHead> {
        self.heads.in_force()
    }

    /// The revision that it refuses, if it does.
    #[must_use]
    pub fn refused(&self) -> Option<&RefusedRevision> {
        self.heads.refused()
    }

    /// Whether the number in force stands at etcd with another content.
    #[must_use]
    pub fn is_in_conflict(&self) -> bool {
        self.heads.is_in_conflict()
    }

    /// When the head was read last.
    #[must_use]
    pub fn read_at(&self) -> Option<Time> {
        self.read_at
    }

    /// The standing of its task from here on.
    pub fn set_standing(&mut self, standing: TaskStanding) {
        self.presence.standing = standing;
    }

    /// Whether its task should stand for election at `now`: it has something in force, and has not refused what another task
    /// of its node has in force that stands.
    #[must_use]
    pub fn stands(&self, now: Time) -> bool {
        let Some(in_force) = self.heads.in_force() else { return false };
        let refused = self.refused().map_or(0, |refused| refused.number);
        refused <= in_force.number || !self.presence.has_one_ahead(now, refused)
    }

    /// The next action at `now`; nothing: wait for what comes in, or until [`TemplateFollower::next_deadline`].
    pub fn poll(&mut self, now: Time) -> Option<FollowerAction> {
        for is_read in [true, false] {
            if let Some(job) = self.lane(is_read).expire(now) {
                self.failed(now, is_read, &job, Failure::Timeout);
            }
        }
        self.presence.expire(now);
        self.begin_loading();
        if let Some(action) = self.out.next_action() {
            return Some(action);
        }
        let (is_read, (job, call)) = match self.reads.is_free(now).then(|| self.next_read(now)).flatten() {
            Some(read) => (true, read),
            None => (false, self.reports.is_free(now).then(|| self.next_report(now)).flatten()?),
        };
        let id = self.next_id();
        let until = now + self.config.call_timeout;
        self.lane(is_read).begin(id, now, until, job);
        Some(FollowerAction::Call { id, call })
    }

    /// When it wants to be polled again, if nothing comes in.
    #[must_use]
    pub fn next_deadline(&self) -> Time {
        if self.out.is_any_action() {
            return Time::ZERO;
        }
        let wants = self.loading.as_ref().is_some_and(Loading::wants_call)
            || self.drafts.is_to_be_read()
            || self.overrides.is_to_be_read();
        let read = if wants { Time::ZERO } else { self.watching.read_at.min(self.presence.peers_at) };
        let report = self.presence.next_deadline(&self.report());
        self.reads.next_deadline(read).min(self.reports.next_deadline(report)).min(self.presence.ends())
    }

    /// The next event, if there is one.
    pub fn next_event(&mut self) -> Option<FollowerEvent> {
        self.out.next_event()
    }

    /// Something came of a call.
    pub fn on_answer(&mut self, now: Time, id: u64, result: Result<Answer, Failure>) {
        for is_read in [true, false] {
            let Some(pending) = self.lane(is_read).take(now, id) else { continue };
            match result {
                Ok(answer) => {
                    if self.lane(is_read).succeeded() && is_read {
                        self.out.tell(FollowerEvent::Healthy);
                    }
                    self.answered(now, pending.sent, pending.job, answer);
                }
                Err(failure) => self.failed(now, is_read, &pending.job, failure),
            }
            return;
        }
    }

    /// Something was seen on a watch.
    pub fn on_watched(&mut self, now: Time, id: u64, watched: Watched) {
        if self.watching.watch != Some(id) {
            return;
        }
        match watched {
            Watched::Put(stored) => {
                self.watching.has_news = true;
                self.see(&stored);
            }
            // Mostly a draft or an override that has ended; it may be the head.
            Watched::Deleted => self.watching.read_at = now,
            Watched::Compacted | Watched::Ended(_) => self.watching.ended(now, self.config.nonce),
        }
    }

    /// The last call, at the end of its task: so that nobody waits for what it says.
    pub fn leave(&mut self) -> Option<Call> {
        self.presence.leave()
    }

    fn lane(&mut self, is_read: bool) -> &mut Lane {
        if is_read { &mut self.reads } else { &mut self.reports }
    }

    fn next_id(&mut self) -> u64 {
        self.out.next_id()
    }

    fn next_read(&mut self, now: Time) -> Option<(Job, Call)> {
        let keys = &self.config.keys;
        if self.watching.read_at <= now {
            self.watching.has_news = false;
            return Some((Job::Head, Call::Read { key: keys.head() }));
        }
        // Before a revision comes to be in force that is not to count alone.
        if self.overrides.is_to_be_read() {
            let call = Call::ReadRecord { prefix: keys.overrides(), after: None, limit: Overrides::MOST };
            self.overrides.is_being_read();
            return Some((Job::Overrides, call));
        }
        if let Some(Loading { target, revision, stage }) = &self.loading {
            match (stage, target) {
                (Stage::Revision, Target::Head(head)) => {
                    return Some((Job::Revision(*head), Call::Read { key: keys.revision(head.number) }));
                }
                (Stage::Blob, _) => {
                    let blob = self.document_of(revision).expect("looked for before").blob;
                    return Some((Job::Blob(blob), Call::Read { key: keys.blob(&blob) }));
                }
                (Stage::Revision | Stage::Checking { .. }, _) => {}
            }
        }
        if self.drafts.is_to_be_read() {
            let call = Call::ReadRecord { prefix: keys.drafts(), after: None, limit: drafts::MOST };
            return Some((Job::Drafts, call));
        }
        if self.presence.peers_at <= now {
            let prefix = keys.tasks_of(&self.config.node);
            return Some((Job::Peers, Call::ReadRecord { prefix, after: None, limit: presence::MOST_PEERS }));
        }
        None
    }

    fn next_report(&mut self, now: Time) -> Option<(Job, Call)> {
        let report = self.report();
        let key = self.config.keys.task(&self.config.node, self.config.nonce);
        self.presence.next_call(now, key, report)
    }

    fn report(&self) -> TaskReport {
        let mut report = self.presence.report(&self.config);
        report.in_force = self.heads.in_force().map_or(0, |head| head.number);
        report.stands = self.heads.in_force().is_some() && self.presence.standing.stands;
        report.head_seen = self.heads.seen.map_or(0, |head| head.number);
        report.refused = self.refused().cloned();
        report.drafts = self.drafts.verdicts().cloned().collect();
        report
    }

    fn answered(&mut self, now: Time, sent: Time, job: Job, answer: Answer) {
        match (job, answer) {
            (Job::Head, Answer::Read { stored, revision }) => self.on_head(now, sent, stored, revision),
            (Job::Drafts, Answer::Record { stored, .. }) => {
                self.drafts.has_read();
                stored.iter().for_each(|stored| self.see(stored));
            }
            (Job::Overrides, Answer::Record { stored, .. }) => self.on_overrides(now, &stored),
            (Job::Peers, Answer::Record { stored, .. }) => self.presence.on_peers(now, &self.config, &stored),
            (Job::Revision(head), Answer::Read { stored, .. }) => self.on_revision(head, stored),
            (Job::Blob(blob), Answer::Read { stored, .. }) => self.on_blob(blob, stored),
            (job, answer) => self.presence.on_answer(now, sent, job, &answer),
        }
    }

    fn on_head(&mut self, now: Time, sent: Time, stored: Option<Stored>, revision: u64) {
        if self.watching.has_news {
            // Which of both is the later is not known: it is read again.
            self.watching.read_at = now;
            return;
        }
        self.read_at = Some(sent);
        self.watching.was_read(now, self.config.rules.keep(FollowerRule::LookAgain));
        let id = self.next_id();
        if let Some(id) = self.watching.watch.replace(id) {
            self.out.act(FollowerAction::Unwatch { id });
        }
        let (prefix, from_revision) = (self.config.keys.head(), revision + 1);
        self.out.act(FollowerAction::Watch { id, prefix, from_revision });
        self.drafts.look();
        self.overrides.look();
        // What was damaged may have been mended.
        self.heads.forget_damage();
        match stored {
            Some(stored) => self.see(&stored),
            None => {
                if self.heads.forget_seen() {
                    self.out.tell(FollowerEvent::NoHead);
                }
            }
        }
    }

    /// A key that begins as that of the head does was put.
    fn see(&mut self, stored: &Stored) {
        let key = String::from_utf8_lossy(&stored.key);
        if key == self.config.keys.head().as_str() {
            match RevisionHead::decode(&key, &stored.value) {
                Ok(head) => self.consider(head),
                Err(fault) => {
                    let refused = RefusedRevision { number: 0, why: vec![fault.to_string()] };
                    self.note_refusal(Refusing { head: None, refused, is_damaged: true });
                }
            }
        } else if let Some(id) = self.config.keys.draft_of(&key) {
            self.drafts.add(id, &stored.value);
        } else if self.config.keys.is_override(&key) {
            self.overrides.look();
        }
    }

    fn consider(&mut self, head: RevisionHead) {
        let is_refused = self.heads.see(head);
        // What is being read of another one would be in force nowhere else, if etcd was restored.
        self.loading.take_if(|loading| loading.is_of_another(&head));
        let forward_only = self.config.rules.keep(FollowerRule::ForwardOnly);
        match self.heads.in_force() {
            Some(current) if current == head => self.heads.catch_up(),
            Some(current) if head.number == current.number => {
                let why = format!(
                    "revision {} is in force with {}, and stands at etcd with {}: its history was rewritten",
                    head.number, current.digest, head.digest
                );
                let refused = RefusedRevision { number: head.number, why: vec![why] };
                self.note_refusal(Refusing { head: Some(head), refused, is_damaged: false });
            }
            Some(current) if head.number < current.number && forward_only => {
                if self.heads.fall_behind(head) {
                    let (found, in_force) = (head.number, current.number);
                    self.out.tell(FollowerEvent::Behind { found, in_force });
                }
            }
            _ if is_refused => {}
            _ => self.load(head),
        }
    }

    fn failed(&mut self, now: Time, is_read: bool, job: &Job, failure: Failure) {
        let nonce = self.config.nonce;
        self.lane(is_read).failed(now, nonce);
        self.presence.failed(job, &failure);
        if *job == Job::Overrides {
            self.overrides.look();
        }
        if is_read && self.reads.note_failure() {
            self.out.tell(FollowerEvent::Faulty(failure));
        }
    }
}
