//! The admin port: what operators do to a server that runs, apart from what clients and monitors ask.
//!
//! It is a listener of its own, at an address or at a socket of the machine, with places of its own: it answers when clients have
//! taken all others, and no other port serves any of it. It speaks HTTP/1 and JSON under `/admin/`, and answers errors as
//! problem details (RFC 9457).
//!
//! A call takes one way through this: `call` says which act it asks for and with which arguments, the gate whether whoever calls
//! may, `audit` writes that down, `acts` does it, and what came of it is written down before it is answered. An act whose
//! record cannot be written is not done.

mod acts;
mod audit;
mod call;
mod fault;
mod foreign_pages;
mod levers;
mod log;
mod operator;
mod options;
mod problem;
mod socket;
mod strangers;

use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use futures_util::FutureExt;
use lessor_client::internals::clock;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc};
use tracing::{error, warn};

use self::acts::Acts;
use self::audit::{AuditEntry, AuditLog};
use self::call::{AdminCall, NoAct};
pub use self::fault::AdminFault;
pub use self::levers::{Levers, ReadFile};
use self::log::LogOverride;
use self::operator::Operator;
pub use self::options::{AdminAddress, AdminOptions};
use self::problem::ActProblem;
use self::socket::SocketFile;
use self::strangers::{LeftOut, Strangers};
use super::acceptor::Incoming;
use super::admin_calls::{ActName, ActOutcome};
use super::caller::Caller;
use super::driver::Driver;
use super::gate::Gate;
use super::standing::HandOver;
use super::tls::certificates::Certificates;

/// Places of the admin port, which no other connection takes.
pub(super) const PLACES: usize = 32;

/// An admin port that is bound, and not served yet.
#[derive(Debug)]
pub(super) struct BoundAdmin {
    pub(super) incoming: Incoming,
    /// Where it is.
    pub(super) address: AdminAddress,
    audit: Arc<AuditLog>,
    levers: Arc<dyn Levers>,
    file: Option<SocketFile>,
}

/// An admin port that is served, for as long as this is kept.
#[derive(Debug)]
pub(super) struct ServedAdmin {
    pub(super) address: AdminAddress,
    pub(super) audit: Arc<AuditLog>,
    /// Removed with the port.
    _file: Option<SocketFile>,
}

/// The rooms of a server that its admin port reaches.
pub(super) struct Rooms {
    pub(super) driver: Arc<Driver>,
    pub(super) gate: Arc<Gate>,
    pub(super) certificates: Arc<Certificates>,
    /// To the task that stands for election, if this server does.
    pub(super) resign: Option<mpsc::Sender<HandOver>>,
}

/// The admin port at work.
struct Admin {
    rooms: Rooms,
    audit: Arc<AuditLog>,
    levers: Arc<dyn Levers>,
    log: LogOverride,
    /// Places of calls: they outlive the connections that they came by.
    calls: Arc<Semaphore>,
    strangers: Strangers,
}

// === impl BoundAdmin ===

impl BoundAdmin {
    /// Binds; nothing, and that is said, where it cannot be and need not.
    ///
    /// # Errors
    /// When it cannot be, and must.
    pub(super) async fn bind(options: Option<AdminOptions>) -> Result<Option<BoundAdmin>, AdminFault> {
        let Some(options) = options else { return Ok(None) };
        let path = options.audit_log.clone();
        let audit = AuditLog::open(options.audit_log).map_err(|source| {
            let path = path.unwrap_or_default();
            AdminFault::AuditLog { path, source }
        })?;
        let bound = match &options.address {
            AdminAddress::Tcp(address) => bind_tcp(*address).await,
            AdminAddress::Unix(path) => socket::bind(path)
                .await
                .map(|(listener, file)| (Incoming::Unix(listener), options.address.clone(), Some(file))),
        };
        match bound {
            Ok((incoming, address, file)) => {
                let (audit, levers) = (Arc::new(audit), options.levers);
                Ok(Some(BoundAdmin { incoming, address, audit, levers, file }))
            }
            Err(fault) if options.is_wanted => Err(fault),
            Err(fault) => {
                warn!(%fault, "no admin port is served");
                Ok(None)
            }
        }
    }

    /// The number of its places that connections from one address may take: from this machine all.
    pub(super) fn places_per_address(&self) -> usize {
        match self.address {
            AdminAddress::Tcp(address) if !address.ip().is_loopback() => PLACES / 2,
            AdminAddress::Tcp(_) | AdminAddress::Unix(_) => PLACES,
        }
    }

    /// The listener, its pages, and what to keep for as long as they are served.
    pub(super) fn open(self, rooms: Rooms) -> (Incoming, Router, ServedAdmin) {
        let BoundAdmin { incoming, address, audit, levers, file } = self;
        let log = LogOverride::new(Arc::clone(&levers));
        let (calls, strangers) = (Arc::new(Semaphore::new(PLACES)), Strangers::default());
        let admin = Arc::new(Admin { rooms, audit: Arc::clone(&audit), levers, log, calls, strangers });
        let router = Router::new().fallback(answer).with_state(admin);
        (incoming, router, ServedAdmin { address, audit, _file: file })
    }
}

async fn bind_tcp(address: SocketAddr) -> Result<(Incoming, AdminAddress, Option<SocketFile>), AdminFault> {
    let bound = async {
        let listener = TcpListener::bind(address).await?;
        let local = listener.local_addr()?;
        Ok((Incoming::Tcp(listener), AdminAddress::Tcp(local), None))
    };
    bound.await.map_err(|source| AdminFault::Listen { address: AdminAddress::Tcp(address), source })
}

/// Answers one call. It goes on to its end, and to its record, when whoever called does not wait for it.
async fn answer(State(admin): State<Arc<Admin>>, request: Request) -> Response {
    let place = Arc::clone(&admin.calls).acquire_owned().await.expect("nobody closes it");
    let call = async move {
        let _place = place;
        admin.answer(request).await
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

// === impl Admin ===

impl Admin {
    async fn answer(self: Arc<Admin>, request: Request) -> Response {
        let (head, body) = request.into_parts();
        let caller = head.extensions.get::<Caller>().cloned().unwrap_or_else(Caller::unknown);
        let act = AdminCall::named(&head);
        let visit = self.rooms.gate.visit(&head.headers, &head.extensions);
        let (visit, refused) = match visit {
            Ok(visit) => (visit, None),
            Err(refusal) => (None, Some(ActProblem::refused(&refusal))),
        };
        let refused = refused.or_else(|| foreign_pages::check_host(&head, &caller).err());
        let operator = Operator { caller, visit };
        let mut entry = AuditEntry::new(self.audit.number(), &operator);
        let outcome = match (act, refused) {
            (Err(NoAct { problem, act, said }), None) => {
                (entry.act, entry.arguments) = (act, said);
                Err(problem)
            }
            (act, Some(refused)) => {
                entry.act = act.map_or_else(|none| none.act, call::Act::name);
                Err(refused)
            }
            (Ok(act), None) => {
                (entry.act, entry.changes_something) = (act.name(), act.changes_something());
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
        act: call::Act,
        head: &axum::http::request::Parts,
        body: axum::body::Body,
        operator: &Operator,
        entry: &mut AuditEntry,
    ) -> Result<serde_json::Value, ActProblem> {
        foreign_pages::check_origin(head)?;
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
        entry.arguments = call.said.clone();
        operator.may(act.role(), call.resource.as_ref())?;
        if act.changes_something() {
            let begun = entry.line("begun", None);
            self.record(begun).await?;
            entry.has_begun = true;
        }
        Acts(self).perform(&call, operator).await
    }

    /// Writes down what came of a call, and answers it.
    async fn finish(
        &self,
        operator: &Operator,
        mut entry: AuditEntry,
        outcome: Result<serde_json::Value, ActProblem>,
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
        self.rooms.driver.traffic().admin_calls.add(entry.act, counted);
        let line = entry.line(counted.as_str(), outcome.as_ref().err());
        if let Err(mut unrecorded) = self.record(line).await {
            if outcome.is_ok() && entry.changes_something {
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
        self.rooms.driver.traffic().admin_calls.add(act, ActOutcome::Limited);
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
