//! The service of an admin port: a call from its request to its answer, and to its record.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::response::Response;
use futures_util::FutureExt;
use lessor_client::internals::clock;
use serde_json::Value;
use tokio::sync::Semaphore;
use tracing::{error, warn};

use super::act::{Act, NoAct};
use super::acts::{Acts, Rooms};
use super::audit::{AuditEntry, AuditLog};
use super::call::AdminCall;
use super::foreign_pages;
use super::levers::Levers;
use super::operator::Operator;
use super::problem::{self, ActProblem};
use super::strangers::{self, LeftOut, Strangers};
use crate::shell::admin_calls::{ActName, ActOutcome};
use crate::shell::caller::Caller;

/// The service of an admin port.
pub(super) struct AdminService {
    acts: Acts,
    audit: Arc<AuditLog>,
    /// Places of calls: they outlive the connections that they came by.
    calls: Arc<Semaphore>,
    strangers: Strangers,
}

// === impl AdminService ===

impl AdminService {
    /// The service that does acts in these rooms, so many at a time, and writes them down in that log.
    pub(super) fn new(
        rooms: Rooms,
        levers: Arc<dyn Levers>,
        audit: Arc<AuditLog>,
        places: usize,
    ) -> AdminService {
        let calls = Arc::new(Semaphore::new(places));
        AdminService { acts: Acts::new(rooms, levers), audit, calls, strangers: Strangers::default() }
    }

    /// Its pages.
    pub(super) fn router(self) -> Router {
        Router::new().fallback(answer).with_state(Arc::new(self))
    }

    async fn answer(&self, request: Request) -> Response {
        let (head, body) = request.into_parts();
        let caller = head.extensions.get::<Caller>().cloned().unwrap_or_else(Caller::unknown);
        let act = Act::of(&head);
        let (visit, refused) = match self.acts.rooms.gate.visit(&head.headers, &head.extensions) {
            Ok(visit) => (visit, None),
            Err(refusal) => (None, Some(ActProblem::refused(&refusal))),
        };
        let refused = refused.or_else(|| foreign_pages::check_host(&head, &caller).err());
        let operator = Operator { caller, visit };
        let name = act.as_ref().map_or_else(|none| none.name, |act| act.name());
        let mut entry = AuditEntry::new(self.audit.number(), &operator, name);
        let outcome = match (refused, act) {
            (Some(refused), _) => Err(refused),
            (None, Err(NoAct { problem, said, .. })) => {
                entry.arguments = said;
                Err(problem)
            }
            (None, Ok(act)) => {
                let acted = self.admit_and_act(act, &head, body, &operator, &mut entry);
                // Whatever goes wrong: what was begun has an outcome.
                AssertUnwindSafe(acted).catch_unwind().await.unwrap_or_else(|_| Err(panicked()))
            }
        };
        self.finish(&operator, entry, outcome).await
    }

    /// Looks whether whoever calls may, writes that down, and does it.
    async fn admit_and_act(
        &self,
        act: Act,
        head: &Parts,
        body: Body,
        operator: &Operator,
        entry: &mut AuditEntry,
    ) -> Result<Value, ActProblem> {
        foreign_pages::check_origin(head, act)?;
        // Of what is about a resource it is known only then which; nobody else is kept waiting for a body.
        if !act.is_about_resource() {
            operator.may(act.role(), None)?;
        }
        let call = match AdminCall::read(act, head, body).await {
            Ok(call) => call,
            Err(fault) => {
                // Who may not at all is not told what is wrong with what it says.
                operator.may(act.role(), None)?;
                return Err(fault);
            }
        };
        entry.arguments = call.said;
        operator.may(act.role(), call.order.resource())?;
        if act.changes_something() {
            self.record(entry.line("begun", None)).await?;
            entry.has_begun = true;
        }
        self.acts.perform(&call.order, operator).await
    }

    /// Writes down what came of a call, and answers it.
    async fn finish(
        &self,
        operator: &Operator,
        mut entry: AuditEntry,
        outcome: Result<Value, ActProblem>,
    ) -> Response {
        let counted = match &outcome {
            Ok(_) => ActOutcome::Done,
            Err(problem) if matches!(problem.status, 401 | 403) => ActOutcome::Refused,
            Err(_) => ActOutcome::Failed,
        };
        if !entry.has_begun && (counted == ActOutcome::Refused || operator.is_stranger()) {
            match self.strangers.take(operator.identity(), clock::now()) {
                Ok(left_out) => entry.left_out = left_out,
                Err(left_out) => return self.leave_out(operator, entry.act, left_out).into(),
            }
        }
        self.acts.rooms.driver.traffic().admin_calls.add(entry.act, counted);
        let line = entry.line(counted.as_str(), outcome.as_ref().err());
        if let Err(mut unrecorded) = self.record(line).await {
            if outcome.is_ok() && entry.has_begun {
                unrecorded.detail =
                    format!("the act is done, and what came of it is not recorded: {}", unrecorded.detail);
            }
            return unrecorded.into();
        }
        match outcome {
            Ok(value) => problem::json(200, "application/json", &value),
            Err(problem) => problem.into(),
        }
    }

    /// Counts a call that is not written down.
    fn leave_out(&self, operator: &Operator, act: ActName, LeftOut { is_first }: LeftOut) -> ActProblem {
        self.acts.rooms.driver.traffic().admin_calls.add(act, ActOutcome::Limited);
        let identity = operator.identity();
        if is_first {
            warn!(identity, "too many calls that come to nothing: they are counted, and in no audit log");
        }
        let most = strangers::PER_SECOND;
        ActProblem::new(
            429,
            format!("{identity:?} may not, and calls too often; wanted {most} call a second"),
        )
    }

    /// Writes a line of the audit log.
    async fn record(&self, line: String) -> Result<(), ActProblem> {
        match self.audit.write(line).await {
            Ok(()) => Ok(()),
            Err(fault) => {
                error!(%fault, "the audit log cannot be written: no act is done without its record");
                let detail =
                    format!("no act is done without its record, and that cannot be written: {fault}");
                Err(ActProblem::new(503, detail))
            }
        }
    }
}

/// Answers one call. It goes on to its end, and to its record, when whoever called does not wait for it.
async fn answer(State(service): State<Arc<AdminService>>, request: Request) -> Response {
    let place = Arc::clone(&service.calls).acquire_owned().await.expect("nobody closes it");
    let call = async move {
        let _place = place;
        service.answer(request).await
    };
    match tokio::spawn(call).await {
        Ok(response) => response,
        Err(_) => panicked().into(),
    }
}

/// The problem of an act that panicked, which has said so itself.
fn panicked() -> ActProblem {
    ActProblem::new(500, "the act has failed in a way that it must not; the log has more")
}
