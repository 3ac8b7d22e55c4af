//! A client: session, lease and domains, on a clock of its own.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use lessor_client::internals::domain::{Domains, Lender, Scope, UNREACHABLE_AFTER};
use lessor_client::internals::holding::HoldingConfig;
use lessor_client::internals::limiter::Limiter;
use lessor_client::internals::session::{Action, Event, Session, SessionConfig};
use lessor_client::internals::sublessee::Sublessee;
use lessor_client::{Decision, DomainOptions, Ground, Kind, Transport};
use lessor_proto::{ClientId, Incarnation, Time};

use super::{DOMAIN, resource};
use crate::rng::Rng;

/// The interval at which it looks at what its domains want of leases of their own.
const LOOK: Duration = Duration::from_secs(1);

/// A client.
#[derive(Debug)]
pub(super) struct TenantsClient {
    session: Session,
    domains: Domains,
    lease: Limiter,
    sublessee: Sublessee,
    /// When it looks at what is wanted, by its clock; only where domains have leases.
    next_look: Time,
    /// By how much its clock is ahead.
    ahead: Duration,
    /// Requests that wait for an answer of the server: which question, and when it was asked by its clock.
    questions: VecDeque<(u64, Time)>,
    /// When it is looked at next, really.
    pub(super) due: Option<Time>,
}

/// The outcome of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum HitOutcome {
    Granted(TenantHit),
    Refused,
    /// The server is asked first.
    Open,
}

/// A hit that was granted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TenantHit {
    /// In which tier; 0 if in whichever is the current one.
    pub(super) tier: usize,
    /// The tier began its active time with it.
    pub(super) is_entered: bool,
    /// It was granted as nobody was heard.
    pub(super) is_unheard: bool,
}

// === impl TenantsClient ===

impl TenantsClient {
    pub(super) fn new(number: usize, transport: Transport, rng: &mut Rng) -> TenantsClient {
        let name = ClientId::new(format!("web-{number}"), 256).expect("a name");
        let config = SessionConfig::new(name, Incarnation(rng.number()), vec![Arc::from("root:1")]);
        let mut session = Session::new(SessionConfig { transport, ..config });
        let ahead = rng.time(Duration::from_secs(1), Duration::from_secs(1_000_000));
        let wants = HoldingConfig::new(Kind::Rate, 1_000.0, 0);
        session.add(Time::ZERO + ahead, resource(), wants);
        TenantsClient {
            session,
            domains: Domains::new(DomainOptions::default())
                .with_lender(Lender { resource: resource(), notifier: Waker::noop().clone() }),
            lease: Limiter::new(Duration::from_secs(1)),
            sublessee: Sublessee::default(),
            next_look: Time::ZERO,
            ahead,
            questions: VecDeque::new(),
            due: None,
        }
    }

    /// A request for a hit.
    pub(super) fn request(&mut self, now: Time, confirms: bool) -> HitOutcome {
        let local = now + self.ahead;
        let decision = self.domains.request(&self.lease, DOMAIN, 1, 1, local);
        if confirms
            && decision.is_doubtful()
            && let Some(question) = self.domains.ask()
        {
            self.questions.push_back((question, local));
            return HitOutcome::Open;
        }
        outcome(&decision)
    }

    /// Returns the outcomes of requests whose questions were answered, or are not going to be.
    pub(super) fn settle(&mut self, now: Time) -> Vec<HitOutcome> {
        let local = now + self.ahead;
        let mut outcomes = Vec::new();
        while let Some(&(question, asked)) = self.questions.front()
            && (self.domains.is_acked(question) || local > asked + UNREACHABLE_AFTER)
        {
            self.questions.pop_front();
            let decision = self.domains.request(&self.lease, DOMAIN, 1, 1, local);
            outcomes.push(outcome(&decision));
        }
        outcomes
    }

    /// The next thing to be done outside.
    pub(super) fn poll(&mut self, now: Time) -> Option<Action> {
        let local = now + self.ahead;
        self.tell(local);
        self.look(local);
        while let Some(action) = self.session.poll(local) {
            match action {
                Action::Change(change) if self.sublessee.apply(local, &change) => {}
                Action::Change(change) => {
                    self.domains.follow(change.domains);
                    self.lease.allow(local, change.allowance);
                    self.tell(local);
                }
                Action::News(news) => self.domains.on_update(local, &news),
                action => return Some(action),
            }
        }
        None
    }

    /// When to look again, really.
    pub(super) fn next_deadline(&mut self, now: Time) -> Time {
        self.domains.take_earlier();
        let tell = self.domains.next_deadline().unwrap_or(Time::MAX);
        let late = self
            .questions
            .front()
            .map_or(Time::MAX, |&(_, asked)| asked + UNREACHABLE_AFTER + Duration::from_nanos(1));
        let look = if self.domains.scope() == Scope::Strict { self.next_look } else { Time::MAX };
        let local = self.session.next_deadline().min(tell).min(late).min(look);
        let ahead = local.since(now + self.ahead);
        if local == Time::MAX { Time::MAX } else { now + ahead }
    }

    /// Something has come from the server.
    pub(super) fn take(&mut self, now: Time, event: Event) {
        self.session.handle(now + self.ahead, event);
    }

    /// Asks for the leases that domains are to have, as much as they want of them.
    fn look(&mut self, local: Time) {
        if self.domains.scope() != Scope::Strict {
            return;
        }
        let subleases = self.domains.subleases();
        self.sublessee.hear(local, (&resource(), 0), subleases, |_| false, &mut self.session);
        if local >= self.next_look {
            self.next_look = local + LOOK;
            subleases.retire(local);
            self.sublessee.observe(local, &mut self.session);
        }
    }

    fn tell(&mut self, local: Time) {
        if self.domains.scope() != Scope::Shared {
            return;
        }
        let resource = resource();
        self.domains.attend(self.session.stream_of(&resource));
        if self.domains.next_deadline().is_some_and(|at| at <= local)
            && let Some(report) = self.domains.next_message(local, &resource)
        {
            self.session.tell(report);
        }
    }
}

fn outcome(decision: &Decision) -> HitOutcome {
    if !decision.is_granted() {
        return HitOutcome::Refused;
    }
    let is_unheard = decision.ground == Ground::Unheard;
    HitOutcome::Granted(TenantHit {
        tier: decision.tier,
        is_entered: decision.burst && !is_unheard,
        is_unheard,
    })
}
