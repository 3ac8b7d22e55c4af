//! The date by the wall clock, as people and other machines write it.

use std::time::SystemTime;

use lessor_client::internals::clock;

/// The date now.
pub(super) fn wall_date() -> SystemTime {
    SystemTime::UNIX_EPOCH + clock::wall().since_epoch
}
