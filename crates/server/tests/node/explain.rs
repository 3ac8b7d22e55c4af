//! Explanations by a node: of who listens, of who was recalled, of a lease from above, and of what is not there.

use std::time::Duration;

use lessor_proto::message::BoundBy;
use lessor_proto::{Amount, ResourceId};
use lessor_server::node::{Explanation, NotExplained};
use lessor_server::repository::{Glob, Repository, Template};

use super::holders::{client, resource, template};
use super::village::Village;

const SECOND: Duration = Duration::from_secs(1);
const CAPACITY: f64 = 100.0;

/// The explanation of a holder by the node at that place of the village.
fn explain(village: &mut Village, node: usize, holder: &str) -> Result<Explanation, NotExplained> {
    let now = village.now;
    let node = village.net.net.node_mut(node).expect("somebody leads");
    node.explain(now, &resource(), Some(&client(holder)))
}

/// The amount that the only life of a holder would get, and the bound of that.
fn life(explanation: &Explanation) -> (Option<f64>, BoundBy) {
    let [life] = &explanation.lives[..] else { panic!("{explanation:#?}") };
    (life.gets, life.bound_by)
}

fn village(leaves: usize) -> Village {
    let mut village = Village::new(template(CAPACITY), leaves);
    (0..2).for_each(|_| {
        village.come(CAPACITY);
    });
    village.pass(200 * SECOND);
    village
}

#[test]
fn who_listens_is_bound_by_the_level_and_who_was_recalled_by_that() {
    let mut village = village(0);
    let both = ["c0", "c1"].map(|holder| life(&explain(&mut village, 0, holder).expect("it holds some")));
    assert_eq!(both, [(Some(CAPACITY / 2.0), BoundBy::Level); 2]);

    let now = village.now;
    let node = village.net.net.node_mut(0).expect("the root leads");
    node.recall(now, &resource(), &client("c0"), 60 * SECOND).expect("it holds some");
    village.pass(2 * SECOND);
    let recalled = explain(&mut village, 0, "c0").expect("it is known");
    assert_eq!(life(&recalled), (Some(0.0), BoundBy::Recall));
    assert_eq!(recalled.held_back_seconds, Some(58.0));
    let other = explain(&mut village, 0, "c1").expect("it holds some");
    assert_eq!(life(&other), (Some(CAPACITY), BoundBy::Wants), "it has what the other one gave back");
}

#[test]
fn a_leaf_says_what_binds_its_lease_and_the_root_explains_the_leaf() {
    let mut village = village(1);
    let below = explain(&mut village, 1, "c0").expect("it holds some");
    assert_eq!(life(&below), (Some(CAPACITY / 2.0), BoundBy::Level));
    assert!(below.lives[0].also.contains(&BoundBy::LeaseAbove), "{below:#?}");
    // Each bound that is named has its words, and no other.
    let named: Vec<_> = below.words.keys().copied().collect();
    assert_eq!(named, ["lease_above", "level"], "{below:#?}");
    assert_eq!(below.words["level"].what, BoundBy::Level.what());
    let above = below.above.expect("its capacity is a lease");
    assert_eq!((above.bound_by, above.fault), (Some("level"), None));
    let at_root = explain(&mut village, 0, &above.holder).expect("the leaf holds some");
    assert_eq!(life(&at_root), (Some(CAPACITY), BoundBy::Level));
    assert!(at_root.above.is_none() && at_root.lives[0].kind == "node", "{at_root:#?}");
}

#[test]
fn nobody_is_explained_who_is_not_there_and_without_a_template_nothing_is_granted() {
    let mut village = village(0);
    let nobody = explain(&mut village, 0, "nobody").map(|found| life(&found));
    let (holder, name) = ("nobody".to_owned(), resource().to_string());
    assert_eq!(nobody, Err(NotExplained::NoHolder { resource: name, holder }));
    let (now, other) = (village.now, ResourceId::new("other", 64).expect("a name"));
    let node = village.net.net.node_mut(0).expect("the root leads");
    assert_eq!(node.explain(now, &other, None).err(), Some(NotExplained::NoResource("other".into())));

    let glob = Glob::new("other").expect("a glob");
    let repository = Repository::new(vec![Template::new(glob, Amount::from_units(1))]).expect("it is valid");
    node.reload(now, repository);
    let found = explain(&mut village, 0, "c0").expect("it still holds some");
    assert_eq!(life(&found), (Some(0.0), BoundBy::NoTemplate));
    assert_eq!(found.division.configured, None);
}
