//! The acts of the admin port, each done and answered.

use std::time::{Duration, SystemTime};

use lessor_client::internals::clock;
use lessor_proto::message::HolderKind;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use super::Admin;
use super::call::{Act, AdminCall};
use super::levers::ReadFile;
use super::operator::Operator;
use super::problem::ActProblem;
use crate::access::{Access, Role, Stance, Why};
use crate::node::{NotRecalled, RecalledLease};
use crate::shell::connections::OpenConnection;
use crate::shell::measure::Label;
use crate::shell::port_name::Port;

/// The acts of an admin port.
pub(super) struct Acts<'a>(pub(super) &'a Admin);

/// The longest wait for another task to lead, and the interval at which that is looked at.
const SUCCESSION: [Duration; 2] = [Duration::from_secs(3), Duration::from_millis(20)];

// === impl Acts ===

impl Acts<'_> {
    /// Does what is asked for. Whether whoever asks may has been looked at.
    pub(super) async fn perform(&self, call: &AdminCall, operator: &Operator) -> Result<Value, ActProblem> {
        match call.act {
            Act::Whoami => Ok(self.whoami(operator)),
            Act::Connections => Ok(self.connections(call.limit)),
            Act::Access => Ok(self.access()),
            Act::Log => Ok(self.log()),
            Act::SetLog => self.set_log(call),
            Act::ResetLog => {
                let was_changed = self.0.log.reset();
                Ok(json!({"was_changed": was_changed, "filter": self.0.levers.log_filter()}))
            }
            Act::Reload => self.reload().await,
            Act::Resign => self.resign().await,
            Act::Recalls => self.recalls(),
            Act::Recall => self.recall(call),
            Act::LiftRecall => self.lift_recall(call),
        }
    }

    fn whoami(&self, operator: &Operator) -> Value {
        let roles = match &operator.visit {
            None => vec![Role::All],
            Some(visit) if visit.stance() != Stance::Deny => vec![Role::All],
            Some(visit) => visit.roles(),
        };
        let roles: Vec<_> = roles.into_iter().map(Role::as_str).collect();
        let by_token = operator.visit.as_ref().is_some_and(|visit| visit.bearer().is_some());
        let mut answer = json!({
            "identity": operator.identity(),
            "by_token": by_token,
            "rules": operator.visit.is_some(),
            "enforced": operator.visit.as_ref().is_some_and(|visit| visit.stance() == Stance::Deny),
            "roles": roles,
        });
        match operator.caller.process {
            Some(process) => {
                answer["uid"] = process.uid.into();
                answer["pid"] = process.pid.into();
            }
            None => answer["address"] = operator.caller.address.to_string().into(),
        }
        answer
    }

    fn connections(&self, limit: usize) -> Value {
        let (open, in_all) = self.0.rooms.driver.traffic().table.list(limit);
        let rows: Vec<_> = open.iter().map(connection).collect();
        json!({"in_all": in_all, "connections": rows})
    }

    fn access(&self) -> Value {
        let gate = &self.0.rooms.gate;
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
        let status = self.0.log.status();
        let (former, ends_in) = status.former.unzip();
        json!({
            "filter": status.filter,
            "former": former,
            "ends_in_seconds": ends_in.map(|time: Duration| time.as_secs_f64()),
        })
    }

    fn set_log(&self, call: &AdminCall) -> Result<Value, ActProblem> {
        let changed = self.0.log.change(&call.filter, call.time);
        changed.map_err(|fault| ActProblem::new(400, format!("filter: {fault}")).with("field", "filter"))?;
        Ok(self.log())
    }

    async fn reload(&self) -> Result<Value, ActProblem> {
        let mut read = self.0.levers.reload().await;
        let certificates = std::sync::Arc::clone(&self.0.rooms.certificates);
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
        let rooms = &self.0.rooms;
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
        let recalls = self.0.rooms.driver.recalls().map_err(|fault| ActProblem::unanswered(&fault))?;
        let row = |recall: &crate::node::RecallStatus| {
            json!({
                "resource": recall.resource.as_str(),
                "holder": recall.holder.as_str(),
                "ends_in_seconds": recall.ends_in.as_secs_f64(),
            })
        };
        Ok(json!({"recalls": recalls.iter().map(row).collect::<Vec<_>>()}))
    }

    fn recall(&self, call: &AdminCall) -> Result<Value, ActProblem> {
        let (resource, holder) = names(call);
        let recalled = self.0.rooms.driver.recall(resource, holder, call.time);
        let recalled = recalled.map_err(|fault| ActProblem::unanswered(&fault))?;
        let leases = recalled.map_err(|fault| {
            let status = if matches!(fault, NotRecalled::Nobody { .. }) { 404 } else { 409 };
            ActProblem::new(status, fault.to_string())
        })?;
        Ok(json!({
            "resource": resource.as_str(),
            "holder": holder.as_str(),
            "held_back_seconds": call.time.as_secs_f64(),
            "leases": leases.iter().map(lease).collect::<Vec<_>>(),
        }))
    }

    fn lift_recall(&self, call: &AdminCall) -> Result<Value, ActProblem> {
        let (resource, holder) = names(call);
        let lifted = self.0.rooms.driver.lift_recall(resource, holder);
        match lifted.map_err(|fault| ActProblem::unanswered(&fault))? {
            true => Ok(json!({"resource": resource.as_str(), "holder": holder.as_str()})),
            false => Err(ActProblem::new(404, format!("{holder:?} is not held back from {resource:?}"))),
        }
    }
}

fn names(call: &AdminCall) -> (&lessor_proto::ResourceId, &lessor_proto::ClientId) {
    let resource = call.resource.as_ref().expect("a recall is about a resource");
    (resource, call.holder.as_ref().expect("and about a holder"))
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
    let mut row = json!({
        "port": Port::VALUES[open.port.place()],
        "identity": open.caller.identity.as_str(),
        "token_identity": open.bearer.as_deref(),
        "streams": open.streams,
        "since": humantime::format_rfc3339_seconds(since).to_string(),
        "open_seconds": age.as_secs_f64(),
    });
    match open.caller.process {
        Some(process) => {
            row["uid"] = process.uid.into();
            row["pid"] = process.pid.into();
        }
        None => row["address"] = open.caller.address.to_string().into(),
    }
    row
}
