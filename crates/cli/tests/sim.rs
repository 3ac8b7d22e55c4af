//! `lessor sim` as people and scripts run it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod house;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

use crate::house::{Outcome, run_for};

const FIELDS: [&str; 14] = [
    "scenario",
    "seed",
    "mode",
    "capacity",
    "b_mean_conv",
    "b_mean_whole",
    "b_p5_conv",
    "below95_total_s",
    "below95_longest_s",
    "allocation_error_conv",
    "overshoot_events",
    "overshoot_max",
    "calls_per_client_minute",
    "wall_s",
];

/// The time in which a simulation ends that is not optimised, while other tests have the processor as well: it computes all along.
const LONGEST: Duration = Duration::from_secs(600);

/// Five clients whose wants double in the middle, and a root that is lost for a while.
const WANTS: &str = "t,client:1,client:2,client:3,client:4,client:5
0,50,50,50,50,50
100,100,100,100,100,100
";
const MISHAPS: &str = "t,kind,target
150,lose,root
160,restore,root
";

async fn sim(arguments: &[&str]) -> Outcome {
    let arguments: Vec<&str> = [&["sim"], arguments].concat();
    run_for(LONGEST, &arguments).await
}

async fn succeed(arguments: &[&str]) -> String {
    let Outcome { code, out, err } = sim(arguments).await;
    assert_eq!((code, err.as_str()), (Some(0), ""), "{arguments:?} printed {out}");
    out
}

async fn fail(arguments: &[&str]) -> String {
    let Outcome { code, out, err } = sim(arguments).await;
    assert_eq!((code, out.as_str()), (Some(1), ""), "{arguments:?} complained {err}");
    err
}

async fn json(arguments: &[&str]) -> Vec<Value> {
    let out = succeed(&[arguments, &["--mode", "doorman", "--json"]].concat()).await;
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Everything but how long it took.
fn timeless(mut line: Value) -> Value {
    line.as_object_mut().unwrap().remove("wall_s");
    line
}

/// Writes a trace and returns its path.
fn trace(directory: &Path, wants: &str, mishaps: &str) -> PathBuf {
    let path = directory.join("x.trace.csv");
    fs::write(&path, wants).unwrap();
    fs::write(directory.join("x.mishaps.csv"), mishaps).unwrap();
    path
}

#[tokio::test]
async fn a_run_is_one_line_of_json() {
    let lines = json(&["one", "--seed", "7"]).await;
    let [line] = lines.as_slice() else { panic!("{lines:?}") };
    for field in FIELDS {
        assert!(line.get(field).is_some(), "no {field} in {line}");
    }
    assert_eq!(
        (&line["scenario"], &line["seed"], &line["mode"]),
        (&"one".into(), &7.into(), &"doorman".into())
    );
    let used = line["b_mean_conv"].as_f64().unwrap();
    assert!((0.9..1.1).contains(&used), "{line}");
    let again = json(&["one", "--seed", "7"]).await.remove(0);
    assert_eq!(timeless(line.clone()), timeless(again));
}

#[tokio::test]
async fn seeds_run_from_the_first_to_the_last() {
    let seeds: Vec<Value> =
        json(&["four", "--seeds", "2..4"]).await.iter().map(|line| line["seed"].clone()).collect();
    assert_eq!(seeds, [2, 3, 4]);
    let table = succeed(&["four", "--seeds", "2..4", "--mode", "doorman"]).await;
    assert!(table.starts_with("scenario four, mode doorman, capacity 500\n"), "{table}");
    let first = |line: &str| line.split_whitespace().find(|word| *word != "│").unwrap_or_default().to_owned();
    let rows: Vec<String> = table.lines().map(first).collect();
    for row in ["seed", "2", "3", "4", "median"] {
        assert!(rows.iter().any(|found| found == row), "no {row} in\n{table}");
    }
}

#[tokio::test]
async fn a_trace_is_taken_plain_and_gzipped() {
    let directory = tempfile::tempdir().unwrap();
    let plain = trace(directory.path(), WANTS, MISHAPS);
    let packed = directory.path().join("x.trace.csv.gz");
    let mut encoder = GzEncoder::new(fs::File::create(&packed).unwrap(), Compression::default());
    encoder.write_all(WANTS.as_bytes()).unwrap();
    encoder.finish().unwrap();
    let mut runs = Vec::new();
    for path in [&plain, &packed] {
        runs.extend(json(&["two", "--trace", path.to_str().unwrap()]).await.into_iter().map(timeless));
    }
    assert_eq!(runs[0], runs[1]);
    assert_ne!(runs[0]["trace_hash"], timeless(json(&["two"]).await.remove(0))["trace_hash"]);
}

#[tokio::test]
async fn out_gets_a_table_and_a_picture() {
    let directory = tempfile::tempdir().unwrap();
    let path = trace(directory.path(), WANTS, MISHAPS);
    let out = directory.path().join("made/by/it");
    let arguments = ["two", "--seed", "3", "--trace", path.to_str().unwrap(), "--out", out.to_str().unwrap()];
    json(&arguments).await;
    let table = fs::read_to_string(out.join("two_3_doorman.csv")).unwrap();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(
        lines[0],
        "t,wants_root,has_root,capacity_root,wants_clients,has_clients,capacity_clients,b,allocation_error,mishap"
    );
    assert_eq!(lines.len(), 302);
    let wants = |second: usize| lines[second + 1].split(',').nth(4).unwrap().parse::<f64>().unwrap();
    assert_eq!((wants(99), wants(100)), (250.0, 500.0));
    assert!(lines[151].ends_with(",lose root") && lines[161].ends_with(",restore root"), "{table}");
    let picture = fs::read_to_string(out.join("two_3_doorman.svg")).unwrap();
    assert!(picture.starts_with("<svg") && picture.contains("Scenario two, seed 3, mode doorman"));
}

/// Both are run on the same wants and mishaps, each with a line, a table and a picture, and both in another.
#[tokio::test]
async fn two_systems_are_drawn_into_one_picture() {
    let directory = tempfile::tempdir().unwrap();
    let path = trace(directory.path(), WANTS, MISHAPS);
    let out = directory.path().to_str().unwrap();
    let arguments =
        ["two", "--seed", "3", "--trace", path.to_str().unwrap(), "--out", out, "--beside", "doorman"];
    let said = succeed(&[&arguments[..], &["--json"]].concat()).await;
    let lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.iter().map(|line| &line["mode"]).collect::<Vec<_>>(), ["stream", "doorman"]);
    let picture = fs::read_to_string(directory.path().join("two_3_stream_doorman.svg")).unwrap();
    for words in
        ["Scenario two, seed 3", "Lessor, over streams", "Doorman's simulated system", "never above 500"]
    {
        assert!(picture.contains(words), "no {words:?} in {picture}");
    }
    for name in ["two_3_stream.csv", "two_3_stream.svg", "two_3_doorman.csv", "two_3_doorman.svg"] {
        assert!(directory.path().join(name).exists(), "no {name}");
    }
    let table = succeed(&arguments).await;
    assert!(
        table.contains("scenario two, mode stream") && table.contains("scenario two, mode doorman"),
        "{table}"
    );
}

#[tokio::test]
async fn swarms_and_comparisons_of_domains_are_drawn() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("made/by/it");
    let out_text = out.to_str().unwrap();
    let line: Value =
        serde_json::from_str(&succeed(&["swarm", "--seeds", "0..1", "--json", "--out", out_text]).await)
            .unwrap();
    let picture = fs::read_to_string(out.join("swarm.svg")).unwrap();
    let mut lost = line["faults"]["message lost"].to_string();
    if lost.len() > 3 {
        lost.insert(lost.len() - 3, ',');
    }
    for words in
        [">2 simulated trees in which everything goes wrong<", ">rules broken<", &format!(">{lost}<")]
    {
        assert!(picture.contains(words), "no {words:?} in {picture}");
    }
    let said = succeed(&["domains", "--seconds", "20", "--clients", "4", "--json", "--out", out_text]).await;
    let picture = fs::read_to_string(out.join("domains.svg")).unwrap();
    assert!(picture.contains(">strict<") && picture.contains(">4 clients<"), "{picture}");
    assert_eq!(picture.matches("<title>").count(), 2 * said.lines().count());
}

#[tokio::test]
async fn a_bad_trace_is_refused_with_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let cases = [
        (
            WANTS.replace("100,100", "100,x"),
            MISHAPS.to_owned(),
            "x.trace.csv:3: client:1: found \"x\", wanted a finite number of at least 0",
        ),
        (
            WANTS.replace("client:5", "client:6"),
            MISHAPS.to_owned(),
            "x.trace.csv:1: column 6: found \"client:6\", wanted \"client:5\"",
        ),
        (
            WANTS.to_owned(),
            MISHAPS.replace("lose", "loose"),
            "x.mishaps.csv:2: kind: found \"loose\", wanted spike, lose, restore, elect or noelect",
        ),
        (
            WANTS.to_owned(),
            MISHAPS.replace("160", "60"),
            "x.mishaps.csv:3: t: found \"60\", wanted a whole number of seconds from 150 to 300",
        ),
    ];
    for (wants, mishaps, wanted) in cases {
        let path = trace(directory.path(), &wants, &mishaps);
        let err = fail(&["two", "--trace", path.to_str().unwrap(), "--mode", "doorman"]).await;
        assert!(err.starts_with("error: ") && err.trim_end().ends_with(wanted), "{err}, wanted {wanted}");
    }

    let path = trace(directory.path(), WANTS, MISHAPS);
    let err = fail(&["five", "--trace", path.to_str().unwrap(), "--mode", "doorman"]).await;
    assert!(err.contains("x.trace.csv:1: column 2: found \"client:1\", wanted \"client:1:1:1\""), "{err}");
    fs::remove_file(directory.path().join("x.mishaps.csv")).unwrap();
    let err = fail(&["two", "--trace", path.to_str().unwrap(), "--mode", "doorman"]).await;
    assert!(err.contains("x.mishaps.csv: "), "{err}");
    let err = fail(&["two", "--trace", "x.csv", "--mode", "doorman"]).await;
    assert!(err.starts_with("error: x.csv: the name of a trace ends with .trace.csv"), "{err}");
}

#[tokio::test]
async fn a_broken_archive_is_told() {
    let directory = tempfile::tempdir().unwrap();
    trace(directory.path(), WANTS, MISHAPS);
    let packed = directory.path().join("x.trace.csv.gz");
    fs::write(&packed, [0x1f, 0x8b, 8, 0, 0, 0]).unwrap();
    let err = fail(&["two", "--trace", packed.to_str().unwrap(), "--mode", "doorman"]).await;
    assert!(err.contains("x.trace.csv.gz: "), "{err}");
}

#[tokio::test]
async fn a_wrong_word_is_named_with_what_was_wanted() {
    for (arguments, wanted) in [
        (
            ["eight", "--seed", "1"],
            "scenario \"eight\" is not one of one, two, three, four, five, six, seven",
        ),
        (["one", "--mode", "push"], "mode \"push\" is not one of stream, poll, doorman"),
        (["one", "--seeds", "8..1"], "found \"8..1\", wanted two whole numbers as in 1..8"),
    ] {
        let Outcome { code, err, .. } = sim(&arguments).await;
        assert_eq!(code, Some(2), "{err}");
        assert!(err.contains(wanted), "{err}, wanted {wanted}");
    }
}

#[tokio::test]
async fn a_swarm_counts_what_went_wrong_and_breaks_no_rule() {
    let line: Value = serde_json::from_str(&succeed(&["swarm", "--seeds", "0..1", "--json"]).await).unwrap();
    assert_eq!((&line["seeds"], &line["violations"]), (&Value::from(2), &Value::from(0)), "{line}");
    assert!(line["events"].as_u64().unwrap() > 1_000 && line["faults"].is_object(), "{line}");
    let again: Value = serde_json::from_str(&succeed(&["swarm", "--seeds", "0..1", "--json"]).await).unwrap();
    assert_eq!(line["trace_hash"], again["trace_hash"]);
    let said = succeed(&["swarm", "--seeds", "0..100", "--events", "1"]).await;
    assert!(said.contains("1  seeds"), "{said}");
}

#[tokio::test]
async fn a_town_is_as_large_as_one_likes() {
    for mode in ["stream", "poll"] {
        let said = succeed(&["tree", "--clients", "300", "--minutes", "1", "--mode", mode, "--json"]).await;
        let line: Value = serde_json::from_str(&said).unwrap();
        assert_eq!(line["clients"], 300);
        assert!(line["used_in_the_end"].as_f64().unwrap() > 0.9, "{line}");
    }
}

#[tokio::test]
async fn a_million_may_be_fewer_and_their_leaders_die() {
    let said = succeed(&["million", "--clients", "300", "--minutes", "3", "--json"]).await;
    let line: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&line["scenario"], &line["overshoot_events"]), (&"million".into(), &0.into()));
    assert!(line["leaders_died"].as_u64().unwrap() >= 8, "{line}");
    assert!(line["used_at_least"].as_f64().unwrap() > 0.9, "{line}");
}

#[tokio::test]
async fn a_flag_that_means_nothing_is_refused() {
    for (arguments, complaint) in [
        (&["five", "--clients", "3"][..], "--clients means nothing for five"),
        (&["swarm", "--mode", "poll"], "--mode means nothing for swarm"),
        (&["tree", "--seeds", "1..2"], "--seeds means nothing for tree"),
        (&["tree", "--mode", "doorman"], "--mode doorman means nothing for tree; wanted stream or poll"),
        (&["tree", "--clients", "0"], "--clients: found 0, wanted at least 1"),
        (&["million", "--seeds", "1..2"], "--seeds means nothing for million"),
        (&["domains", "--mode", "poll"], "--mode means nothing for domains"),
        (&["tree", "--out", "x"], "--out means nothing for tree"),
        (&["swarm", "--beside", "poll", "--out", "x"], "--beside means nothing for swarm"),
        (
            &["two", "--beside", "stream", "--out", "x"],
            "--beside: found stream, wanted another one than --mode",
        ),
        (&["domains", "--minutes", "1"], "--minutes means nothing for domains"),
        (&["domains", "--clients", "0"], "--clients: found 0, wanted at least 1"),
        (&["domains", "--seconds", "0"], "--seconds: found 0, wanted a number from 1 to 31536000"),
        (&["tree", "--seconds", "9"], "--seconds means nothing for tree"),
        (&["raise", "--seconds", "9"], "--seconds means nothing for raise"),
        (&["raise", "--clients", "1"], "--clients: found 1, wanted at least 2"),
        (&["raise", "--leaves", "1001"], "--leaves: found 1001, wanted a number from 0 to 1000"),
    ] {
        let said = fail(arguments).await;
        assert!(said.contains(complaint), "{arguments:?}: {said}");
    }
}

#[tokio::test]
async fn a_raise_is_timed_over_a_calm_network_and_a_rough_one() {
    let said = succeed(&["raise", "--clients", "50", "--leaves", "2", "--seeds", "1..2", "--json"]).await;
    let lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let wanted = [("calm", 1), ("calm", 2), ("rough", 1), ("rough", 2)];
    assert_eq!(lines.len(), wanted.len(), "{said}");
    for (line, (network, seed)) in lines.iter().zip(wanted) {
        assert_eq!((&line["network"], &line["seed"]), (&network.into(), &seed.into()));
        assert_eq!((&line["clients"], &line["leaves"]), (&50.into(), &2.into()));
        assert!(line["took_s"].as_f64().unwrap() > 0.0 && line["grants"].as_u64().unwrap() > 0, "{line}");
    }
    let said = succeed(&["raise", "--clients", "50"]).await;
    assert!(said.starts_with("each of the seeds 1 to 1; 0 leaves\nnetwork"), "{said}");
    assert!(said.contains("\ncalm            50        40        40      2.01"), "{said}");
}

#[tokio::test]
async fn scopes_are_compared_with_every_traffic() {
    let said = succeed(&["domains", "--seconds", "20", "--clients", "4", "--seeds", "1..2", "--json"]).await;
    let lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let scopes = ["client", "shared, at once", "shared, confirmed", "strict"];
    let mut wanted = Vec::new();
    for scope in scopes {
        for levels in 1..=if scope.starts_with("shared") { 3 } else { 1 } {
            for traffic in ["uniform", "skewed", "moving"] {
                wanted.extend([1, 2].map(|seed| (scope, levels, traffic, seed)));
            }
        }
    }
    assert_eq!(lines.len(), wanted.len(), "{said}");
    for (line, (scope, levels, traffic, seed)) in lines.iter().zip(wanted) {
        assert_eq!(
            (&line["scope"], &line["traffic"], &line["seed"], &line["clients"], &line["seconds"]),
            (&scope.into(), &traffic.into(), &seed.into(), &4.into(), &20.into())
        );
        assert_eq!(line["levels"], levels, "{line}");
        let count = |of: &str| line[of].as_u64().unwrap_or_else(|| panic!("no {of} in {line}"));
        assert!(count("asked") > 0 && count("granted") + count("refused") <= count("asked"), "{line}");
        assert!(count("unexcused") <= count("incorrect") && count("incorrect") <= count("refused"), "{line}");
        let over = count("granted") as f64 / count("granted_by_center") as f64 - 1.0;
        assert!((line["over"].as_f64().unwrap() - over).abs() < 1e-9, "{line}");
        assert_eq!(count("reports") > 0, scope.starts_with("shared"), "{line}");
        assert!(line["messages_per_client_second"].as_f64().unwrap() > 0.0, "{line}");
        if scope == "strict" {
            assert_eq!((&line["policy"], &line["excess"]), (&"100/10s, hard 80".into(), &0.into()), "{line}");
        }
    }
    // The same requests for everybody.
    assert_eq!(lines[0]["asked"], lines[6]["asked"]);
}

#[tokio::test]
async fn a_comparison_of_scopes_is_a_table_in_which_seeds_are_added_up() {
    let table = async |seeds: &'static str| {
        let said = succeed(&["domains", "--seconds", "20", "--clients", "4", "--seeds", seeds]).await;
        let granted: Vec<u64> = said.lines().filter_map(granted).collect();
        assert_eq!(granted.len(), 24, "{said}");
        (said, granted)
    };
    let (said, both) = table("1..2").await;
    for wanted in ["100/10s:1m", "40 requests a second", "10 ms", "for 20 s", "seeds 1 to 2", "incorrect: "] {
        assert!(said.contains(wanted), "no {wanted} in\n{said}");
    }
    let ((_, first), (_, second)) = (table("1..1").await, table("2..2").await);
    let sums: Vec<u64> = first.iter().zip(second).map(|(first, second)| first + second).collect();
    assert_eq!(both, sums, "{said}");
}

/// Of a row of that table, the column that says what was granted.
fn granted(line: &str) -> Option<u64> {
    let (_, figures) = line.split_once(" 4 ")?;
    figures.split_whitespace().nth(1)?.parse().ok()
}
