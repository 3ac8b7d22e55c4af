//! Burst tiers at work: a policy and a pattern of arrivals in, what each tier did out, as a picture, as a table, as a line.
//!
//! The rules are not here but in [`lessor_algorithms::tiers`], which is what clients run; this only asks it and writes down
//! what it sees. It stands in for the simulator of the post "Charon Simulator" (eric-fritz.com, 2017), whose requests
//! are made by hand in a browser.
//!
//! ```
//! use lessor_algorithms::tiers::Contract;
//! use lessor_sim::tiers::{TiersFigures, Pattern, Tiers, arrivals, run};
//!
//! // The post's "Penalties": five a second; or fifty in five seconds, and then not again for fifteen.
//! let policy = "5/1s, 50/5s:5s:15s".parse::<Tiers>()?.policy(None, None)?;
//! let pattern: Pattern = "20/s".parse()?;
//! let minute = 60_000_000_000;
//! let asked = arrivals(&[pattern], 1, 1, minute, 1)?;
//! let history = run(&Contract::from(policy), &asked, &[], minute);
//! let burst = &TiersFigures::new(&history).tiers[1];
//! assert_eq!((burst.entered, burst.hits, burst.active_s), (3, 150, 15.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod arrival;
mod figures;
mod history;
mod line;
mod notation;
mod picture;
mod rows;
mod table;
mod text;

pub use self::arrival::{Arrival, MOST, Pattern, Shape, TooMany, arrivals};
pub use self::figures::{Refused, TierFigures, TiersFigures};
pub use self::history::{COLUMNS, Column, Doing, Entered, History, Lane, Phase, Request, run};
pub use self::line::TierLine;
pub use self::notation::{BadPattern, BadTier, Tiers, shown};
pub use self::picture::svg;
pub use self::rows::{BadRow, read as read_arrivals};
pub use self::table::csv;
pub use self::text::{TextStyle, text};

/// Nanoseconds.
const SECOND: u64 = 1_000_000_000;

/// A time in seconds, as short as it can be said to the millisecond: `12`, `0.25`.
fn seconds(nanos: u64) -> String {
    let text = format!("{:.3}", nanos as f64 / SECOND as f64);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
