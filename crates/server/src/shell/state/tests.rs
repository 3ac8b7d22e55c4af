//! State directories: what is found after each way to end.

use std::path::Path;
use std::time::Duration;

use lessor_client::Transport;
use lessor_proto::{Amount, ResourceId};

use super::*;
use crate::config::ParentConfig;
use crate::record::{RestOver, Terms, Unknown};

fn node(name: &str) -> NodeConfig {
    NodeConfig::new(name, Epoch::default())
}

fn opened(directory: &Path) -> Opened {
    StateDirectory::open(directory, &node("root")).unwrap()
}

fn fault(opened: &Opened) -> String {
    opened.fault.as_ref().map(ToString::to_string).unwrap_or_default()
}

fn mark(directory: &mut StateDirectory, units: u64) {
    let marks = [(ResourceId::new("db", 256).unwrap(), Amount::from_units(units))].into();
    directory.state.apply(&RecordChange { marks, terms: Some(Terms::default()), ..RecordChange::default() });
    directory.write(None).unwrap();
}

#[test]
fn what_one_has_written_the_next_finds_and_epochs_above_it() {
    let place = tempfile::tempdir().unwrap();
    let (mut first, record) = opened(place.path()).directory.unwrap();
    assert!(record.unknown == Unknown::All, "nothing is known at first");
    mark(&mut first, 70);
    let (epoch, keys, line) = (first.epoch(), first.keys().clone(), first.line());
    drop(first);
    let (next, record) = opened(place.path()).directory.unwrap();
    assert_eq!(next.line(), line, "it succeeds the one before");
    assert!(next.epoch() > epoch);
    assert_eq!(next.keys(), &keys);
    assert_eq!(record.marks.values().collect::<Vec<_>>(), [&Amount::from_units(70)]);
    assert!(
        record.unknown == Unknown::Nothing && !record.unsure,
        "the machine has not been started again: {record:?}"
    );
}

#[test]
fn one_that_dies_before_it_has_written_anything_leaves_what_it_knew_of_those_before() {
    let above = ParentConfig { servers: vec!["above:1".into()], transport: Transport::Stream, eager: true };
    // What was left below another node may be over sooner than the record says.
    for (parent, tells) in [(None, true), (Some(above), false)] {
        let place = tempfile::tempdir().unwrap();
        let first = {
            let (mut first, _) = opened(place.path()).directory.unwrap();
            let terms = Terms { longest_lease: Duration::from_secs(3_600), ..Terms::default() };
            first.state.apply(&RecordChange { terms: Some(terms), ..RecordChange::default() });
            first.write(None).unwrap();
            first.epoch()
        };
        let config = NodeConfig { parent, ..node("root") };
        let second = StateDirectory::open(place.path(), &config).unwrap().directory.unwrap().0.epoch();
        let (_, record) = StateDirectory::open(place.path(), &config).unwrap().directory.unwrap();
        let stopped: Vec<Epoch> = record.stops.keys().copied().collect();
        assert_eq!(stopped, if tells { vec![first, second] } else { vec![second] });
    }
}

#[test]
fn what_a_later_version_has_written_stays_as_it_is_and_nobody_begins() {
    let place = tempfile::tempdir().unwrap();
    drop(opened(place.path()));
    let file = place.path().join("state");
    let later = std::fs::read_to_string(&file).unwrap().replace("lessor state 1", "lessor state 3");
    std::fs::write(&file, &later).unwrap();
    let fault = StateDirectory::open(place.path(), &node("root")).unwrap_err().to_string();
    let said = "a later version has written it: form 3, and this one reads form 2";
    assert_eq!(fault, format!("state file {}: {said}", file.display()));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), later);
}

#[test]
fn only_the_owner_may_read_the_key() {
    use std::os::unix::fs::PermissionsExt;
    let place = tempfile::tempdir().unwrap();
    drop(opened(place.path()));
    let mode = std::fs::metadata(place.path().join("token.key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn after_another_start_of_the_machine_it_is_not_known_who_acts() {
    let place = tempfile::tempdir().unwrap();
    let (directory, _) = opened(place.path()).directory.unwrap();
    let clock = Clock { boot: Some("another start".to_owned()), at: machine().at };
    std::fs::write(place.path().join("state"), directory.state.encode(&clock)).unwrap();
    drop(directory);
    let (_, record) = opened(place.path()).directory.unwrap();
    assert!(record.unsure);
}

#[test]
fn what_was_left_from_before_is_over_by_the_same_clock_and_by_another_all_of_it_counts() {
    let (lease, safe_lease) = (Duration::from_secs(30), Duration::from_secs(900));
    let id = ResourceId::new("db", 256).unwrap();
    let found = |boot: Option<String>| {
        let place = tempfile::tempdir().unwrap();
        let (mut directory, _) = opened(place.path()).directory.unwrap();
        let rest_over = Some(RestOver { lease, safe_lease });
        directory.state.apply(&RecordChange {
            marks: [(id.clone(), Amount::from_units(70))].into(),
            rests: [(id.clone(), Amount::from_units(20))].into(),
            terms: Some(Terms { rest_over, ..Default::default() }),
            ..RecordChange::default()
        });
        let clock = Clock { boot, at: machine().at.earlier(Duration::from_secs(10)) };
        std::fs::write(place.path().join("state"), directory.state.encode(&clock)).unwrap();
        drop(directory);
        let (next, record) = opened(place.path()).directory.unwrap();
        let begun = next.state.read().unwrap();
        assert!(begun.rests.is_empty(), "all of it may be claimed and renewed now: {begun:?}");
        assert_eq!(record.rests[&id], Amount::from_units(20));
        record.rest_over
    };
    let same = found(machine().boot);
    assert!(same.lease <= lease - Duration::from_secs(10), "{same:?}");
    assert!(same.safe_lease <= safe_lease - Duration::from_secs(10), "{same:?}");
    assert_eq!(found(Some("another start".to_owned())), RestOver { lease, safe_lease });
}

#[test]
fn a_directory_is_used_by_one_process() {
    let place = tempfile::tempdir().unwrap();
    let _first = opened(place.path());
    let fault = StateDirectory::open(place.path(), &node("root")).unwrap_err().to_string();
    let place = place.path().display();
    assert_eq!(fault, format!("state directory {place}: another process holds {place}/lock"));
}

#[test]
fn a_damaged_record_is_told_of_and_another_is_begun() {
    let place = tempfile::tempdir().unwrap();
    let (mut first, _) = opened(place.path()).directory.unwrap();
    mark(&mut first, 70);
    let line = first.line();
    drop(first);
    let file = place.path().join("state");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, &text[..text.len() / 2]).unwrap();
    let opened_again = opened(place.path());
    let told = fault(&opened_again);
    assert!(told.starts_with(&format!("state file {}: it is damaged", file.display())), "{told}");
    let (next, record) = opened_again.directory.unwrap();
    assert!(record.unknown == Unknown::All && record.marks.is_empty(), "{record:?}");
    assert_ne!(next.line(), line, "it knows nothing of the one before, and succeeds nobody");
}

#[test]
fn a_record_of_another_node_is_told_of_and_left_alone() {
    let place = tempfile::tempdir().unwrap();
    drop(StateDirectory::open(place.path(), &node("leaf")).unwrap());
    let before = std::fs::read(place.path().join("state")).unwrap();
    let opened = opened(place.path());
    let file = place.path().join("state");
    let wanted = format!("state file {}: it is of node \"leaf\", and this is node \"root\"", file.display());
    assert_eq!(fault(&opened), wanted);
    assert!(opened.directory.is_none());
    assert_eq!(std::fs::read(file).unwrap(), before);
}

#[test]
fn a_directory_that_cannot_be_made_is_told_of() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("file");
    std::fs::write(&file, "").unwrap();
    let opened = opened(&file.join("state"));
    let told = fault(&opened);
    assert!(told.starts_with(&format!("state directory: cannot make {}", file.display())), "{told}");
    assert!(opened.directory.is_none());
}

/// Permissions do not stop those who run tests as root; a directory in the way stops everybody.
#[test]
fn a_record_that_cannot_be_kept_up_does_not_stay_behind() {
    let place = tempfile::tempdir().unwrap();
    drop(opened(place.path()));
    std::fs::create_dir(place.path().join("state.new")).unwrap();
    let told = fault(&opened(place.path()));
    let file = place.path().join("state");
    assert!(told.starts_with(&format!("state directory: cannot write {}", file.display())), "{told}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "", "it would be out of date");
    std::fs::remove_dir(place.path().join("state.new")).unwrap();
    let (_, record) = opened(place.path()).directory.unwrap();
    assert_eq!(record.unknown, Unknown::All);
}

#[test]
fn a_key_that_makes_no_sense_is_told_of() {
    let place = tempfile::tempdir().unwrap();
    let key = place.path().join("token.key");
    std::fs::write(&key, "secret").unwrap();
    let opened = opened(place.path());
    assert_eq!(fault(&opened), format!("token key {}: wanted 64 hexadecimal digits", key.display()));
    assert!(opened.directory.is_none());
}
