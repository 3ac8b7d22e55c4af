//! The acts about overrides: at the etcd of the templates where there is one, so that all tasks of all nodes go by them; and else in
//! the memory of the leader, with which they end.

use serde_json::{Value, json};

use super::acts::Acts;
use super::call::{OverrideOrder, RecallTarget};
use super::operator::Operator;
use super::problem::ActProblem;
use crate::node::{NotRecalled, SeizedLease};
use crate::overrides::{BadOverride, OverrideStatus};
use crate::revision::RevisionAuthor;
use crate::shell::etcd::{OverrideOutcome, StoreFault};
use crate::shell::override_records;

// === impl Acts ===

impl Acts {
    /// Those that are in force, or would be at the next leader.
    pub(super) async fn overrides(&self) -> Result<Value, ActProblem> {
        let Some(store) = &self.rooms.store else {
            let all = self.rooms.driver.overrides().map_err(|fault| ActProblem::unanswered(&fault))?;
            let rows: Vec<Value> = all.iter().map(status_row).collect();
            return Ok(json!({"place": "leader", "overrides": rows, "faults": []}));
        };
        store.overrides().await.map(override_records::listing).map_err(|fault| no_store(&fault))
    }

    pub(super) async fn put_override(
        &self,
        order: &OverrideOrder,
        operator: &Operator,
    ) -> Result<Value, ActProblem> {
        let (act, by, seconds) = (order.act.clone(), self.author(operator), order.time.as_secs().max(1));
        let it = override_records::record(act, by, &order.reason, seconds);
        it.check().map_err(|fault| bad_override(&fault))?;
        let row = override_records::row(&it);
        let place = match &self.rooms.store {
            Some(store) => match store.put_override(&it).await.map_err(|fault| no_store(&fault))? {
                OverrideOutcome::Put => "etcd",
                OverrideOutcome::Full => return Err(bad_override(&BadOverride::Many)),
            },
            None => {
                let put = self.rooms.driver.put_override(it, order.time);
                let put = put.map_err(|fault| ActProblem::unanswered(&fault))?;
                put.map_err(|fault| bad_override(&fault))?;
                "leader"
            }
        };
        Ok(json!({"place": place, "override": row}))
    }

    pub(super) async fn lift_override(&self, id: &str) -> Result<Value, ActProblem> {
        let was_there = match &self.rooms.store {
            Some(store) => store.lift_override(id).await.map_err(|fault| no_store(&fault))?,
            None => self.rooms.driver.lift_override(id).map_err(|fault| ActProblem::unanswered(&fault))?,
        };
        match was_there {
            true => Ok(json!({"id": id})),
            false => Err(ActProblem::new(404, format!("there is no override {id:?}: it may have ended"))),
        }
    }

    pub(super) fn seize(&self, target: &RecallTarget) -> Result<Value, ActProblem> {
        let RecallTarget { resource, holder } = target;
        let seized = self.rooms.driver.seize(resource, holder);
        let seized = seized.map_err(|fault| ActProblem::unanswered(&fault))?;
        let leases = seized.map_err(|fault| {
            let status = if matches!(fault, NotRecalled::Nobody { .. }) { 404 } else { 409 };
            ActProblem::new(status, fault.to_string())
        })?;
        let lease = |lease: &SeizedLease| json!({"amount": lease.amount.as_f64(), "at_risk_seconds": lease.at_risk.as_secs_f64()});
        let leases: Vec<Value> = leases.iter().map(lease).collect();
        Ok(json!({"resource": resource.as_str(), "client": holder.as_str(), "leases": leases}))
    }

    /// The author of what an operator writes down through this task.
    pub(super) fn author(&self, operator: &Operator) -> RevisionAuthor {
        RevisionAuthor {
            name: operator.identity().to_owned(),
            verified: operator.is_proved(),
            how: format!("through {}", self.rooms.driver.advertised()),
        }
    }
}

fn status_row(status: &OverrideStatus) -> Value {
    json!({
        "id": status.id,
        "kind": status.kind,
        "what": status.what,
        "reason": status.reason,
        "by": status.by,
        "verified": status.is_verified,
        "ends_in_seconds": status.ends_in_seconds,
    })
}

fn bad_override(fault: &BadOverride) -> ActProblem {
    let status = if *fault == BadOverride::Many { 409 } else { 400 };
    ActProblem::new(status, fault.to_string())
}

/// The etcd of the templates does not do what is asked of it.
pub(super) fn no_store(fault: &StoreFault) -> ActProblem {
    ActProblem::new(503, format!("the etcd of the templates: {fault}"))
}
