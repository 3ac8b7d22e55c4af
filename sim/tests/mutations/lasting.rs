//! A lease that is renewed while nobody says anything else.

use lessor_sim::mutation::Mutation;

use super::fence::Line;
use super::hall::units;

/// A client has all 10, wants them for an hour, and says nothing but heartbeats.
pub(crate) fn for_an_hour(without: Option<Mutation>) -> Option<String> {
    let mut line = Line::new(without);
    line.want(10.0);
    line.pass(5);
    let lost = (0..3_600).find(|_| {
        line.pass(1);
        line.uses() < units(10)
    });
    lost.map(|second| format!("it may use {} of 10 after {second} s", line.uses()))
}
