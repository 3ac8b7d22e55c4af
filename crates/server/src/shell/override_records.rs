//! Records of overrides, as they are made and as they are listed: by whoever writes them down at etcd, a task or a command.

use std::time::Duration;

use serde_json::{Value, json};

use super::random;
use crate::overrides::{Override, OverrideAct};
use crate::revision::{BadRevision, RevisionAuthor};
use crate::shell::wall_date::wall_date;

/// The record of an override for so many seconds from now on, under an id that is drawn.
#[must_use]
pub fn record(act: OverrideAct, by: RevisionAuthor, reason: &str, seconds: u64) -> Override {
    Override {
        id: format!("{:08x}", random::number() >> 32),
        act,
        by,
        at: humantime::format_rfc3339_millis(wall_date()).to_string(),
        seconds,
        ..Override::for_reason(reason)
    }
}

/// The row of an override as its author wrote it: the time that it has left is by a clock that may err.
#[must_use]
pub fn row(it: &Override) -> Value {
    let age = humantime::parse_rfc3339(&it.at).ok().and_then(|began| wall_date().duration_since(began).ok());
    let left = Duration::from_secs(it.seconds).saturating_sub(age.unwrap_or_default());
    json!({
        "id": it.id,
        "kind": it.act.kind().as_str(),
        "what": it.act.to_string(),
        "reason": it.reason,
        "by": it.by.name,
        "verified": it.by.verified,
        "at": it.at,
        "ends_in_seconds": left.as_secs_f64(),
    })
}

/// The list of all that stand at etcd, and what is wrong with those that cannot be read.
#[must_use]
pub fn listing(all: Vec<Result<Override, BadRevision>>) -> Value {
    let (mut rows, mut faults) = (Vec::new(), Vec::new());
    for read in all {
        match read {
            Ok(it) => rows.push(row(&it)),
            Err(fault) => faults.push(fault.to_string()),
        }
    }
    json!({"place": "etcd", "overrides": rows, "faults": faults})
}
