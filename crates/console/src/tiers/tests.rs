//! Questions about tiers: the answers of the post, and what is wrong with others.

use serde_json::{Value, json};

use super::*;

fn ask(question: Value) -> Result<Value, ApiProblem> {
    let question: Question = serde_json::from_value(question).expect("a question");
    let (contract, hits) = (question.contract()?, question.arrivals()?);
    Ok(serde_json::to_value(question.draw(&contract, &hits)).expect("it can be written"))
}

/// The post's "Penalties": five a second; or fifty in five seconds, and then not again for fifteen.
fn penalties(hits: &[f64], now: f64, ahead: f64) -> Value {
    json!({"policies": [{"tiers": "5/1s, 50/5s:5s:15s"}], "hits": hits, "now_seconds": now, "ahead_seconds": ahead})
}

#[test]
fn a_burst_is_drawn_with_its_end_and_its_rest() {
    let hits: Vec<f64> = (0..60).map(|hit| f64::from(hit) / 100.0).collect();
    let drawn = ask(penalties(&hits, 0.6, 30.0)).expect("it is drawn");
    let granted =
        drawn["answers"].as_array().expect("answers").iter().filter(|answer| answer["granted"] == 1);
    assert_eq!(granted.count(), 55);
    let lane = &drawn["lanes"][1];
    assert_eq!(
        (&lane["tier"], &lane["hits"], &lane["entered"]),
        (&json!(2), &json!(50), &json!([[0.05, 1]]))
    );
    let phase = |state: &str, from: f64, until: f64| json!({"state": state, "from_seconds": from, "until_seconds": until});
    assert_eq!(lane["phases"], json!([phase("current", 0.05, 5.05), phase("cooling", 5.05, 20.05)]));
    // While the second tier is the current one, the first is active and shadowed.
    assert_eq!(drawn["lanes"][0]["phases"][1], phase("shadowed", 0.05, 1.0));
    let last = &drawn["answers"][59];
    assert_eq!((&last["bound_by"], &last["retry_at_seconds"]), (&json!("tiers"), &json!(5.05)));
    let fill = drawn["lanes"][1]["fill"].as_array().expect("steps");
    assert_eq!(fill.iter().map(|step| step[1].as_u64()).max(), Some(Some(50)));
    assert_eq!(fill.last().map(|step| &step[1]), Some(&json!(0)));
}

#[test]
fn what_is_asked_for_is_answered_as_the_simulator_answers() {
    let hits: Vec<f64> = (0..200).map(|hit| f64::from(hit) * 0.11).collect();
    for tiers in
        ["5/1s", "5/1s, 50/5s:5s:15s", "5/1s, 1/15s:15s", "3/1s:1s:2s:skippable, 9/3s:6s:9s:sliding/6"]
    {
        let question = json!({"policies": [{"tiers": tiers}], "hits": hits, "now_seconds": 22.0});
        let drawn = ask(question).expect("it is drawn");
        let policy = tiers.parse::<Tiers>().expect("tiers").policy(None, None).expect("a policy");
        let arrivals: Vec<Arrival> =
            hits.iter().map(|at| Arrival { at: nanos(*at), copies: 1, min: 1 }).collect();
        let history = run(&Contract::from(normalise(&policy).0), &arrivals, &[], nanos(22.0) + 1);
        let told: Vec<u64> = drawn["answers"]
            .as_array()
            .expect("answers")
            .iter()
            .filter_map(|answer| answer["granted"].as_u64())
            .collect();
        let simulated: Vec<u64> =
            history.requests.iter().map(|request| request.decision.granted.into()).collect();
        assert_eq!(told, simulated, "{tiers}");
    }
}

#[test]
fn a_hit_at_the_very_moment_is_answered() {
    let drawn = ask(penalties(&[0.0, 3.4], 3.4, 0.0)).expect("it is drawn");
    assert_eq!(drawn["answers"].as_array().map(Vec::len), Some(2));
}

#[test]
fn what_makes_no_sense_is_named() {
    let with = |field: &str, value: Value| {
        let mut question = penalties(&[0.0], 1.0, 0.0);
        question[field] = value;
        ask(question).expect_err(field).error
    };
    assert!(
        with("policies", json!([{"tiers": "5/x"}]))
            .starts_with("policies[0].tiers: found \"x\", wanted a time")
    );
    assert!(with("policies", json!([{"tiers": "0/1s"}])).starts_with("policies[0].tiers: found \"0\""));
    assert_eq!(with("policies", json!([])), "policies: 0 policies in a contract, 1 to 16 are wanted");
    let many = json!([{"tiers": "1/1s"}, {"tiers": "1/1s"}, {"tiers": "1/1s"}, {"tiers": "1/1s"}, {"tiers": "1/1s"}, {"tiers": "1/1s"}]);
    assert_eq!(with("policies", many), "policies: found \"6\"; wanted at most 5 of them");
    let long = "1/1s, 2/2s, 3/3s, 4/4s, 5/5s, 6/6s";
    let told = with("policies", json!([{"tiers": long}, {"tiers": long}]));
    assert_eq!(told, "tiers: found \"12\"; wanted at most 10 in all, and 8 in a policy");
    assert_eq!(
        with("hits", json!([2.0])),
        "hits[0]: found \"2\"; wanted a time that is not after now_seconds"
    );
    assert!(with("hits", json!([-1.0])).starts_with("hits[0]: found \"-1\"; wanted a number of seconds"));
    assert_eq!(with("hits", json!(vec![0.5; 5_001])), "hits: found \"5001\"; wanted at most 5000 of them");
    assert!(with("ahead_seconds", json!(1e300)).starts_with("ahead_seconds: found"));
}
