//! Runs a workload with one of the systems that can be compared on it.

mod stage;

use std::fmt;
use std::str::FromStr;

use crate::doorman;
use crate::measure::Recording;
use crate::oracle::Violation;
use crate::workload::Workload;

/// The system that shares the capacity, and the way in which clients speak to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// Our nodes and sessions, over streams.
    #[default]
    Stream,
    /// Our nodes and sessions, polling at the pace of Doorman's clients.
    Poll,
    /// Doorman's own simulated system.
    Doorman,
}

/// A name that is no mode.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("mode {0:?} is not one of stream, poll, doorman")]
pub struct UnknownMode(pub String);

/// Runs a workload to its end. The same workload and mode give the same recording.
///
/// # Errors
/// When a rule that must hold is broken, with the story of it; never by Doorman's system, whose overshoots are figures.
pub fn run(workload: &Workload, mode: Mode) -> Result<Recording, Box<Violation>> {
    match mode {
        Mode::Stream | Mode::Poll => stage::run(workload, mode),
        Mode::Doorman => Ok(doorman::run(workload)),
    }
}

// === impl Mode ===

impl Mode {
    /// All of them.
    pub const ALL: [Mode; 3] = [Mode::Stream, Mode::Poll, Mode::Doorman];

    /// `stream`, `poll` or `doorman`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Mode::Stream => "stream",
            Mode::Poll => "poll",
            Mode::Doorman => "doorman",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(name: &str) -> Result<Mode, UnknownMode> {
        Mode::ALL.into_iter().find(|mode| mode.name() == name).ok_or_else(|| UnknownMode(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_known_by_its_name() {
        for mode in Mode::ALL {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        let error = "push".parse::<Mode>().unwrap_err();
        assert_eq!(error.to_string(), "mode \"push\" is not one of stream, poll, doorman");
    }
}
