//! The history of a domain as it is drawn: what each tier did, what it will do, and the answer to each hit.

use lessor_algorithms::tiers::{Bound, Window};
use lessor_sim::tiers::{Doing, History, Lane, shown};
use serde::Serialize;

use super::NANOS;
use crate::desk::brief;

/// The history of the domain up to now, and what comes of it if nothing more is asked.
#[derive(Serialize)]
pub(super) struct Drawn {
    now_seconds: f64,
    end_seconds: f64,
    /// The policies as they are applied.
    policies: Vec<String>,
    /// The changes that make them what is applied.
    notes: Vec<String>,
    hard_limit: Option<u32>,
    global_limit: Option<u32>,
    lanes: Vec<DrawnLane>,
    answers: Vec<DrawnAnswer>,
}

/// One tier.
#[derive(Serialize)]
struct DrawnLane {
    /// Counted from 1, as the tier is.
    policy: usize,
    tier: usize,
    limit: u32,
    window_seconds: f64,
    active_seconds: f64,
    cooldown_seconds: f64,
    skippable: bool,
    count: String,
    hits: u64,
    phases: Vec<DrawnPhase>,
    /// Bursts into it: when, and out of which tier.
    entered: Vec<(f64, usize)>,
    /// The times of hits that were granted in it, each with how many.
    granted: Vec<(f64, u32)>,
    /// From when on how many hits lie in its window.
    fill: Vec<(f64, u32)>,
}

/// A time in which a tier did the same.
#[derive(Serialize)]
struct DrawnPhase {
    from_seconds: f64,
    until_seconds: f64,
    state: &'static str,
}

/// The answer to one hit.
#[derive(Serialize)]
struct DrawnAnswer {
    at_seconds: f64,
    granted: u32,
    policy: usize,
    tier: usize,
    tier_limit: u32,
    hits_in_tier: u32,
    hits_in_second: u32,
    burst: bool,
    /// The limit that refused it.
    bound_by: Option<&'static str>,
    /// When it would have been granted, if nobody had asked for more.
    retry_at_seconds: Option<f64>,
}

// === impl Drawn ===

impl Drawn {
    pub(super) fn new(history: &History, now_seconds: f64, notes: Vec<String>) -> Drawn {
        let contract = &history.contract;
        Drawn {
            now_seconds,
            end_seconds: seconds(history.end),
            policies: contract.policies().iter().map(shown).collect(),
            notes,
            hard_limit: contract.hard_limit(),
            global_limit: contract.global_limit(),
            lanes: history.lanes.iter().map(|lane| DrawnLane::new(history, lane)).collect(),
            answers: answers(history),
        }
    }
}

// === impl DrawnLane ===

impl DrawnLane {
    fn new(history: &History, lane: &Lane) -> DrawnLane {
        let phases = lane.phases.iter().map(|phase| DrawnPhase {
            from_seconds: seconds(phase.from),
            until_seconds: seconds(phase.until),
            state: match phase.doing {
                Doing::Current => "current",
                Doing::Shadowed => "shadowed",
                Doing::Cooling => "cooling",
            },
        });
        DrawnLane {
            policy: lane.policy + 1,
            tier: lane.number,
            limit: lane.tier.limit,
            window_seconds: lane.tier.window.as_secs_f64(),
            active_seconds: lane.tier.active.as_secs_f64(),
            cooldown_seconds: lane.tier.cooldown.as_secs_f64(),
            skippable: lane.tier.is_skippable,
            count: match lane.tier.kind {
                Window::Exact => "exact".to_owned(),
                Window::Sliding { slices } => format!("sliding/{slices}"),
                Window::Fixed => "fixed".to_owned(),
                Window::Bucket => "bucket".to_owned(),
            },
            hits: lane.hits,
            phases: phases.collect(),
            entered: lane.entered.iter().map(|entered| (seconds(entered.at), entered.from)).collect(),
            granted: lane.granted.iter().map(|(at, hits)| (seconds(*at), *hits)).collect(),
            fill: fill(history, lane),
        }
    }
}

/// The times from which on so many hits lie in the window of a tier.
fn fill(history: &History, lane: &Lane) -> Vec<(f64, u32)> {
    let width = seconds(history.end) / lane.columns.len() as f64;
    let mut fill: Vec<(f64, u32)> = Vec::new();
    for (index, column) in lane.columns.iter().enumerate() {
        if fill.last().is_none_or(|(_, before)| *before != column.fullest) {
            fill.push((brief(index as f64 * width), column.fullest));
        }
    }
    fill
}

fn answers(history: &History) -> Vec<DrawnAnswer> {
    let answers = history.requests.iter().map(|request| {
        let decision = request.decision;
        DrawnAnswer {
            at_seconds: seconds(request.arrival.at),
            granted: decision.granted,
            policy: decision.policy + 1,
            tier: decision.tier,
            tier_limit: decision.tier_limit,
            hits_in_tier: decision.hits_in_tier,
            hits_in_second: decision.hits_in_second,
            burst: decision.burst,
            bound_by: decision.bound.map(|bound| match bound {
                Bound::Debt => "debt",
                Bound::Tiers => "tiers",
                Bound::Hard => "hard",
                Bound::Global => "global",
            }),
            retry_at_seconds: decision.retry_at.map(seconds),
        }
    });
    answers.collect()
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / NANOS
}
