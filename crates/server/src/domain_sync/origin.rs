//! The origin of hits: who made them, as far as others tell them apart.

use lessor_proto::ClientId;
use lessor_proto::message::HolderKind;

/// The one who did something.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum DeltaOrigin {
    /// Others, as the node above tells.
    Above,
    /// One life of a holder: of a node in a line of succession, all of that line.
    Below(HolderKind, ClientId, u64),
}
