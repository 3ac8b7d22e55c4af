//! Rules taken out, each with a configuration in which that is noticed: the shortest way to any broken rule, and to the
//! promise itself.

use lessor_sim::mutation::GrantorMutation::{
    AckWithoutSeq, ClaimsUnlimited, CreditAtDecision, IncarnationFreesOld, LeaderFreesOld, NoDriftMargin,
    NoGhost, NoNestedEnd, NoPostCut, RenewInDebt, ShortCharge, ShortGhost,
};
use lessor_sim::mutation::HolderMutation::{
    FromReceipt, HeldIsLease, KeepAfterPromise, NoFence, NoOrder, RenewAnyway,
};
use lessor_sim::mutation::Mutation::{self, Grantor, Holder};

use super::bounds::Bounds;
use super::checker::{Found, explore};
use super::configurations::{Size, streams, trees, unary};

/// A rule taken out.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) mutation: Mutation,
    /// Where.
    pub(crate) bounds: Bounds,
    /// Whether that is noticed within these bounds.
    pub(crate) missed: bool,
}

/// Where exploring stops.
const MOST: usize = 150_000;

/// Each rule, where it is missed, and whether it is. Those that are not need more than these bounds have: a holder that
/// lies, a grant that ends on its way, a succession of leaders and both ends of a stream.
const TABLE: [(Mutation, &str, bool); 18] = [
    (Grantor(AckWithoutSeq), "streams, other wants", true),
    (Grantor(ShortCharge), "unary, a twin", true),
    (Grantor(NoDriftMargin), "unary, a twin", true),
    (Grantor(CreditAtDecision), "unary, repeats", true),
    (Grantor(IncarnationFreesOld), "unary, a twin", true),
    (Grantor(NoPostCut), "unary, a cut and other wants", true),
    (Grantor(NoNestedEnd), "a node between", true),
    (Grantor(NoGhost), "unary, a succession", true),
    (Grantor(ShortGhost), "unary, a succession", true),
    (Grantor(ClaimsUnlimited), "unary, a succession", false),
    (Grantor(LeaderFreesOld), "a node between, with a successor", false),
    (Grantor(RenewInDebt), "streams, a cut", false),
    (Holder(NoOrder), "unary", false),
    (Holder(FromReceipt), "unary", true),
    (Holder(RenewAnyway), "streams, other wants", false),
    (Holder(KeepAfterPromise), "unary", true),
    (Holder(NoFence), "streams, a succession", false),
    (Holder(HeldIsLease), "a node between, streams", false),
];

/// All of them.
pub(crate) fn all() -> Vec<Taken> {
    let size = Size::Small;
    let configurations: Vec<_> = [unary(size), streams(size), trees(size)].into_iter().flatten().collect();
    let find =
        |name: &str| configurations.iter().find(|found| found.bounds.name == name).expect("it is there");
    let taken = TABLE.map(|(mutation, name, missed)| {
        let mut bounds = Bounds { mutation: Some(mutation), ..find(name).bounds.clone() };
        if mutation == Grantor(NoPostCut) {
            // A second report of both is needed, one of which comes a refresh later.
            bounds.budget.ticks = 2;
        }
        Taken { mutation, bounds, missed }
    });
    taken.into()
}

// === impl Taken ===

impl Taken {
    /// The ways to any broken rule, and to a broken promise.
    pub(crate) fn explore(&self) -> (Found, Found) {
        let promise = Bounds { only_promise: true, ..self.bounds.clone() };
        (explore(&self.bounds, MOST), explore(&promise, MOST))
    }
}
