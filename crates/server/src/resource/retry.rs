//! Times after which holders that poll are told to come back when something waits for them.

use std::time::Duration;

/// The time of Doorman's clients: they poll by a timer only.
pub(crate) const SOON: Duration = Duration::from_secs(1);

/// The time of our own clients when what they wait for takes no longer than a write.
pub(crate) const PROMPT: Duration = Duration::from_millis(100);
