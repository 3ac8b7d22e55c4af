//! Tests of traces of workloads.

use super::*;

const HEADER: &str = "t,client:1,client:2,client:3,client:4,client:5";

fn wants(text: &str) -> Result<Vec<WantsChange>, String> {
    read_wants("w.csv", text.as_bytes(), &Scenario::One.plan()).map_err(|error| error.to_string())
}

fn faults(text: &str) -> Result<Vec<ScheduledFault>, String> {
    read_faults("m.csv", text.as_bytes(), &Scenario::Seven.plan()).map_err(|error| error.to_string())
}

#[test]
fn rows_become_changes() {
    let read = wants(&format!("{HEADER}\n0,1,2,3,4,5\r\n7,1,2,3,4,5.5\n\n")).unwrap();
    assert_eq!(read[0], WantsChange { at_seconds: 0, wants: vec![1.0, 2.0, 3.0, 4.0, 5.0] });
    assert_eq!(read[1], WantsChange { at_seconds: 7, wants: vec![1.0, 2.0, 3.0, 4.0, 5.5] });
    assert_eq!(read.len(), 2);
}

#[test]
fn faults_name_clients_and_jobs() {
    let read = faults("t,kind,target\n60,spike,client:1:1:2\n120,lose,dc:1:1\n120,restore,dc:1:1\n");
    let events: Vec<FaultEvent> = read.unwrap().iter().map(|fault| fault.event).collect();
    let wanted =
        [FaultEvent::Spike { client: 1 }, FaultEvent::Lose { job: 2 }, FaultEvent::Restore { job: 2 }];
    assert_eq!(events, wanted);
    assert_eq!(faults("t,kind,target\n"), Ok(Vec::new()));
}

#[test]
fn bad_wants_are_refused_with_their_place() {
    for (text, wanted) in [
        ("", "w.csv:1: column 1: found \"\", wanted \"t\""),
        ("t,client:1\n", "w.csv:1: column 3: found nothing, wanted \"client:2\""),
        ("t,a,b\n", "w.csv:1: column 2: found \"a\", wanted \"client:1\""),
        (&format!("{HEADER},more\n"), "w.csv:1: column 7: found \"more\", wanted 6 columns"),
        (HEADER, "w.csv:1: row: found the end of the file, wanted at least the wants at 0 s"),
        (&format!("{HEADER}\n0,1,2\n"), "w.csv:2: row: found 3 fields, wanted 6, one for each column"),
        (&format!("{HEADER}\n5,1,2,3,4,5\n"), "w.csv:2: t: found \"5\", wanted 0 in the first row"),
        (
            &format!("{HEADER}\n0,1,2,x,4,5\n"),
            "w.csv:2: client:3: found \"x\", wanted a finite number of at least 0",
        ),
        (
            &format!("{HEADER}\n0,1,2,3,4,-5\n"),
            "w.csv:2: client:5: found \"-5\", wanted a finite number of at least 0",
        ),
        (
            &format!("{HEADER}\n0,NaN,2,3,4,5\n"),
            "w.csv:2: client:1: found \"NaN\", wanted a finite number of at least 0",
        ),
        (
            &format!("{HEADER}\n0,1,2,3,4,5\n0,1,2,3,4,5\n"),
            "w.csv:3: t: found \"0\", wanted a whole number of seconds from 1 to 300",
        ),
        (
            &format!("{HEADER}\n0,1,2,3,4,5\n301,1,2,3,4,5\n"),
            "w.csv:3: t: found \"301\", wanted a whole number of seconds from 1 to 300",
        ),
    ] {
        assert_eq!(wants(text), Err(wanted.to_owned()), "{text}");
    }
}

#[test]
fn bad_faults_are_refused_with_their_place() {
    for (row, wanted) in [
        ("60,spike", "m.csv:2: row: found 2 fields, wanted 3, one for each column"),
        ("-1,lose,root", "m.csv:2: t: found \"-1\", wanted a whole number of seconds from 0 to 3600"),
        ("60,lost,root", "m.csv:2: kind: found \"lost\", wanted spike, lose, restore, elect or noelect"),
        ("60,lose,client:1:1:1", "m.csv:2: target: found \"client:1:1:1\", wanted the name of a job"),
        ("60,spike,root", "m.csv:2: target: found \"root\", wanted the name of a client"),
    ] {
        assert_eq!(faults(&format!("t,kind,target\n{row}\n")), Err(wanted.to_owned()), "{row}");
    }
}

#[test]
fn faults_stand_beside_the_trace() {
    for name in ["a/x_1.trace.csv", "a/x_1.trace.csv.gz"] {
        assert_eq!(faults_beside(Path::new(name)).unwrap(), Path::new("a/x_1.mishaps.csv"));
    }
    let error = faults_beside(Path::new("a/x.csv")).unwrap_err().to_string();
    assert!(error.starts_with("a/x.csv: the name of a trace ends with .trace.csv"), "{error}");
}
