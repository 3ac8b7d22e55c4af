//! The companion of a resource: a second limit, which is tried beside the one in force.

use lessor_proto::Amount;
use lessor_server::repository::SmallLeases;

use super::ResourcePlan;

// === impl ResourcePlan ===

impl ResourcePlan {
    /// The companion of `of`, whose index is that: of so much, and by the same template in everything else.
    #[must_use]
    pub fn companion(of: &ResourcePlan, index: u16, capacity: Amount) -> ResourcePlan {
        ResourcePlan {
            name: format!("{}|beside", of.name),
            capacity,
            small_leases: SmallLeases::Save,
            companion_of: Some(index),
            ..of.clone()
        }
    }
}
