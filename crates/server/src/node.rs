//! A node: the doors through which reports come in and grants go out, and the resources behind them by name.
//!
//! Every call takes `now`, sampled once after the request was read, and changes nothing but the node. All of a request is
//! checked before any of it counts: on a stream it is taken whole or refused whole, and elsewhere without the resources that
//! are at fault.

mod admission;
mod books;
mod counters;
mod current_call;
mod domains;
mod doubt;
mod ends;
mod explain;
mod floors;
mod heartbeats;
mod holder_streams;
mod jobs;
mod line;
mod looks;
mod marks;
mod names;
mod orders;
mod overriding;
mod parent;
mod plan;
mod recalls;
mod resources;
mod resuming;
mod scan;
mod seizures;
mod status;
mod stream;
mod tenure;
mod terms;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use lessor_proto::message::{Answer, Ask, Grant, HolderKind, Refusal, Release, Report, WallClock};
use lessor_proto::{Epoch, ResourceId, Time};

pub use crate::config::{Claims, NodeConfig, ParentConfig};
use crate::date::Date;
pub use crate::marks::MarkWrite;
use crate::marks::{Marks, Need};
use crate::measured::Measured;
use crate::mutation::Rule;
use crate::overrides::Overrides;
use crate::record::{Longest, Unknown};
use crate::repository::{Repository, Template};
pub use crate::resource::{Books, ChildBook, ClaimTally, ConnectionMark};
use crate::resource::{CallContext, Holder, Life, PROMPT, Resource, SOON};
use crate::resource::{life, shows_earlier};
pub use crate::streams::{Output, Peer, PeerTable};

use self::admission::AdmittedParts;
use self::counters::NodeCounters;
use self::current_call::CurrentCall;
use self::domains::Sharing;
pub use self::doubt::LearningTimes;
use self::doubt::told;
pub use self::explain::{
    BandLevel, BandShare, BoundWords, Division, Explanation, HolderExplanation, LeaseAbove, NotExplained,
};
use self::holder_streams::HolderStreams;
use self::names::Names;
pub use self::names::{NameWarning, NamesStatus};
use self::orders::OperatorOrders;
use self::parent::Above;
pub use self::plan::PlanScan;
pub use self::recalls::{NotRecalled, RecallStatus, RecalledLease};
use self::resources::Resources;
pub use self::scan::StatusScan;
pub use self::seizures::SeizedLease;
pub use self::status::{NodeStatus, OtherResources, ResourceRow, RowOrder, StatusQuery, Tally};
use self::tenure::Tenure;
use self::terms::{heartbeat, longest};

/// A node that leads: it grants out of what its repository says.
#[derive(Clone, Debug)]
pub struct Node {
    config: NodeConfig,
    repository: Repository,
    resources: Resources,
    tenure: Tenure,
    current_call: CurrentCall,
    parent: Option<Above>,
    /// Absent where none are kept.
    marks: Option<Marks>,
    streams: HolderStreams,
    names: Names,
    /// The domains that clients share.
    sharing: Sharing,
    orders: OperatorOrders,
    counters: NodeCounters,
}

// === impl Node ===

impl Node {
    /// A node that begins to lead at `now`.
    #[must_use]
    pub fn new(now: Time, config: NodeConfig, repository: Repository) -> Node {
        let mut marks = config.marks.then(|| Marks::new(now, &config, longest(&repository, &config)));
        if let Some(marks) = &mut marks {
            marks.set_config_version(now, repository.version());
            for (unknown, time) in told(&repository, &config) {
                marks.learn_until(now, unknown, time.map(|time| now + time));
            }
        }
        let is_copy = config.record.as_ref().is_some_and(|record| record.is_copy);
        let tally = Tally { records_distrusted: is_copy.into(), ..Tally::default() };
        Node {
            parent: Above::new(&config),
            marks,
            streams: HolderStreams::new(&config, heartbeat(&repository)),
            names: Names::new(config.name.clone()),
            sharing: Sharing::new(config.rules),
            config,
            repository,
            resources: Resources::default(),
            tenure: Tenure::new(now),
            current_call: CurrentCall::default(),
            orders: OperatorOrders::default(),
            counters: NodeCounters { tally, ..NodeCounters::default() },
        }
    }

    /// The number of this epoch.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.config.epoch
    }

    /// At `now` the wall clock of this process shows `wall`: the ends of leases are told as dates to those who poll as
    /// Doorman's clients. To be said before each request; a node that is told nothing takes its own clock for the date.
    pub fn set_date(&mut self, now: Time, wall: WallClock) {
        self.current_call.set_date(now, wall);
    }

    /// Nobody had been elected in the place of this leader at `at`, as is known at `now`; of a server that is alone, at any time.
    pub fn confirm(&mut self, now: Time, at: Time) {
        for id in self.tenure.confirm(at) {
            self.with_advanced(now, &id, |resource, _| resource.confirm(at));
        }
    }

    /// Takes the reports of one holder and answers them, those that are refused with the reason; with nothing but the number of
    /// this epoch if they are meant for another.
    ///
    /// # Errors
    /// When every resource is covered by no template or a limit is reached; then nothing of the request counts.
    pub fn ask(&mut self, now: Time, ask: &Ask) -> Result<Answer, Refusal> {
        self.ask_on(now, None, ask)
    }

    /// The same of a request that came on the connection `caller`, if that is known.
    ///
    /// # Errors
    /// As [`Node::ask`].
    pub fn ask_on(
        &mut self,
        now: Time,
        caller: Option<ConnectionMark>,
        ask: &Ask,
    ) -> Result<Answer, Refusal> {
        self.finish_ends(now, ask.kind, &ask.holder);
        self.current_call.begin(caller);
        let held_back = self.held_back(now, ask);
        if held_back.is_some() {
            self.drain_those_who_poll(now, ask);
        }
        let mut outcome = self.ask_of(now, held_back.as_ref().unwrap_or(ask));
        if let (Some(ask), Ok(answer)) = (&held_back, &mut outcome) {
            self.name_recalls(now, ask.kind, &ask.holder, answer);
        }
        self.current_call.end();
        outcome
    }

    fn ask_of(&mut self, now: Time, ask: &Ask) -> Result<Answer, Refusal> {
        if ask.target_epoch.is_some_and(|epoch| epoch != self.config.epoch) {
            // Meant for another epoch: what it promises and claims is not about ours. The holder learns which is ours.
            self.counters.tally.misdirected += 1;
            return Ok(Answer { epoch: Some(self.config.epoch), ..Answer::default() });
        }
        if let (HolderKind::Node, Some(incarnation)) = (ask.kind, ask.incarnation) {
            self.hear_of_node(now, &ask.holder, ask.line, incarnation);
        }
        let outcome = self.admit_parts(now, ask).map(|admitted| self.answer(now, ask, admitted));
        match &outcome {
            Ok(answer) => self.counters.tally.granted += answer.grants.len() as u64,
            Err(_) => self.counters.tally.refused += 1,
        }
        self.counters.tally.asks += 1;
        outcome
    }

    /// Frees what a holder has promised not to use any more. What it never had is no fault.
    pub fn release(&mut self, now: Time, release: &Release) {
        self.release_on(now, None, release);
    }

    /// The same of a release that came on the connection `caller`, if that is known.
    pub fn release_on(&mut self, now: Time, caller: Option<ConnectionMark>, release: &Release) {
        self.current_call.begin(caller);
        self.release_as(now, HolderKind::Client, None, release);
        self.current_call.end();
    }

    fn release_as(&mut self, now: Time, kind: HolderKind, line: Option<u64>, release: &Release) {
        self.counters.tally.releases += 1;
        let life = release
            .incarnation
            .map_or(Life::New, |incarnation| life(kind, line, incarnation, self.config.rules));
        let holder = Holder { kind, name: release.holder.as_str(), life };
        for id in &release.resources {
            self.with(now, id, |resource, around| resource.release(holder, release.report_id, around.cx));
        }
    }

    /// Puts another repository in force. What is out stays charged until it is given back or has ended.
    pub fn reload(&mut self, now: Time, repository: Repository) {
        self.streams.heartbeat = heartbeat(&repository);
        self.streams.peers.renew_soon();
        self.repository = repository;
        self.tell_longest(now);
        if let Some(marks) = &mut self.marks {
            marks.set_config_version(now, self.repository.version());
        }
        if let Some(marks) = &mut self.marks {
            marks.forget_earlier(now);
        }
        self.learn_as_told(now);
        for id in self.resources.names() {
            self.set_terms(now, &id);
        }
        self.counters.tally.reloads += 1;
    }

    /// Puts in force for a resource what its template says, as far as no override says another thing.
    fn set_terms(&mut self, now: Time, id: &ResourceId) {
        let (template, floor_pair) = (self.template(id), self.floor_pair(id));
        let is_frozen = self.orders.overrides.freezes(id);
        self.resources.set_floor_pair(id, floor_pair);
        self.call(id, |resource, around| {
            resource.advance(now);
            resource.set_template(template, around.cx);
            resource.set_frozen(is_frozen);
        });
        self.note_policies(now, id);
        self.follow(now, id);
    }

    /// Lets end what has ended, and forgets resources that nobody uses. Gives back when to call it again, if nothing
    /// else happens before.
    ///
    /// A node of many resources is held up for that: whoever serves others meanwhile calls [`Node::advance_part`].
    pub fn advance(&mut self, now: Time) -> Option<Time> {
        self.advance_part(now, None, usize::MAX);
        let deadlines = self
            .resources
            .iter()
            .map(|(_, resource)| resource.next_deadline().unwrap_or(resource.idle_from()));
        deadlines.chain(self.orders.next_end()).min()
    }

    /// The same of no more than `most` resources, those that come after one; of the first without one. Gives back the last of them,
    /// if there are more.
    pub fn advance_part(&mut self, now: Time, after: Option<&ResourceId>, most: usize) -> Option<ResourceId> {
        if after.is_none() {
            self.forget_names(now);
            self.end_recalls(now);
            self.end_overrides(now);
            self.end_seizures(now);
        }
        let (mut idle, mut moved) = (Vec::new(), Vec::new());
        let last = self.resources.pass(after, most, |id, resource| {
            let before = resource.ledger().total();
            resource.advance(now);
            resource.look_at_pressure(now);
            if resource.ledger().total() != before {
                moved.push(id.clone());
                if let Some(marks) = &mut self.marks {
                    let epoch = parent::epoch_above(&self.parent, id);
                    marks.note(now, id, Need { epoch, ..resource.need() });
                }
            }
            if resource.is_idle(now) {
                idle.push(id.clone());
            }
        });
        moved.iter().for_each(|id| self.couple(now, id));
        let mut is_shorter = false;
        for id in idle {
            is_shorter |= self.forget_resource(now, &id);
        }
        if is_shorter {
            self.tell_longest(now);
        }
        last
    }

    /// Forgets a resource that nobody uses. Returns whether no template covered it.
    fn forget_resource(&mut self, now: Time, id: &ResourceId) -> bool {
        self.leave_above(now, id);
        self.streams.jobs.remove(id);
        // What was out from before is over, perhaps sooner than the record says.
        if let Some(record) = &mut self.config.record {
            record.marks.remove(id);
        }
        let Some(resource) = self.resources.remove(id) else { return false };
        self.note_policies(now, id);
        resource.template().is_none()
    }

    /// All that was measured since this was last asked.
    pub fn take_measured(&mut self) -> Vec<Measured> {
        self.counters.measured.take()
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &NodeConfig {
        &self.config
    }

    /// The repository in force.
    #[must_use]
    pub fn repository(&self) -> &Repository {
        &self.repository
    }

    /// The version of a configuration that was in force under this leader or one before it and is later than the one that is
    /// now, if there is such a one: then nothing is granted, as that may have been a cut.
    #[must_use]
    pub fn later_config(&self) -> Option<u64> {
        self.marks.as_ref().and_then(Marks::later_config)
    }

    /// Answers what was admitted of a request.
    fn answer(&mut self, now: Time, ask: &Ask, admitted: AdmittedParts) -> Answer {
        self.current_call.pass();
        let AdmittedParts { room, refused } = admitted;
        let mut left_out = refused.iter().map(|refused| refused.index).peekable();
        let mut grants = Vec::with_capacity(ask.reports.len());
        let mut retry: Option<Duration> = None;
        let opens = self.opens();
        for (index, report) in ask.reports.iter().enumerate() {
            if left_out.next_if_eq(&index).is_some() {
                continue;
            }
            if self.shows_a_gap(ask, report) {
                self.distrust_record(now);
            }
            if now < opens && self.waits_to_claim(ask, report) {
                retry = retry.into_iter().chain([opens.since(now).max(PROMPT)]).min();
                continue;
            }
            if room.resources > 0 {
                self.open(now, &report.resource);
            }
            let again = self.answer_one(now, ask, report, &mut grants);
            retry = again.map_or(retry, |again| Some(retry.map_or(again, |retry| retry.min(again))));
        }
        let notice = (ask.kind == HolderKind::Node).then(|| self.names.notice(&ask.holder));
        drop(left_out);
        Answer { grants, redirect: None, epoch: Some(self.config.epoch), retry, notice, refused }
    }

    /// Answers one report that was admitted: adds a grant to `grants` if there is something to grant from, and returns when
    /// to ask again if that is before its time.
    fn answer_one(
        &mut self,
        now: Time,
        ask: &Ask,
        report: &Report,
        grants: &mut Vec<Grant>,
    ) -> Option<Duration> {
        let (date, is_outdated) = (self.current_call.date(), self.later_config().is_some());
        let answered = self.with_asked(now, &report.resource, |resource, around| {
            let cx = CallContext { date, ..around.cx };
            if resource.waits_to_learn(now, ask, report, cx).is_some()
                || resource.waits_for_room(now, ask, report, cx)
            {
                let reply = resource.hold_over(now, ask, report, cx)?;
                grants.push(reply.grant);
                return Some(Some(PROMPT));
            }
            Some(match resource.report(now, ask, report, cx) {
                Some(reply) => {
                    grants.push(reply.grant);
                    reply.retry
                }
                // The first write is on its way.
                None if cx.longest.lease.is_zero() && !is_outdated => Some(PROMPT),
                None => Some(SOON),
            })
        });
        // What it waits for takes no longer than a write.
        answered.unwrap_or(Some(PROMPT))
    }

    /// Opens the books of a resource that was admitted, if it has none.
    fn open(&mut self, now: Time, id: &ResourceId) {
        if self.resources.contains(id) {
            return;
        }
        let template = self.template(id).expect("admitted, so a template covers it");
        let cx = call_context(&self.config, &self.marks, &self.tenure, &self.current_call);
        let mut resource = Resource::new(now, id.clone(), template, cx);
        let kind = resource.counted();
        resource.set_frozen(self.orders.overrides.freezes(id));
        resource.set_ceiling(self.marks.as_ref().map(|marks| marks.ceiling(id, kind)));
        let floor_pair = self.floor_pair(id);
        self.resources.insert(id.clone(), resource, floor_pair);
        self.note_policies(now, id);
        self.couple(now, id);
    }

    /// Whether a report shows something that could be claimed when claims open.
    fn waits_to_claim(&self, ask: &Ask, report: &Report) -> bool {
        shows_earlier(report, self.config.epoch) && ask.incarnation.is_some()
    }

    fn template(&self, id: &ResourceId) -> Option<Arc<Template>> {
        covering(&self.repository, &self.orders.overrides, &self.config, id)
    }
}

fn call_context<'a>(
    config: &'a NodeConfig,
    marks: &Option<Marks>,
    tenure: &Tenure,
    current_call: &CurrentCall,
) -> CallContext<'a> {
    let unlimited = Longest { lease: Duration::MAX, safe_lease: Duration::MAX };
    let longest = marks.as_ref().map_or(unlimited, Marks::longest);
    let learnt_longest = marks.as_ref().map_or(unlimited, Marks::learnt_longest);
    let says_unknown = marks.as_ref().map_or(Unknown::All, Marks::says_unknown);
    let (since, led) = (tenure.since(), tenure.confirmed());
    let (session, caller) = (current_call.session(), current_call.caller());
    let date = Date::default();
    CallContext { config, since, led, longest, says_unknown, learnt_longest, session, caller, date }
}

/// The template that covers a resource: one of the repository's or, by Doorman's rule where that is switched on, the one
/// for names that it does not know. While overrides are in force it says what those say.
fn covering(
    repository: &Repository,
    overrides: &Overrides,
    config: &NodeConfig,
    id: &ResourceId,
) -> Option<Arc<Template>> {
    let is_derived = || repository.is_of_domain(id) || repository.is_named_as_companion(id);
    let unknown = || config.unknown_names.as_ref().filter(|_| !is_derived());
    let found = repository.find_under(id, overrides);
    let found = found.or_else(|| unknown().map(|template| overrides.applied(id, template)));
    if config.rules.keep(Rule::SecondIsOwn) || !repository.is_companion(id) {
        return found;
    }
    let capacity = covering(repository, overrides, config, &id.accompanied()?)?.capacity;
    found.map(|template| Arc::new(Template { capacity, ..(*template).clone() }))
}
