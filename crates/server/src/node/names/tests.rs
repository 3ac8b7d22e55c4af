//! Tests of the names of nodes.

use super::*;

fn id(name: &str) -> ClientId {
    ClientId::new(name, 256).unwrap()
}

fn at(seconds: u64) -> Time {
    Time::ZERO + Duration::from_secs(seconds)
}

fn notice(path: &[&str]) -> NodeNotice {
    NodeNotice { path: path.iter().map(ToString::to_string).collect(), name_taken: false }
}

const PATIENCE: Duration = Duration::from_secs(10);

#[test]
fn a_loop_is_spelled_out_by_whoever_is_told_of_it() {
    let mut paris = Names::new("paris".to_owned());
    assert_eq!(paris.take(&notice(&["root", "europe"])), Ok(()));
    assert_eq!(paris.path(), ["root", "europe", "paris"]);
    let why = paris.take(&notice(&["root", "paris", "europe"])).unwrap_err();
    assert_eq!(why, "the nodes form a loop: paris -> europe -> paris");
    assert_eq!((paris.path(), paris.status().circle), (vec!["paris".to_owned()], Some(why.clone())));
    assert_eq!(paris.next_warning(), Some(NameWarning::Loop { why }));
    assert_eq!(paris.take(&notice(&["root"])), Ok(()));
    assert_eq!(paris.status().circle, None, "it is served again");
}

#[test]
fn a_node_above_is_not_served_and_nor_is_one_of_the_own_name() {
    let mut paris = Names::new("paris".to_owned());
    paris.take(&notice(&["root", "europe"])).unwrap();
    let why = |refused: Result<(), Refusal>| refused.unwrap_err().to_string();
    let refused = why(paris.check(HolderKind::Node, &id("root")));
    assert_eq!(refused, "the nodes form a loop: root -> europe -> paris -> root");
    let refused = why(paris.check(HolderKind::Node, &id("paris")));
    assert_eq!(refused, "the nodes form a loop: paris -> paris");
    assert_eq!(paris.check(HolderKind::Node, &id("louvre")), Ok(()));
    assert_eq!(paris.check(HolderKind::Client, &id("root")), Ok(()), "clients have names of their own");
    assert_eq!(paris.status().loops_refused, 2);
}

#[test]
fn two_are_two_when_the_elder_goes_on() {
    let mut root = Names::new("root".to_owned());
    let (paris, elder, younger) =
        (id("paris"), NodeLife::Alone(Incarnation(1)), NodeLife::Alone(Incarnation(2)));
    let mut hear = |seconds, life| root.hear(at(seconds), &paris, life, PATIENCE);
    assert!(!hear(1, elder) && !hear(2, elder));
    assert!(!hear(3, younger) && !hear(4, younger), "the elder may be dead");
    assert!(hear(5, elder), "it is not");
    assert!(!hear(6, younger), "which is known");
    assert!(root.notice(&paris).name_taken);
    assert_eq!(root.status().duplicates, ["paris"]);
    assert_eq!(
        root.forget(at(15), PATIENCE),
        std::slice::from_ref(&paris),
        "the elder was silent for too long"
    );
    assert!(!root.notice(&paris).name_taken);
    assert_eq!(root.next_warning(), Some(NameWarning::Duplicate { node: "paris".to_owned() }));
}

#[test]
fn leaders_of_one_line_are_one() {
    let mut root = Names::new("root".to_owned());
    let heard: Vec<bool> =
        (1..9).map(|seconds| root.hear(at(seconds), &id("paris"), NodeLife::Line(7), PATIENCE)).collect();
    assert_eq!(heard, [false; 8]);
    assert!(root.status().duplicates.is_empty());
}
