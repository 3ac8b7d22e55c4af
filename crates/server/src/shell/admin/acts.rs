//! The acts of the admin port, each done and answered.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use lessor_client::internals::clock;
use lessor_proto::message::HolderKind;
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};

use super::call::{AdminOrder, RecallTarget};
use super::levers::{Levers, ReadFile};
use super::log::LogOverride;
use super::operator::Operator;
use super::problem::ActProblem;
use crate::access::{Access, Role, Stance, Why};
use crate::node::{NotRecalled, RecallStatus, RecalledLease};
use crate::shell::connections::OpenConnection;
use crate::shell::driver::Driver;
use crate::shell::etcd::RevisionStore;
use crate::shell::gate::Gate;
use crate::shell::measure::Label;
use crate::shell::port_name::Port;
use crate::shell::standing::HandOver;
use crate::shell::tls::certificates::Certificates;

/// The acts of an admin port, and what they act on.
pub(super) struct Acts {
    pub(super) rooms: Rooms,
    levers: Arc<dyn Levers>,
    log: LogOverride,
}

/// The rooms of a server that its admin port reaches.
pub(in crate::shell) struct Rooms {
    pub(in crate::shell) driver: Arc<Driver>,
    pub(in crate::shell) gate: Arc<Gate>,
    pub(in crate::shell) certificates: Arc<Certificates>,
    /// To the task that stands for election, if this server does.
    pub(in crate::shell) resign: Option<mpsc::Sender<HandOver>>,
    /// The templates at etcd, if they are followed there.
    pub(in crate::shell) store: Option<Arc<RevisionStore>>,
}

/// The longest wait for another task to lead, and the interval at which that is looked at.
const SUCCESSION: [Duration; 2] = [Duration::from_secs(3), Duration::from_millis(20)];

// === impl Acts ===

impl Acts {
    pub(super) fn new(rooms: Rooms, levers: Arc<dyn Levers>) -> Acts {
        let log = LogOverride::new(Arc::clone(&levers));
        Acts { rooms, levers, log }
    }

    /// Does what is asked for. Whether whoever asks may has been looked at.
    pub(super) async fn perform(&self, order: &AdminOrder, operator: &Operator) -> Result<Value, ActProblem> {
        match order {
            AdminOrder::Whoami => Ok(whoami(operator)),
            AdminOrder::Connections(limit) => Ok(self.connections(*limit)),
            AdminOrder::Access => Ok(self.access()),
            AdminOrder::Log => Ok(self.log()),
            AdminOrder::SetLog { filter, time } => self.set_log(filter, *time),
            AdminOrder::ResetLog => {
                let was_changed = self.log.reset();
                Ok(json!({"was_changed": was_changed, "filter": self.levers.log_filter()}))
            }
            AdminOrder::Reload => self.reload().await,
            AdminOrder::Resign => self.resign().await,
            AdminOrder::Recalls => self.recalls(),
            AdminOrder::Recall(target, time) => self.recall(target, *time),
            AdminOrder::LiftRecall(target) => self.lift_recall(target),
            AdminOrder::Overrides => self.overrides().await,
            AdminOrder::Override(order) => self.put_override(order, operator).await,
            AdminOrder::LiftOverride(id) => self.lift_override(id).await,
            AdminOrder::Seize(target) => self.seize(target),
            AdminOrder::Pushes => self.pushes().await,
            AdminOrder::Push(push) => self.push(push, operator).await,
            AdminOrder::PushFreeze(message, time) => self.freeze_pushes((message, *time), operator).await,
            AdminOrder::LiftPushFreeze => self.let_push().await,
        }
    }

    fn connections(&self, limit: usize) -> Value {
        let (open, in_all) = self.rooms.driver.traffic().table.list(limit);
        let rows: Vec<_> = open.iter().map(connection).collect();
        json!({"in_all": in_all, "connections": rows})
    }

    fn access(&self) -> Value {
        let gate = &self.rooms.gate;
        let counts = |count: &dyn Fn(Why) -> u64| -> Value {
            let counted = Why::ALL.iter().map(|&why| (why.as_str().to_owned(), count(why).into()));
            Value::Object(counted.collect::<Map<_, _>>())
        };
        let denials = gate.denials();
        let mut answer = json!({
            "in_force": false,
            "denied": counts(&|why| denials.refused(why)),
            "audited": counts(&|why| denials.noted(why)),
        });
        if let Some(rules) = gate.rules() {
            answer["in_force"] = true.into();
            describe(&rules, &mut answer);
        }
        answer
    }

    fn log(&self) -> Value {
        let status = self.log.status();
        let (former, ends_in) = status.former.unzip();
        json!({
            "filter": status.filter,
            "former": former,
            "ends_in_seconds": ends_in.map(|time: Duration| time.as_secs_f64()),
        })
    }

    fn set_log(&self, filter: &str, time: Duration) -> Result<Value, ActProblem> {
        let changed = self.log.change(filter, time);
        changed.map_err(|fault| ActProblem::new(400, format!("filter: {fault}")).with("field", "filter"))?;
        Ok(self.log())
    }

    async fn reload(&self) -> Result<Value, ActProblem> {
        let mut read = self.levers.reload().await;
        let certificates = Arc::clone(&self.rooms.certificates);
        // A disk may be slow.
        let sets = tokio::task::spawn_blocking(move || certificates.read_again()).await;
        let sets = sets.expect("reading certificates does not panic");
        read.extend(sets.into_iter().map(|(file, outcome)| ReadFile {
            what: "certificates",
            file: file.to_owned(),
            outcome: outcome.map(|()| None),
        }));
        let faults: Vec<_> = read.iter().filter_map(|file| file.outcome.as_ref().err()).collect();
        let rows: Vec<_> = read.iter().map(read_file).collect();
        if faults.is_empty() {
            return Ok(json!({"read": rows}));
        }
        let faults = faults.into_iter().map(String::as_str).collect::<Vec<_>>().join("\n");
        let detail = format!("what was in force before stays in force of these: {faults}");
        Err(ActProblem::new(422, detail).with("read", rows))
    }

    async fn resign(&self) -> Result<Value, ActProblem> {
        let rooms = &self.rooms;
        let Some(ask) = &rooms.resign else {
            return Err(ActProblem::new(
                409,
                "this server is the only task of its node, and nobody could take over; wanted one with --etcd",
            ));
        };
        let (told, outcome) = oneshot::channel();
        let ending = || ActProblem::new(503, "the server is ending");
        ask.send(told).await.map_err(|_| ending())?;
        let Some((epoch, again_after)) = outcome.await.map_err(|_| ending())? else {
            let leader = rooms.driver.leader_elsewhere();
            let who =
                leader.as_deref().map_or("nobody that is known does".to_owned(), |at| format!("{at} does"));
            let problem = ActProblem::new(409, format!("this task does not lead its node; {who}"));
            return Err(problem.with("leader", leader));
        };
        let [longest, interval] = SUCCESSION;
        let until = clock::now() + longest;
        let mut leader = None;
        while leader.is_none() && clock::now() < until {
            clock::sleep_until(clock::now() + interval).await;
            leader = rooms.driver.leader_elsewhere();
        }
        Ok(json!({
            "epoch": epoch.0,
            "leader": leader,
            "stands_again_after_seconds": again_after.as_secs_f64(),
        }))
    }

    fn recalls(&self) -> Result<Value, ActProblem> {
        let recalls = self.rooms.driver.recalls().map_err(|fault| ActProblem::unanswered(&fault))?;
        let row = |recall: &RecallStatus| {
            json!({
                "resource": recall.resource.as_str(),
                "holder": recall.holder.as_str(),
                "ends_in_seconds": recall.ends_in.as_secs_f64(),
            })
        };
        Ok(json!({"recalls": recalls.iter().map(row).collect::<Vec<_>>()}))
    }

    fn recall(&self, target: &RecallTarget, time: Duration) -> Result<Value, ActProblem> {
        let RecallTarget { resource, holder } = target;
        let recalled = self.rooms.driver.recall(resource, holder, time);
        let recalled = recalled.map_err(|fault| ActProblem::unanswered(&fault))?;
        let leases = recalled.map_err(|fault| {
            let status = if matches!(fault, NotRecalled::Nobody { .. }) { 404 } else { 409 };
            ActProblem::new(status, fault.to_string())
        })?;
        Ok(json!({
            "resource": resource.as_str(),
            "holder": holder.as_str(),
            "held_back_seconds": time.as_secs_f64(),
            "leases": leases.iter().map(lease).collect::<Vec<_>>(),
        }))
    }

    fn lift_recall(&self, target: &RecallTarget) -> Result<Value, ActProblem> {
        let RecallTarget { resource, holder } = target;
        let lifted = self.rooms.driver.lift_recall(resource, holder);
        match lifted.map_err(|fault| ActProblem::unanswered(&fault))? {
            true => Ok(json!({"resource": resource.as_str(), "holder": holder.as_str()})),
            false => Err(ActProblem::new(404, format!("{holder:?} is not held back from {resource:?}"))),
        }
    }
}

fn whoami(operator: &Operator) -> Value {
    let visit = operator.visit.as_ref();
    let mut answer = operator.caller.origin();
    let mut put = |name: &str, value: Value| drop(answer.insert(name.to_owned(), value));
    put("identity", operator.identity().into());
    put("by_token", visit.is_some_and(|visit| visit.bearer().is_some()).into());
    put("rules", visit.is_some().into());
    put("enforced", visit.is_some_and(|visit| visit.stance() == Stance::Deny).into());
    put("roles", operator.roles().into_iter().map(Role::as_str).collect());
    Value::Object(answer)
}

fn lease(lease: &RecalledLease) -> Value {
    json!({
        "kind": match lease.kind { HolderKind::Client => "client", HolderKind::Node => "node" },
        "charged": lease.charged.as_f64(),
        "ends_in_seconds": lease.ends_in.as_secs_f64(),
        "told": lease.is_told,
    })
}

fn read_file(file: &ReadFile) -> Value {
    json!({
        "what": file.what,
        "file": file.file,
        "in_force": file.outcome.is_ok(),
        "version": file.outcome.as_ref().ok().copied().flatten(),
        "fault": file.outcome.as_ref().err(),
    })
}

fn describe(rules: &Access, answer: &mut Value) {
    answer["version"] = rules.version.into();
    answer["default"] = if rules.stance == Stance::Deny { "deny" } else { "audit" }.into();
    answer["rules"] = json!({
        "nodes": rules.nodes.len(),
        "clients": rules.clients.len(),
        "operators": rules.operators.len(),
        "revoked": rules.revoked.len(),
    });
}

fn connection(open: &OpenConnection) -> Value {
    let age = clock::now().since(open.since);
    let since = SystemTime::UNIX_EPOCH + clock::wall().since_epoch.saturating_sub(age);
    let mut row = open.caller.origin();
    let mut put = |name: &str, value: Value| drop(row.insert(name.to_owned(), value));
    put("port", Port::VALUES[open.port.place()].into());
    put("identity", open.caller.identity.as_str().into());
    put("token_identity", open.bearer.as_deref().into());
    put("streams", open.streams.into());
    put("since", humantime::format_rfc3339_seconds(since).to_string().into());
    put("open_seconds", age.as_secs_f64().into());
    Value::Object(row)
}
