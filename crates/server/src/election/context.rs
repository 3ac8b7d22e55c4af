//! The context of a step of a candidate: when it is taken, by which keys and configuration, and where what comes of it goes.

use lessor_proto::Time;

use super::bound::ClockBounds;
use super::config::ElectionConfig;
use super::outbox::Outbox;
use super::record::RecordKeys;

/// The context of one step.
#[derive(Debug)]
pub(super) struct StepContext<'a> {
    pub(super) now: Time,
    pub(super) keys: &'a RecordKeys,
    pub(super) config: &'a ElectionConfig,
    /// The bounds that are known of the clocks of leaders.
    pub(super) bounds: &'a ClockBounds,
    pub(super) out: &'a mut Outbox,
}
