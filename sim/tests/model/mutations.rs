//! Rules taken out, and whether that is noticed within the small bounds: by the shortest way to any broken rule.
//!
//! The bounds are too small for many rules: one message of each kind in flight, two or three words of each holder, one
//! resource of rates, at most one succession, and nobody who lies. A rule that is not missed here is needed all the same:
//! `tests/mutations.rs` shows each of them, by simulations or by a story. What is written here is exact in both directions. A
//! rule that is noticed and was not must be moved, and of one that is not noticed the whole configuration was explored.
//!
//! `LESSOR_MODEL=large` looks for what is not noticed in all small configurations, and tells how far the promise itself is
//! away; that takes minutes.

use lessor_sim::mutation::GrantorMutation::{
    AckWithoutSeq, AnewIsAdded, ClaimAfterShown, ClaimAtOnce, ClaimFromLast, ClaimUnwritten, ClaimsAdded,
    ClaimsUnlimited, CreditAtDecision, EarlierUnconfirmed, EarlierUncounted, EchoRenews, EchoUncounted,
    EmptyIsNothing, EndUnchecked, IncarnationFreesOld, InheritEnded, InheritUnseen, KindAtOnce,
    KindForgotten, LeaderFreesOld, LearnAsConfigured, LearnUnwritten, LendWhatIsWanted, LineIsAll,
    LoanIsFree, LoanStays, MarkLate, MarkOfOtherKind, NamesakesAreOne, NoDomainAck, NoDriftMargin, NoGhost,
    NoNestedEnd, NoNodeGhost, NoPostCut, NoTokenCheck, NotSaidAnew, NotToldBelow, NumberBehind,
    OldConfigGrants, OutIsFree, OwnToldBack, PartsDivided, PeakTakesShare, RecallBelowPart, RenewInDebt,
    ResealEarly, RestUnguarded, ShortCharge, ShortGhost, ShortRest, ShownWithinLimit, ToldAgain, TrustAmount,
    TrustOldRecord, UncoveredLease, UnitOnTop, UnknownBelow, UntoldIsNothing,
};
use lessor_sim::mutation::HolderMutation::{
    DeadlineMoves, FromReceipt, HeldIsLease, KeepAfterPromise, NoFence, NoOrder, RenewAnyway, SafeAboveLease,
    UnitsNotHeld, UseReadBefore,
};
use lessor_sim::mutation::Mutation::{self, Grantor, Holder};

use super::bounds::Bounds;
use super::checker::{Found, explore};
use super::configurations::{Configuration, Size, streams, trees, unary};

/// A rule taken out.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) mutation: Mutation,
    /// Where.
    pub(crate) bounds: Bounds,
    /// Whether that is noticed within these bounds.
    pub(crate) noticed: bool,
}

/// Where exploring stops: no small configuration is as large.
const MOST: usize = 400_000;

/// Each rule that is noticed, and where.
const NOTICED: [(Mutation, &str); 12] = [
    (Grantor(AckWithoutSeq), "streams, other wants"),
    (Grantor(ShortCharge), "unary, a twin"),
    (Grantor(NoDriftMargin), "unary, a twin"),
    (Grantor(CreditAtDecision), "unary, repeats"),
    (Grantor(IncarnationFreesOld), "unary, a twin"),
    (Grantor(NoPostCut), "unary, a cut and other wants"),
    (Grantor(NoNestedEnd), "a node between"),
    (Grantor(NoGhost), "unary, a succession"),
    (Grantor(ShortGhost), "unary, a succession"),
    (Holder(FromReceipt), "unary"),
    (Holder(KeepAfterPromise), "unary"),
    (Holder(HeldIsLease), "a node between, streams"),
];

/// Each that is not, and the configuration that comes nearest to it.
const NOT_NOTICED: [(Mutation, &str); 58] = [
    // There are no marks, and one succession in a row.
    (Grantor(ShortRest), "unary, a succession"),
    (Grantor(RestUnguarded), "unary, a succession"),
    (Grantor(ClaimUnwritten), "unary, a succession"),
    (Grantor(ClaimFromLast), "unary, a succession"),
    (Grantor(TrustOldRecord), "unary, a succession"),
    (Grantor(LearnUnwritten), "unary, a succession"),
    (Grantor(UntoldIsNothing), "unary, a succession"),
    (Grantor(LineIsAll), "a node between"),
    // Nobody begins without a record.
    (Grantor(ShownWithinLimit), "unary, a succession"),
    (Grantor(EmptyIsNothing), "unary, a succession"),
    (Grantor(UnknownBelow), "a node between, with a successor"),
    (Grantor(LearnAsConfigured), "unary, a succession"),
    // There are no limiters.
    (Grantor(UnitOnTop), "streams, a cut"),
    (Grantor(OutIsFree), "streams, a cut"),
    // There are no gauges with units in flight.
    (Grantor(ClaimAfterShown), "a node between, with a successor"),
    // There are neither marks nor tokens, and no proofs.
    (Grantor(InheritUnseen), "a node between, with a successor"),
    (Grantor(InheritEnded), "a node between, with a successor"),
    (Grantor(MarkLate), "unary, a succession"),
    (Grantor(NoTokenCheck), "unary, a succession"),
    (Grantor(TrustAmount), "unary, a succession"),
    // Nobody lies, and nobody who has claimed once has reason to do so again.
    (Grantor(ClaimsUnlimited), "unary, a succession"),
    (Grantor(ClaimsAdded), "unary, a succession"),
    // What leaders have said to etcd is not told.
    (Grantor(EarlierUncounted), "a node between, with a successor"),
    (Grantor(EarlierUnconfirmed), "a node between, with a successor"),
    // What a leader had out is out below its successor, who has to grant some of it before the old leases are over.
    (Grantor(NoNodeGhost), "a node between, with a successor"),
    (Grantor(LeaderFreesOld), "a node between, with a successor"),
    // Heartbeats have to outlast the lease of what was cut.
    (Grantor(RenewInDebt), "streams, a cut"),
    // A client takes the answer to its last request only.
    (Holder(NoOrder), "unary"),
    // A grant has to end on its way.
    (Holder(RenewAnyway), "streams, other wants"),
    // A leader that is succeeded is dead.
    (Holder(NoFence), "streams, a succession"),
    // Nobody states a peak.
    (Grantor(PeakTakesShare), "streams, other wants"),
    (Grantor(RecallBelowPart), "streams, other wants"),
    (Grantor(LendWhatIsWanted), "streams, other wants"),
    (Grantor(LoanIsFree), "streams, other wants"),
    (Grantor(LoanStays), "streams, other wants"),
    // There are no domains.
    (Grantor(NoDomainAck), "streams, other wants"),
    (Grantor(AnewIsAdded), "streams, other wants"),
    (Grantor(OwnToldBack), "streams, other wants"),
    (Grantor(ToldAgain), "streams, other wants"),
    (Grantor(NotSaidAnew), "streams, other wants"),
    (Grantor(NotToldBelow), "streams, other wants"),
    // There are no gauges.
    (Holder(UnitsNotHeld), "unary"),
    (Holder(UseReadBefore), "unary"),
    (Grantor(KindAtOnce), "unary"),
    (Grantor(KindForgotten), "unary, a succession"),
    // No domain has a lease.
    (Grantor(PartsDivided), "unary"),
    // There is one configuration.
    (Grantor(UncoveredLease), "a node between"),
    (Grantor(OldConfigGrants), "unary, a succession"),
    (Grantor(MarkOfOtherKind), "unary, a succession"),
    (Holder(DeadlineMoves), "unary"),
    // Nothing is advised.
    (Holder(SafeAboveLease), "unary"),
    // There are no clients that echo their leases.
    (Grantor(EchoUncounted), "unary, a succession"),
    (Grantor(EchoRenews), "unary, a succession"),
    (Grantor(EndUnchecked), "unary, a succession"),
    (Grantor(ResealEarly), "unary, a succession"),
    (Grantor(ClaimAtOnce), "unary, a succession"),
    // Nobody is forgotten before an earlier report of it comes.
    (Grantor(NumberBehind), "unary"),
    // No name is given twice.
    (Grantor(NamesakesAreOne), "a node between"),
];

/// All of them, each in one configuration.
pub(crate) fn all() -> Vec<Taken> {
    let configurations = small();
    let find = |name: &str| {
        let found = configurations.iter().find(|found| found.bounds.name == name);
        found.expect("it is there").bounds.clone()
    };
    let noticed = NOTICED.iter().map(|&(mutation, name)| Taken::new(mutation, find(name), true));
    let others = NOT_NOTICED.iter().map(|&(mutation, name)| Taken::new(mutation, find(name), false));
    noticed.chain(others).collect()
}

/// Those that are not noticed, in every small configuration.
pub(crate) fn not_noticed_anywhere() -> Vec<Taken> {
    let everywhere =
        |mutation: Mutation| small().into_iter().map(move |found| Taken::new(mutation, found.bounds, false));
    NOT_NOTICED.iter().flat_map(|&(mutation, _)| everywhere(mutation)).collect()
}

fn small() -> Vec<Configuration> {
    let size = Size::Small;
    [unary(size), streams(size), trees(size)].into_iter().flatten().collect()
}

// === impl Taken ===

impl Taken {
    fn new(mutation: Mutation, bounds: Bounds, noticed: bool) -> Taken {
        let mut bounds = Bounds { mutation: Some(mutation), ..bounds };
        if mutation == Grantor(NoPostCut) {
            // A second report of both is needed, one of which comes a refresh later.
            bounds.budget.ticks = 2;
        }
        Taken { mutation, bounds, noticed }
    }

    /// The way to any broken rule.
    pub(crate) fn explore(&self) -> Found {
        explore(&self.bounds, MOST)
    }

    /// The way to a broken promise.
    pub(crate) fn explore_promise(&self) -> Found {
        explore(&Bounds { only_promise: true, ..self.bounds.clone() }, MOST)
    }
}
