//! The report of a run: a line for programs, a table of every second, a picture for people.

mod beside;
mod line;
mod plot;
mod table;

pub use self::beside::beside;
pub use self::line::ReportLine;
pub use self::plot::svg;
pub use self::table::csv;

use crate::measure::Mark;
use crate::scenario::Mode;
use crate::workload::{Plan, Scenario};

/// Which run it was.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ReportRun<'a> {
    /// The scenario.
    pub scenario: Scenario,
    /// Its tree.
    pub plan: &'a Plan,
    /// The seed.
    pub seed: u64,
    /// The system that shared the capacity.
    pub mode: Mode,
}

/// A fault in two words.
fn words(mark: &Mark) -> String {
    format!("{} {}", mark.kind, mark.target)
}
