//! The terms of all templates of a node together: how long anything may count, and how often streams are to be heard of.

use std::sync::Arc;
use std::time::Duration;

use crate::config::NodeConfig;
use crate::record::Longest;
use crate::repository::{Repository, Template};

/// The shortest time between heartbeats, and the longest: a stream that is dead in silence is given up when two are not
/// answered.
const HEARTBEATS: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(10)];

/// For how long anything may count that is granted by these templates.
pub(super) fn longest(repository: &Repository, config: &NodeConfig) -> Longest {
    let of = |template: &Arc<Template>| Longest {
        lease: template.legacy.counted(template.lease_length),
        safe_lease: if template.reserves() { template.safe_lease() } else { Duration::ZERO },
    };
    repository.templates().iter().chain(&config.unknown_names).map(of).fold(Longest::default(), Longest::max)
}

/// The interval at which a stream should be heard of so that everything on it is renewed in time.
pub(super) fn heartbeat(repository: &Repository) -> Duration {
    let terms = repository.templates().iter();
    let shortest = terms.map(|template| template.refresh_interval.min(template.shortest_lease() / 6)).min();
    let [least, most] = HEARTBEATS;
    shortest.unwrap_or(most).clamp(least, most)
}
