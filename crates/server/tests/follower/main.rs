//! Followers of templates at a simulated etcd that answers at once, and what they do when something stands there that should not.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod world;

use std::time::Duration;

use lessor_server::follower::FollowerEvent;
use lessor_server::revision::{Digest, FEATURE_LEVEL, Revision, RevisionDocument};

use self::world::{World, document, templates};

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn what_is_pushed_is_in_force_at_once_and_said_so() {
    let mut world = World::new(&["root", "paris"]);
    assert_eq!((world.in_force(0), world.stands(0)), (0, false));
    world.push(1, &[document("root", 10), document("*", 20)]);
    assert_eq!([0, 1].map(|task| (world.in_force(task), world.capacity(task))), [(1, 10), (1, 20)]);
    assert_eq!([0, 1].map(|task| world.report(task).in_force), [1, 1]);
    world.push(2, &[document("root", 30), document("*", 20)]);
    assert_eq!([0, 1].map(|task| (world.in_force(task), world.capacity(task))), [(2, 30), (2, 20)]);
    // The document that had not changed was not read again.
    assert_eq!([0, 1].map(|task| world.blobs_read(task)), [2, 1]);
    assert_eq!(world.events(0), []);
}

#[test]
fn a_revision_that_cannot_be_taken_is_refused_whole_and_the_last_good_one_stays() {
    let mut world = World::new(&["root"]);
    world.push(1, &[document("*", 10)]);
    world.push(2, &[("*", "resources:\n- capacity: many\n".to_owned())]);
    assert_eq!((world.in_force(0), world.capacity(0)), (1, 10));
    let refused = world.report(0).refused.unwrap();
    assert_eq!(refused.number, 2);
    assert!(refused.why.join("\n").contains("x.yaml:2:"), "{refused:?}");
    assert!(matches!(&world.events(0)[..], [FollowerEvent::Refused(refused)] if refused.number == 2));
    world.push(3, &[("paris", templates(10))]);
    assert_eq!(world.report(0).refused.unwrap().why, ["none of its 1 documents is for node \"root\""]);
    world.push(4, &[("*", format!("version: 9\n{}", templates(10)))]);
    let why = world.report(0).refused.unwrap().why.join("\n");
    assert_eq!(why, "x.yaml: version: 9; wanted none in a document at etcd, where revisions are numbered");
    world.push_with(5, &[document("*", 30)], |revision| revision.needs = FEATURE_LEVEL + 1);
    let why = world.report(0).refused.unwrap().why.join("\n");
    assert!(why.starts_with("revision 5 needs templates of level 2, and this version"), "{why}");
    world.push(6, &[document("*", 40)]);
    assert_eq!((world.in_force(0), world.capacity(0), world.report(0).refused), (6, 40, None));
}

#[test]
fn what_is_damaged_is_refused_with_its_key_and_taken_once_it_is_mended() {
    let mut world = World::new(&["root"]);
    world.push(1, &[document("*", 10)]);
    let texts = [document("*", 20)];
    let (revision, text) = world.prepare(2, &texts);
    let blob = world.keys.blob(&revision.documents[0].blob);
    let good = world.etcd.get(&blob).unwrap().value.clone();
    for damage in [&b"foreign"[..], &good[..good.len() - 9]] {
        world.etcd.put_bytes(&blob, damage);
        world.move_head(&text);
        let why = world.report(0).refused.unwrap().why.join("\n");
        assert!(why.starts_with(&format!("key {blob:?}: ")), "{why}");
        world.etcd.put("t/head", "{\"form\":1,\"number\":0,\"digest\":\"b3:\"}");
        world.settle();
        let why = world.report(0).refused.unwrap().why.join("\n");
        assert!(why.starts_with("key \"t/head\": "), "{why}");
    }
    world.etcd.delete(&blob);
    world.move_head(&text);
    let why = world.report(0).refused.unwrap().why.join("\n");
    assert_eq!(why, format!("key {blob:?}: nothing there; wanted a document that the revision names"));
    world.etcd.put_bytes(&blob, &good);
    world.pass(MINUTE);
    assert_eq!((world.in_force(0), world.capacity(0)), (2, 20));
}

#[test]
fn a_head_that_goes_back_is_not_followed() {
    let mut world = World::new(&["root"]);
    world.push(1, &[document("*", 10)]);
    world.push(2, &[document("*", 20)]);
    let copy = world.etcd.clone();
    world.push(3, &[document("*", 30)]);
    world.restore(copy);
    assert_eq!((world.in_force(0), world.report(0).head_seen), (3, 2));
    assert_eq!(world.events(0), [FollowerEvent::Behind { found: 2, in_force: 3 }]);
    world.pass(MINUTE * 3);
    assert_eq!(world.events(0), [], "it is said once");
    // The same number with another content was never in force anywhere else.
    world.push(3, &[document("*", 40)]);
    assert_eq!((world.in_force(0), world.capacity(0)), (3, 30));
    let why = world.report(0).refused.unwrap().why.join("\n");
    assert!(why.contains("stands at etcd with") && why.ends_with("its history was rewritten"), "{why}");
    world.push(4, &[document("*", 50)]);
    assert_eq!((world.in_force(0), world.capacity(0), world.report(0).refused), (4, 50, None));
}

#[test]
fn a_revision_that_was_being_checked_when_the_head_went_back_is_not_put_in_force() {
    let mut world = World::new(&["root"]);
    world.push(1, &[document("*", 10)]);
    let copy = world.etcd.clone();
    world.hold_checks(0);
    world.push(2, &[document("*", 20)]);
    world.restore(copy);
    world.end_checks(0);
    assert_eq!((world.in_force(0), world.capacity(0)), (1, 10), "nobody else would ever have it");
    world.push(2, &[document("*", 30)]);
    assert_eq!((world.in_force(0), world.capacity(0), world.report(0).refused), (2, 30, None));
}

#[test]
fn a_head_that_moved_while_nothing_was_seen_is_found() {
    let mut world = World::new(&["root"]);
    world.push(1, &[document("*", 10)]);
    // The watch dies without a word.
    world.deafen(0);
    world.push(2, &[document("*", 20)]);
    assert_eq!(world.in_force(0), 1);
    world.pass(MINUTE);
    assert_eq!(world.in_force(0), 2);
    // And this one ends, behind a compaction.
    world.deafen(0);
    world.push(3, &[document("*", 30)]);
    world.etcd.compact(world.etcd.revision());
    world.end_watch(0);
    world.pass(Duration::from_millis(200));
    assert_eq!(world.in_force(0), 3);
    world.push(4, &[document("*", 40)]);
    assert_eq!(world.in_force(0), 4, "it watches again");
}

#[test]
fn a_watch_that_begins_behind_a_compaction_is_begun_anew() {
    let mut world = World::new(&["root"]);
    world.push(1, &[document("*", 10)]);
    world.hold_watch(0);
    world.pass(MINUTE);
    world.push(2, &[document("*", 20)]);
    world.etcd.compact(world.etcd.revision());
    world.begin_watch(0);
    world.pass(Duration::from_millis(200));
    assert_eq!(world.in_force(0), 2);
}

#[test]
fn a_draft_is_judged_by_every_task_before_it_counts() {
    let mut world = World::new(&["root", "paris"]);
    world.push(1, &[document("*", 10)]);
    let (_, good) = world.prepare(2, &[document("root", 20), document("*", 30)]);
    world.etcd.put("t/head/draft/a", &good);
    let (_, bad) = world.prepare(2, &[document("root", 20), ("*", "resources: 7".to_owned())]);
    world.etcd.put("t/head/draft/b", &bad);
    world.etcd.put("t/head/draft/c", "not a draft");
    world.settle();
    let faults = |world: &World, task, id| world.report(task).verdict(id).unwrap().faults.clone();
    assert!([0, 1].into_iter().all(|task| faults(&world, task, "a").is_empty()));
    assert_eq!(faults(&world, 0, "b"), Vec::<String>::new());
    assert!(faults(&world, 1, "b")[0].starts_with("x.yaml:1:"), "{:?}", faults(&world, 1, "b"));
    assert!(faults(&world, 0, "c")[0].starts_with("key \"t/head/draft/c\": "));
    assert_eq!([0, 1].map(|task| world.in_force(task)), [1, 1]);
    // What was checked as a draft is not read again when it counts.
    let read = world.blobs_read(0);
    world.move_head(&good);
    assert_eq!((world.in_force(0), world.blobs_read(0)), (2, read));
    // One that begins later judges the drafts that it finds.
    let late = world.begin("tokyo");
    assert_eq!(faults(&world, late, "a"), Vec::<String>::new());
}

#[test]
fn a_task_that_has_refused_what_another_has_leaves_it_to_that_one_to_lead() {
    let mut world = World::new(&["root", "root", "root/paris"]);
    world.push(1, &[document("*", 10)]);
    assert_eq!([0, 1].map(|task| world.stands(task)), [true, true]);
    // As an older version would, which does not know a field.
    world.fail_checks(0);
    world.push(2, &[document("*", 20)]);
    assert_eq!([0, 1].map(|task| world.in_force(task)), [1, 2]);
    world.pass(Duration::from_secs(10));
    assert_eq!([0, 1].map(|task| world.stands(task)), [false, true]);
    // When that one is gone nobody waits for it: the task of a node below is another's.
    world.end(1);
    world.pass(Duration::from_secs(60));
    assert!(world.stands(0));
}

#[test]
fn a_report_ends_with_its_task_and_comes_back_with_the_lease() {
    let mut world = World::new(&["root"]);
    world.push(1, &[document("*", 10)]);
    world.pass(MINUTE * 5);
    assert_eq!(world.report(0).in_force, 1);
    let key = world.task_key(0);
    world.etcd.delete(&key);
    world.etcd.restart(world.now);
    world.end_lease(0);
    world.pass(MINUTE);
    assert_eq!(world.report(0).in_force, 1);
    world.end(0);
    assert!(world.etcd.get(&key).is_none());
}

#[test]
fn an_etcd_that_is_away_changes_nothing_and_is_told_of_once() {
    let mut world = World::new(&["root"]);
    world.push(1, &[document("*", 10)]);
    world.is_away = true;
    world.end_watch(0);
    world.pass(MINUTE * 10);
    assert_eq!((world.in_force(0), world.capacity(0)), (1, 10));
    assert!(matches!(&world.events(0)[..], [FollowerEvent::Faulty(_)]));
    assert!(world.calls(0) < 400, "{} calls in ten minutes", world.calls(0));
    world.is_away = false;
    world.push(2, &[document("*", 20)]);
    world.pass(Duration::from_secs(10));
    assert_eq!(world.in_force(0), 2);
    assert_eq!(world.events(0), [FollowerEvent::Healthy]);
}

#[test]
fn a_revision_is_what_its_head_names_or_nothing() {
    let mut world = World::new(&["root"]);
    let (revision, text) = world.prepare(1, &[document("*", 10)]);
    world.move_head(&text);
    assert_eq!(world.in_force(0), 1);
    let other = Revision { number: 2, message: "another".to_owned(), ..revision };
    let text = other.encode("x").unwrap();
    world.etcd.put("t/revision/0000000002", &text);
    let head = other.head(Digest::of("something else"));
    world.etcd.put("t/head", &head.encode());
    world.settle();
    let why = world.report(0).refused.unwrap().why.join("\n");
    assert!(why.contains("as the head says"), "{why}");
    let document = RevisionDocument::new("*", "y", "");
    assert_ne!(document.blob, other.documents[0].blob);
}

fn ids(world: &World, site: usize) -> Vec<String> {
    world.overrides(site).iter().map(|(it, _)| it.id.clone()).collect()
}

#[test]
fn overrides_are_in_force_as_they_stand_there_the_newest_last_and_end_with_their_leases() {
    let mut world = World::new(&["root"]);
    world.push(1, &[document("*", 10)]);
    world.put_override("b", 60);
    world.put_override("a", 600);
    let late = world.begin("paris");
    assert_eq!([ids(&world, 0), ids(&world, late)], [["b", "a"]; 2]);
    assert_eq!((world.overridden_at_first(0), world.overridden_at_first(late)), (Some(0), Some(2)));
    world.put_override("b", 120);
    assert_eq!(ids(&world, 0), ["a", "b"], "it was put anew");
    world.pass(MINUTE);
    assert_eq!(ids(&world, 0), ["a", "b"]);
    world.pass(MINUTE);
    assert_eq!([ids(&world, 0), ids(&world, late)], [["a"]; 2]);
    world.etcd.delete(&world.keys.override_of("a"));
    world.settle();
    assert!(ids(&world, 0).is_empty() && world.events(0).is_empty());
}

#[test]
fn an_override_ends_where_etcd_is_not_heard_of_when_it_has_been_known_for_long_enough() {
    let mut world = World::new(&["root"]);
    world.put_override("a", 600);
    let until = |world: &World| world.overrides(0).iter().next().map(|(_, until)| until);
    let end = until(&world);
    assert_eq!(end, Some(world.now + MINUTE * 10));
    // It is read again, and ends no later for that.
    world.pass(MINUTE * 3);
    world.put_override("b", 60);
    assert_eq!(until(&world), end);
    world.is_away = true;
    world.pass(MINUTE * 20);
    assert_eq!((ids(&world, 0).len(), world.overrides(0).at(world.now).len()), (2, 0));
    world.is_away = false;
    world.pass(MINUTE * 2);
    assert!(ids(&world, 0).is_empty());
}

#[test]
fn an_override_that_cannot_be_read_is_said_once_and_others_count() {
    let mut world = World::new(&["root"]);
    world.etcd.put("t/head/override/odd", "{\"form\":1}");
    world.put_override("a", 600);
    assert_eq!(ids(&world, 0), ["a"]);
    assert!(
        matches!(&world.events(0)[..], [FollowerEvent::BadOverride(bad)] if bad.key == "t/head/override/odd")
    );
    world.pass(MINUTE * 3);
    assert_eq!(world.events(0), []);
}
