//! The signals that a command listens for.

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that end a command, or say that the terminal has gone or that a configuration is to be read again.
pub(crate) struct Signals {
    pub(crate) terminate: Signal,
    pub(crate) interrupt: Signal,
    pub(crate) hang_up: Signal,
}

// === impl Signals ===

impl Signals {
    pub(crate) fn listen() -> anyhow::Result<Signals> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(Signals {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hang_up: listen(SignalKind::hangup())?,
        })
    }
}
