//! PoolCounter: locks of a key over lines of text, of which so many *workers* may be held at a time, by all doors together.
//!
//! A lock goes with the connection that has it. Whoever finds no worker free waits, for itself (`ACQ4ME`) or for anybody who
//! does the work (`ACQ4ANY`): of those a release of the key makes all go on with `DONE`. The units of a key are leased as a
//! gauge, so a worker is a permit of it; how many queue for a key is counted here, at this door.
//!
//! Nothing here reads a socket or a clock, or knows what a permit is.

mod caller;
mod caller_id;
mod command;
mod counts;
mod key;
mod line;
mod table;
#[cfg(test)]
mod tests;
mod turn;
mod views;

use std::borrow::Cow;
use std::time::Duration;

pub use self::caller_id::CallerId;
pub use self::command::{PoolCommand, PoolRequest};
pub use self::counts::PoolCounts;
pub use self::key::PoolGauge;
pub use self::line::{LONGEST_LINE, PoolLine, PoolLines};
pub use self::table::{NoUnit, PoolTable, PoolUnits};

/// The locks that one connection may have, one that it waits for among them.
pub const LOCKS: usize = 4;

/// The rules of a door for PoolCounter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PoolRules {
    /// The most workers that a request may name.
    pub workers: u32,
    /// The longest wait for a first lease, and for units that lie elsewhere where the caller does not wait.
    pub wait: Duration,
    /// Whether a lock is given where nothing is leased.
    pub is_open: bool,
}

/// An answer of a door: one line, but for figures.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PoolAnswer {
    /// The lock is the caller's.
    Locked,
    /// Somebody else has done the work.
    Done,
    /// The wait was as long as was asked for.
    Timeout,
    /// As many work and wait as may.
    QueueFull,
    /// The connection has as many locks as it may.
    LockHeld,
    /// The newest lock, or the wait, is over.
    Released,
    /// There is no lock to release.
    NotLocked,
    /// Figures.
    Figures(String),
    /// The line is at fault, or nothing is leased.
    Fault(PoolFault),
}

/// A fault, by its word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PoolFault {
    /// The line is no command.
    BadCommand,
    /// The words behind a command are not those that it wants.
    BadSyntax,
    /// The caller waits already.
    WaitForResponse,
    /// There is no figure of that name.
    WrongStat,
    /// Nothing is leased, so nobody knows.
    NoLease,
}

// === impl PoolAnswer ===

impl PoolAnswer {
    /// The bytes on the wire.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        Cow::Borrowed(match self {
            PoolAnswer::Locked => "LOCKED\n",
            PoolAnswer::Done => "DONE\n",
            PoolAnswer::Timeout => "TIMEOUT\n",
            PoolAnswer::QueueFull => "QUEUE_FULL\n",
            PoolAnswer::LockHeld => "LOCK_HELD\n",
            PoolAnswer::Released => "RELEASED\n",
            PoolAnswer::NotLocked => "NOT_LOCKED\n",
            PoolAnswer::Figures(text) => text,
            PoolAnswer::Fault(PoolFault::BadCommand) => "ERROR BAD_COMMAND\n",
            PoolAnswer::Fault(PoolFault::BadSyntax) => "ERROR BAD_SYNTAX\n",
            PoolAnswer::Fault(PoolFault::WaitForResponse) => "ERROR WAIT_FOR_RESPONSE\n",
            PoolAnswer::Fault(PoolFault::WrongStat) => "ERROR WRONG_STAT\n",
            PoolAnswer::Fault(PoolFault::NoLease) => "ERROR NO_LEASE\n",
        })
    }
}
