//! A session, by which a holder keeps its leases: which resources, from which server, when to report, to refresh and to
//! back off.
//!
//! A session is a value without clock, network or dice. Whoever drives it reads the clock once, hands in what happened
//! ([`Session::handle`]) and then takes actions out of [`Session::poll`] until there are none,
//! and comes back at [`Session::next_deadline`] at the latest. A node is a client of its parent and uses the same session.
//!
//! It speaks over a stream, of each resource when there is something to say of it; or it polls, where a server has no
//! streams. Then at most one request is in flight, and it speaks of every resource that is due, and of those that soon
//! will be. The leases are the same, and outlast the way in which they came.
//!
//! A lease is counted from the `now` handed to the `poll` that returned the report, so that sample must be taken before
//! the report is given to the network.

mod action;
mod asking;
mod changes;
mod config;
mod entries;
mod entry;
mod event;
mod exchange;
mod floors;
mod jobs;
mod line;
mod marks;
mod pushed;
mod releasing;
mod reporting;
mod route;
mod sent;
mod spacing;
mod spread;
mod stream;
mod telling;
#[cfg(test)]
mod tests;
mod units;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use lessor_proto::message::{Bands, BoundBy, HolderKind, Order, Unenforced};
use lessor_proto::{Amount, Epoch, ResourceId, Time};

use crate::allowance::Allowance;
use crate::domain::Policies;
pub(crate) use crate::fault::{Failure, Fault};
use crate::holding::{HoldingConfig, Inheritance, Proof, Rung};
use crate::mutation::HolderRule;
pub use action::{Action, Change, SessionCounts};
pub use config::SessionConfig;
pub(crate) use config::Transport;
use entries::Entries;
use entry::{Entry, Stage};
pub use event::Event;
use exchange::{Exchange, ExchangeKind};
pub use jobs::JobEvent;
use line::Streams;
use marks::Mark;
use route::Route;
use sent::SentRequests;
use spread::Spread;

/// The leases of one holder.
#[derive(Clone, Debug)]
pub struct Session {
    config: SessionConfig,
    spread: Spread,
    route: Route,
    entries: Entries,
    /// The exchange that is polled for.
    in_flight: Option<Exchange>,
    streams: Streams,
    sent: SentRequests,
    /// The highest epoch heard of: nothing of an earlier one is adopted any more.
    fence: Option<Epoch>,
    changes: VecDeque<Change>,
    /// A request that waits for the program to hear the changes it promises.
    outbox: Option<Box<Action>>,
    counts: SessionCounts,
}

// === impl Session ===

impl Session {
    /// A session without resources.
    ///
    /// # Panics
    /// When `config` names no server, or a batch of no resources.
    #[must_use]
    pub fn new(mut config: SessionConfig) -> Session {
        assert!(config.batch > 0, "a request speaks of at least one resource");
        let spread = Spread::new(&config.holder, config.incarnation);
        Session {
            route: Route::new(std::mem::take(&mut config.servers), spread),
            spread,
            streams: Streams::new(config.transport),
            config,
            entries: Entries::default(),
            in_flight: None,
            sent: SentRequests::default(),
            fence: None,
            changes: VecDeque::new(),
            outbox: None,
            counts: SessionCounts::default(),
        }
    }

    /// Asks for `resource` from here on. A resource that is there already gets the configuration and keeps its lease.
    pub fn add(&mut self, now: Time, resource: ResourceId, config: HoldingConfig) {
        match self.find(&resource) {
            None => _ = self.entries.insert(Entry::new(now, resource, config)),
            Some(place) => self.edit(now, place, |entry| {
                entry.is_floor = false;
                match &mut entry.stage {
                    Stage::Open => entry.holding.reconfigure(config),
                    Stage::Leaving { again, .. } => *again = Some(Box::new(config)),
                }
            }),
        }
    }

    /// Takes over what another leader of this node has held of `resource`, which was added and not granted yet.
    /// Nothing is adopted any more that was granted before that.
    pub fn inherit(&mut self, resource: &ResourceId, inheritance: Inheritance) {
        if let Some(place) = self.find(resource) {
            self.fence = self.fence.max(Some(inheritance.proof.order.epoch));
            self.entries.edit(place).holding.inherit(inheritance);
        }
    }

    /// The proof of the last lease of `resource`, if it had one.
    #[must_use]
    pub fn proof(&self, resource: &ResourceId) -> Option<Proof> {
        self.find(resource).and_then(|place| self.entries[place].holding.proof())
    }

    /// The number of the grant that the last lease of `resource` came with, if it had one.
    #[must_use]
    pub fn lease_order(&self, resource: &ResourceId) -> Option<Order> {
        self.entries[self.find(resource)?].holding.order()
    }

    /// The amount of `resource` that may be in use under leaders of this node before the one that asks, and the
    /// time until which it may be, by what the node above has charged for it; nothing if it did not say so.
    #[must_use]
    pub fn before(&self, resource: &ResourceId) -> Option<(Amount, Time)> {
        self.find(resource).and_then(|place| self.entries[place].before())
    }

    /// When all is over, by our clock, that leaders of this node before this one had of a resource, and granted under that;
    /// absent: the node above has not said so.
    #[must_use]
    pub fn earlier(&self, resource: &ResourceId) -> Option<Time> {
        self.find(resource).and_then(|place| self.entries[place].earlier())
    }

    /// Whether whoever granted the lease of `resource` said that it counts more than that for it.
    #[must_use]
    pub fn is_recalled(&self, resource: &ResourceId) -> bool {
        self.find(resource).is_some_and(|place| self.entries[place].holding.is_ack_wanted())
    }

    /// Uses nothing of `resource` from here on; a release goes out if a server may count something.
    pub fn remove(&mut self, now: Time, resource: &ResourceId) {
        self.streams.forget_jobs(Some(resource));
        if let Some(place) = self.find(resource)
            && !self.entries.edit(place).leave(now)
        {
            self.entries.remove(place);
        }
        self.settle(now);
    }

    /// Removes every resource. The session is over when [`Session::is_empty`].
    pub fn remove_all(&mut self, now: Time) {
        self.streams.forget_jobs(None);
        self.entries.retain(|entry| entry.leave(now));
        self.settle(now);
    }

    /// Whether there is no resource, no release to be sent or answered, and no stream to be closed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.streams.is_down()
    }

    /// Sets the wants from here on, in units (a second); NaN and negative numbers are taken for 0.
    pub fn set_wants(&mut self, now: Time, resource: &ResourceId, wants: f64) {
        self.update(now, resource, |entry| entry.config().set_wants(wants));
    }

    /// The least lease that would have let through what was attempted last, in units a second: a claim on what nobody
    /// wants. With it, what is held beyond the wants is kept until the grantor recalls it; absent, nothing is lent.
    pub fn set_peak(&mut self, now: Time, resource: &ResourceId, peak: Option<f64>) {
        self.update(now, resource, |entry| entry.holding.set_peak(peak));
    }

    /// The demands of a node from here on: at least one band, checked by the caller.
    pub fn set_bands(&mut self, now: Time, resource: &ResourceId, bands: Bands) {
        self.update(now, resource, |entry| entry.config().bands = bands);
    }

    /// Sets the amount that cannot be given up at this moment: units of a gauge in use, what a node has handed out.
    ///
    /// A client says it now and then, and each time after it has put a [`Change`] into force, before it polls
    /// again: a promise is made of what was in use after the limit was lowered. Until it has said so, all that was
    /// allowed before is taken to be in use.
    pub fn set_in_use(&mut self, now: Time, resource: &ResourceId, in_use: Amount) {
        if self.keeps_use() {
            self.update(now, resource, |entry| entry.holding.set_in_use(in_use));
        }
    }

    /// The units of `resource` that were asked for so far while everything was let pass; if they are fewer than before, whoever
    /// counts them has begun anew. They go up with whatever is said of the resource next, with a heartbeat at the latest.
    pub fn set_unenforced(&mut self, resource: &ResourceId, counted: Unenforced) {
        if let Some(place) = self.find(resource)
            && !self.entries[place].holding.has_counted(counted)
        {
            self.entries.edit(place).holding.count_units(counted);
        }
    }

    /// Sets both of one resource: the amount that cannot be given up, and then the demands.
    pub(crate) fn set_use(&mut self, now: Time, resource: &ResourceId, in_use: Amount, bands: Bands) {
        let Some(place) = self.find(resource) else { return };
        let (spacing, keeps_use) = (self.spacing(now), self.keeps_use());
        let mut entry = self.entries.edit(place);
        if keeps_use {
            entry.holding.set_in_use(in_use);
            spacing.expedite(now, &mut entry);
        }
        entry.config().bands = bands;
        spacing.expedite(now, &mut entry);
    }

    /// Whether what is in use counts as held: not if the rule is taken out.
    fn keeps_use(&self) -> bool {
        let rule = match self.config.kind {
            HolderKind::Client => HolderRule::UnitsHeld,
            HolderKind::Node => HolderRule::OutIsHeld,
        };
        self.config.rules.keep(rule)
    }

    /// Whether what is used in a window is kept by whoever leaves: not if the rule is taken out.
    pub(crate) fn keeps_uses(&self) -> bool {
        self.config.rules.keep(HolderRule::UsesLeft)
    }

    /// The allowance of `resource`, with its floor; nothing if it is not there.
    #[must_use]
    pub fn allowance(&self, now: Time, resource: &ResourceId) -> Allowance {
        self.find(resource).map_or(Allowance::NOTHING, |place| self.standing(now, place).0)
    }

    /// Where the allowance of `resource` comes from.
    #[must_use]
    pub fn rung(&self, now: Time, resource: &ResourceId) -> Rung {
        self.find(resource).map_or(Rung::Waiting, |place| self.standing(now, place).1)
    }

    /// The policies of the domains of `resource`; absent: they may use all of it, or the server has not said.
    #[must_use]
    pub fn policies(&self, resource: &ResourceId) -> Option<Arc<Policies>> {
        self.find(resource).and_then(|place| self.entries[place].policies().cloned())
    }

    /// The last fault of `resource`; nothing if the last answer was good.
    #[must_use]
    pub fn fault(&self, resource: &ResourceId) -> Option<&Fault> {
        self.find(resource).and_then(|place| self.entries[place].setbacks.fault.as_ref())
    }

    /// The bound of the amount of the last lease of `resource`, if the server that granted it says so.
    #[must_use]
    pub fn bound_by(&self, resource: &ResourceId) -> Option<BoundBy> {
        self.find(resource).and_then(|place| self.entries[place].holding.bound_by())
    }

    /// The server that the next request or stream goes to.
    #[must_use]
    pub fn server(&self) -> &Arc<str> {
        self.route.target()
    }

    /// The counts of what has happened so far.
    #[must_use]
    pub fn counts(&self) -> SessionCounts {
        self.counts
    }

    /// When to poll again if nothing else happens.
    #[must_use]
    pub fn next_deadline(&self) -> Time {
        if !self.changes.is_empty() || self.outbox.is_some() || self.streams.has_news() {
            return Time::ZERO;
        }
        let work = match (self.streams.transport, self.in_flight) {
            (Transport::Stream, _) => self.stream_deadline(),
            (Transport::Poll, Some(exchange)) => exchange.deadline,
            (Transport::Poll, None) => {
                self.next_due().max(self.route.not_before()).min(self.streams.tried_again_at())
            }
        };
        work.min(self.entries.next_end())
    }

    /// The next thing to do at `now`; nothing if all is done until [`Session::next_deadline`].
    pub fn poll(&mut self, now: Time) -> Option<Action> {
        self.time_out(now);
        if now >= self.entries.next_end() {
            self.settle(now);
        }
        if let Some(change) = self.hand_out() {
            return Some(Action::Change(change));
        }
        if let Some(news) = self.streams.side.as_mut().and_then(|side| side.news.pop_front()) {
            return Some(Action::News(news));
        }
        if self.outbox.is_some() {
            return self.outbox.take().map(|request| *request);
        }
        if self.in_flight.is_none() {
            self.streams.try_again(now, self.route.target());
        }
        let request = match self.streams.transport {
            Transport::Stream => self.next_message(now),
            Transport::Poll => self.next_request(now),
        };
        // What the request gives back must not be used when it is built: the program hears of that first, and there is no
        // request yet. What else has changed by it, the program hears before it leaves.
        match self.hand_out() {
            None => request,
            Some(change) => {
                self.outbox = request.map(Box::new);
                Some(Action::Change(change))
            }
        }
    }

    /// Something came from a server. What comes too late, or from a stream that was given up, is passed over.
    pub fn handle(&mut self, now: Time, event: Event) {
        match event {
            Event::Answered { id, answer } => self.on_answer(now, id, answer),
            Event::Released { id, redirect } => self.on_released(now, id, redirect.as_ref()),
            Event::Failed { id, failure } => self.on_failure(now, id, failure),
            Event::Down { id, down } => self.on_down(now, id, down),
            Event::Unknown { id } => self.on_unknown(now, id),
            Event::Closed { id, failure } => self.on_closed(now, id, failure),
        }
    }

    /// The way in which it speaks to servers, which is polling after it has met one without streams.
    #[must_use]
    pub fn transport(&self) -> Transport {
        self.streams.transport
    }

    /// Time has passed that the clock of `now` did not show: the wall clock ran ahead of it by `lost`, as after a virtual
    /// machine was stopped. Everything held ends that much earlier.
    pub fn lose_time(&mut self, now: Time, lost: Duration) {
        self.entries.each(|entry| entry.holding.lose_time(lost));
        self.sent.lose_time(lost);
        self.streams.lose_time(lost);
        if let Some(exchange) = &mut self.in_flight {
            match exchange.sent.checked_earlier(lost) {
                Some(sent) => exchange.sent = sent,
                // An answer could not be counted from that, nor told from one that took its time.
                None => exchange.deadline = Time::ZERO,
            }
        }
        self.settle(now);
    }
}

// === what both ways of speaking share ===

impl Session {
    fn find(&self, resource: &ResourceId) -> Option<usize> {
        self.entries.find(resource)
    }

    fn next_due(&self) -> Time {
        self.next_report().min(self.entries.soonest(Mark::DueLeaving))
    }

    fn update(&mut self, now: Time, resource: &ResourceId, set: impl FnOnce(&mut Entry)) {
        if let Some(place) = self.find(resource) {
            self.edit(now, place, set);
        }
    }

    /// Changes the entry in `place`, and brings its next report forward if there is something to say.
    fn edit(&mut self, now: Time, place: usize, set: impl FnOnce(&mut Entry)) {
        let spacing = self.spacing(now);
        let mut entry = self.entries.edit(place);
        set(&mut entry);
        spacing.expedite(now, &mut entry);
    }

    /// The request to be made next, if anything is due.
    fn next_request(&mut self, now: Time) -> Option<Action> {
        if self.in_flight.is_some() || now < self.route.not_before() || now < self.next_due() {
            return None;
        }
        self.release(now).or_else(|| self.ask(now))
    }
}
