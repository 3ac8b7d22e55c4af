//! A run as a table, a row a request.

use std::fmt::Write as _;

use lessor_algorithms::tiers::Bound;

use super::history::{History, Request};
use super::seconds;

/// Every request with its answer, as comma-separated values: when it was made; the hits that it asked for and the least that
/// was of use; those that were granted; what kept it from more; policy and tier that the answer names, both counted from 1
/// (tier 0 where none is active), and the hits that count in that tier; those of the last second; whether a tier was
/// entered; and when the same request would be granted, empty if it was or never will be. Times in seconds.
#[must_use]
pub fn csv(history: &History) -> String {
    let mut text = String::from(
        "t,copies,min,granted,bound,policy,tier,hits_in_tier,tier_limit,hits_in_second,burst,retry_at\n",
    );
    for request in &history.requests {
        text.push_str(&row(request));
    }
    text
}

fn row(Request { arrival, decision }: &Request) -> String {
    let mut row = format!(
        "{},{},{},{},{},{},{},{},{},{},{},",
        exact(arrival.at),
        arrival.copies,
        arrival.min,
        decision.granted,
        bound(decision.bound),
        decision.policy + 1,
        decision.tier,
        decision.hits_in_tier,
        decision.tier_limit,
        decision.hits_in_second,
        u8::from(decision.burst),
    );
    if let Some(retry_at) = decision.retry_at {
        write!(row, "{}", exact(retry_at)).expect("a string takes everything");
    }
    row.push('\n');
    row
}

/// To the nanosecond, since a window is over a nanosecond after its length.
fn exact(nanos: u64) -> String {
    if nanos.is_multiple_of(1_000_000) {
        return seconds(nanos);
    }
    let text = format!("{}.{:09}", nanos / super::SECOND, nanos % super::SECOND);
    text.trim_end_matches('0').to_owned()
}

fn bound(bound: Option<Bound>) -> &'static str {
    match bound {
        None => "",
        Some(Bound::Tiers) => "tiers",
        Some(Bound::Hard) => "hard",
        Some(Bound::Global) => "global",
        Some(Bound::Debt) => "debt",
    }
}

#[cfg(test)]
mod tests {
    use lessor_algorithms::tiers::Contract;

    use super::super::{Arrival, SECOND, Tiers, run};
    use super::*;

    #[test]
    fn every_request_is_a_row() {
        let policy = "2/1s, 3/5s:5s:15s".parse::<Tiers>().unwrap().policy(None, None).unwrap();
        let at = |at, copies| Arrival { at, copies, min: 1 };
        let asked = [at(0, 4), at(SECOND / 4, 2), at(SECOND + 1, 1), at(6 * SECOND, 1)];
        let wanted = "\
t,copies,min,granted,bound,policy,tier,hits_in_tier,tier_limit,hits_in_second,burst,retry_at
0,4,1,4,,1,2,2,3,4,1,
0.25,2,1,1,tiers,1,2,3,3,5,0,
1.000000001,1,1,0,tiers,1,2,3,3,1,0,5
6,1,1,1,,1,1,1,2,1,1,
";
        assert_eq!(csv(&run(&Contract::from(policy), &asked, &[], 9 * SECOND)), wanted);
    }
}
