//! A plan as a push shows it: that it is of these documents, against what is in force, and not of too long ago.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::plan::Plan;
use crate::revision::RevisionDocument;
use crate::shell::wall_date::wall_date;

/// The part of a plan by which it is known again.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedPush {
    /// The digest of its documents.
    pub digest: String,
    /// The number of the revision that it was made against.
    pub base: u64,
    /// When it was made.
    pub at: String,
    /// The amount that would be lost, and that of all shares.
    pub moved: [f64; 2],
}

/// Why a plan does not do for a push.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum StalePlan {
    /// It is of something else.
    #[error("the plan is of other documents; wanted a plan of these")]
    Other,
    /// Something was pushed since.
    #[error("the plan is against revision {base}, and {head} is in force by now; wanted a new plan")]
    Overtaken {
        /// The revision that it is against.
        base: u64,
        /// The one in force.
        head: u64,
    },
    /// It is too old.
    #[error("the plan is {minutes} minutes old; wanted one of at most {}", LONGEST.as_secs() / 60)]
    Old {
        /// Its age.
        minutes: u64,
    },
    /// It does not say when it was made, or says that it will be.
    #[error("at: found {0:?}; wanted the time at which the plan was made")]
    Date(String),
    /// Demand has moved.
    #[error(
        "{now:.1}% of all shares would be lost by now, where the plan has said {before:.1}%; wanted a new plan"
    )]
    Worse {
        /// The part that was to be lost.
        before: f64,
        /// The part that would be.
        now: f64,
    },
}

/// The age from which on a plan says too little of what is so now.
const LONGEST: Duration = Duration::from_secs(15 * 60);
/// The time by which the clock of whoever made a plan may be ahead.
const AHEAD: Duration = Duration::from_secs(60);
/// The points by which more may be lost than a plan has said, of a hundred of all shares.
const POINTS: f64 = 5.0;

// === impl PlannedPush ===

impl PlannedPush {
    /// The part of a plan.
    #[must_use]
    pub fn of(plan: &Plan) -> PlannedPush {
        let (digest, at) = (plan.digest.clone(), plan.at.clone());
        PlannedPush { digest, base: plan.base, at, moved: plan.moved }
    }

    /// Holds a push of these documents on top of revision `head` against it.
    ///
    /// # Errors
    /// When the plan is of something else, or of too long ago.
    pub fn check<'a>(
        &self,
        head: u64,
        documents: impl Iterator<Item = &'a RevisionDocument>,
    ) -> Result<(), StalePlan> {
        if self.digest != Plan::digest_of(documents).to_string() {
            return Err(StalePlan::Other);
        }
        if self.base != head {
            return Err(StalePlan::Overtaken { base: self.base, head });
        }
        let now = wall_date();
        let made = humantime::parse_rfc3339(&self.at).ok().filter(|&at| at <= now + AHEAD);
        let made = made.ok_or_else(|| StalePlan::Date(self.at.clone()))?;
        let age = now.duration_since(made).unwrap_or_default();
        match age > LONGEST {
            true => Err(StalePlan::Old { minutes: age.as_secs() / 60 }),
            false => Ok(()),
        }
    }

    /// Holds a plan that was made once more against it.
    ///
    /// # Errors
    /// When much more would be lost than it has said.
    pub fn compare(&self, again: &Plan) -> Result<(), StalePlan> {
        let part = |moved: [f64; 2]| match moved {
            [_, 0.0] => 0.0,
            [lost, all] => lost / all * 100.0,
        };
        let (before, now) = (part(self.moved), part(again.moved));
        // What is no number is no promise.
        match now <= before + POINTS {
            true => Ok(()),
            false => Err(StalePlan::Worse { before, now }),
        }
    }
}
