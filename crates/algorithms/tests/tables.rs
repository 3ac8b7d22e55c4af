//! Worked examples, as tables in `tests/tables/`.
//!
//! A case names the policy and the capacity; then come the demands, one a line: `w` wants, `s` subclients (the weight, 1 if
//! absent), `p` priority (0 if absent). The answer repeats each with `g`, what it gets, rounded to eight places.
//! `REWRITE=1 cargo test --test tables` records the answers anew; review them as a diff.

use std::str::FromStr;

use lessor_algorithms::{Demand, SharePolicy, Shares};

#[test]
fn shares_are_as_the_tables_say() {
    datadriven::walk("tests/tables", |file| file.run(answer));
}

fn answer(case: &mut datadriven::TestCase) -> Result<String, datadriven::DataDrivenError> {
    let policy = match case.directive.as_str() {
        "none" => SharePolicy::None,
        "static" => SharePolicy::Static,
        "proportional" => SharePolicy::ProportionalShare,
        "fair" => SharePolicy::FairShare,
        other => panic!("policy {other:?} is none of none, static, proportional, fair"),
    };
    let mut shares = Shares::new(policy, case.take_arg("capacity")?);
    case.expect_empty()?;

    let demands: Vec<(&str, Demand)> = case.input.lines().map(|line| (line, demand(line))).collect();
    demands.iter().for_each(|(_, demand)| shares.insert(demand));
    let row = |(line, demand): &(&str, Demand)| format!("{line} g{}\n", rounded(shares.share(demand)));
    Ok(demands.iter().map(row).collect())
}

fn demand(line: &str) -> Demand {
    let mut demand = Demand { priority: 0, weight: 1, wants: 0.0 };
    for word in line.split_whitespace() {
        let (field, number) = word.split_at(1);
        match field {
            "p" => demand.priority = parsed(number),
            "s" => demand.weight = parsed(number),
            "w" => demand.wants = parsed(number),
            _ => panic!("{word:?} is none of p, s, w"),
        }
    }
    demand
}

fn parsed<T: FromStr>(number: &str) -> T {
    number.parse().unwrap_or_else(|_| panic!("{number:?} is no number for this field"))
}

fn rounded(units: f64) -> String {
    let places = format!("{units:.8}");
    places.trim_end_matches('0').trim_end_matches('.').to_owned()
}
