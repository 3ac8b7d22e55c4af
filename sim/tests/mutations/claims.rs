//! Claims: what holders show of an earlier epoch, and how much of it a successor believes.

use lessor_proto::Time;
use lessor_proto::message::HolderKind::{self, Client, Node as Below};
use lessor_sim::mutation::Mutation;

use super::hall::{self, Report, units};

/// Under the epoch before 10 were out, and somebody who had nothing shows 1,000.
pub(crate) fn a_liar(without: Option<Mutation>) -> Option<String> {
    let mut node = hall::successor(without, 10);
    let lie = Report { wants: 1_000.0, has: Some((1, 5, 1_000)), held: Some(1_000), ..Report::default() };
    hall::ask(&mut node, Time::ZERO, (Client, "liar", 1), &lie);
    exceeds(&node)
}

/// Under the epoch before 6 were out to a node below and 4 to a client that is not heard of. Two leaders of the node, one
/// after the other, show the 6; then a newcomer asks for all there is.
pub(crate) fn two_leaders(without: Option<Mutation>) -> Option<String> {
    let mut node = hall::successor(without, 10);
    let shown = Report { wants: 6.0, has: Some((1, 5, 6)), held: Some(6), ..Report::default() };
    for leader in 1..=2 {
        hall::ask(&mut node, Time::ZERO, (Below, "n", leader), &shown);
    }
    let wish = Report { wants: 10.0, ..Report::default() };
    let newcomer = hall::ask(&mut node, Time::ZERO, (Client, "newcomer", 1), &wish);
    let all = newcomer.saturating_add(units(6 + 4));
    (all > units(10)).then(|| format!("{all} of 10 are in use"))
}

/// Under the epoch before 10 were out to a client that is not heard of yet. Somebody who had nothing shows them, without a
/// token, and gives them back; then a newcomer asks for all there is.
pub(crate) fn without_a_token(without: Option<Mutation>) -> Option<String> {
    let shown = Report { has: Some((1, 5, 10)), held: Some(0), ..Report::default() };
    given_back(without, &shown)
}

/// The same with the token of a lease of 1, which is somebody else's tenth of it.
pub(crate) fn with_a_small_token(without: Option<Mutation>) -> Option<String> {
    let shown = Report { has: Some((1, 5, 10)), held: Some(0), token: Some(1), ..Report::default() };
    given_back(without, &shown)
}

fn given_back(without: Option<Mutation>, shown: &Report) -> Option<String> {
    let mut node = hall::careful_successor(without, 10);
    hall::ask(&mut node, Time::ZERO, (Client, "liar", 1), shown);
    let wish = Report { wants: 10.0, ..Report::default() };
    let newcomer = hall::ask(&mut node, Time::ZERO, (Client, "newcomer", 1), &wish);
    // The liar had as much as its token says, and the other one has the rest.
    let all = newcomer.saturating_add(units(10 - shown.token.unwrap_or(0)));
    (all > units(10)).then(|| format!("{all} of 10 are in use"))
}

fn exceeds(node: &lessor_server::node::Node) -> Option<String> {
    let books = node.books(Time::ZERO, &hall::resource()).expect("it was asked for");
    let most = books.children.iter().map(|child| child.charge).max().unwrap_or_default();
    let kinds: Vec<HolderKind> = books.children.iter().map(|child| child.kind).collect();
    (books.total > 10_000_000).then(|| format!("{most} of 10 are in the books, for {kinds:?}"))
}
