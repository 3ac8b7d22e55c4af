//! Rules taken out, and whether that is noticed within the small bounds: by the shortest way to any broken rule.
//!
//! The bounds are too small for many rules: one message of each kind in flight, two or three words of each holder, one
//! resource of rates, at most one succession, and nobody who lies. A rule that is not missed here is needed all the same:
//! `tests/mutations.rs` shows each of them, by simulations or by a story. What is written here is exact in both directions. A
//! rule that is noticed and was not must be moved, and of one that is not noticed the whole configuration was explored: without
//! it if anything asks for it there, and with it if nothing does, as that is the same.
//!
//! `LESSOR_MODEL=large` looks for what is not noticed in all small configurations, and tells how far the promise itself is
//! away; that takes minutes.

use lessor_sim::mutation::GrantorRule::{
    AckBySeq, AllSaidFirst, AnewReplaces, ClaimFromOrigin, ClaimInLine, ClaimInSteps, ClaimLate,
    ClaimNumbered, ClaimWritten, ClaimedOnce, ClaimsLimited, CoveredLease, CreditAtAck, DomainAck,
    DrainedWantsNothing, DriftMargin, EarlierConfirmed, EarlierCounted, EchoCounted, EchoUnchanged,
    EmptyIsUnknown, EndByClock, EndChecked, EndTold, EveryCut, FrozenGrowsNot, FullCharge, FullGhost,
    FullRest, Ghost, IdleMakeRoom, InheritLasting, InheritShown, JobsAbove, JobsOfLate, KeptFree,
    KindAfterOther, KindRecorded, KnownBelow, KnownKinds, LearnAsShown, LearnRunning, LearnWritten,
    LendUnwanted, LineIsPart, LoanCharged, LoanRecalled, MarkFirst, MarkOfKind, NamesakesAreTwo, NestedEnd,
    NewestConfig, NodeGhost, NodesCapped, NumberAhead, OldLeadersCharged, OldLivesCharged, OldRecordDoubted,
    OutCounts, OwnKept, PartsInTurn, PartsWhole, PassedOverAnew, PeakFromSpare, PollersProven, PostCut,
    RecallToPart, RenewAfterDebt, RenewedInTime, ResealLate, RestChecked, RestGuarded, RevokedBorrowsNothing,
    RevokedCharged, RevokedWantsNothing, RoomFromIdle, SaidAnew, SecondIsOwn, ShownBeyondLimit, ShownIsAll,
    ShownKept, TokenAmount, TokenCheck, ToldBelow, ToldOnce, TurnsCorrected, TurnsWait, UnansweredReplaced,
    UnitsCounted, UnitsToldOnce, UnitsWithinBurst, UntoldIsUnknown,
};
use lessor_sim::mutation::HolderRule::{
    DeadlineStays, Fence, FromReport, InOrder, JobsSaidAgain, LeaseOutlives, OutIsHeld, PromiseKept,
    RefundFirst, RenewAdopted, SafeWhileLearning, SafeWithinLease, UnitsAreUnits, UnitsHeld, UseReadAfter,
    UsesLeft, WindowOutlasted,
};
use lessor_sim::mutation::Mutation::{self, Grantor, Holder};

use super::bounds::Bounds;
use super::checker::{Found, explore, explore_once};
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
    (Grantor(AckBySeq), "streams, other wants"),
    (Grantor(FullCharge), "unary, a twin"),
    (Grantor(DriftMargin), "unary, a twin"),
    (Grantor(CreditAtAck), "unary, repeats"),
    (Grantor(OldLivesCharged), "unary, a twin"),
    (Grantor(PostCut), "unary, a cut and other wants"),
    (Grantor(NestedEnd), "a node between"),
    (Grantor(Ghost), "unary, a succession"),
    (Grantor(FullGhost), "unary, a succession"),
    (Holder(FromReport), "unary"),
    (Holder(PromiseKept), "unary"),
    (Holder(OutIsHeld), "a node between, streams"),
];

/// Each that is not, and the configuration that comes nearest to it.
const NOT_NOTICED: [(Mutation, &str); 97] = [
    // There are no marks, and one succession in a row.
    (Grantor(FullRest), "unary, a succession"),
    (Grantor(RestGuarded), "unary, a succession"),
    (Grantor(ClaimWritten), "unary, a succession"),
    (Grantor(ClaimFromOrigin), "unary, a succession"),
    (Grantor(OldRecordDoubted), "unary, a succession"),
    (Grantor(LearnWritten), "unary, a succession"),
    (Grantor(UntoldIsUnknown), "unary, a succession"),
    (Grantor(LineIsPart), "a node between"),
    // Nobody begins without a record.
    (Grantor(ShownBeyondLimit), "unary, a succession"),
    (Grantor(EmptyIsUnknown), "unary, a succession"),
    (Grantor(KnownBelow), "a node between, with a successor"),
    (Grantor(LearnAsShown), "unary, a succession"),
    // There are no limiters.
    (Grantor(UnitsWithinBurst), "streams, a cut"),
    (Grantor(OutCounts), "streams, a cut"),
    // There are no gauges with units in flight.
    (Grantor(ShownIsAll), "a node between, with a successor"),
    (Grantor(UnitsCounted), "a node between, with a successor"),
    // No report comes after a later one.
    (Grantor(ClaimLate), "unary, a succession"),
    // There are neither marks nor tokens, and no proofs.
    (Grantor(InheritShown), "a node between, with a successor"),
    (Grantor(InheritLasting), "a node between, with a successor"),
    (Grantor(MarkFirst), "unary, a succession"),
    (Grantor(TokenCheck), "unary, a succession"),
    (Grantor(TokenAmount), "unary, a succession"),
    // Nobody lies, and nobody who has claimed once has reason to do so again.
    (Grantor(ClaimsLimited), "unary, a succession"),
    (Grantor(ClaimedOnce), "unary, a succession"),
    // What leaders have said to etcd is not told.
    (Grantor(EarlierCounted), "a node between, with a successor"),
    (Grantor(EarlierConfirmed), "a node between, with a successor"),
    // What a leader had out is out below its successor, who has to grant some of it before the old leases are over.
    (Grantor(NodeGhost), "a node between, with a successor"),
    (Grantor(OldLeadersCharged), "a node between, with a successor"),
    // There is one cut in a debt.
    (Grantor(EveryCut), "unary, a cut and other wants"),
    // Heartbeats have to outlast the lease of what was cut.
    (Grantor(RenewAfterDebt), "streams, a cut"),
    // A client takes the answer to its last request only.
    (Holder(InOrder), "unary"),
    // A grant has to end on its way.
    (Holder(RenewAdopted), "streams, other wants"),
    // A leader that is succeeded is dead.
    (Holder(Fence), "streams, a succession"),
    // Nobody states a peak.
    (Grantor(PeakFromSpare), "streams, other wants"),
    (Grantor(RecallToPart), "streams, other wants"),
    (Grantor(LendUnwanted), "streams, other wants"),
    (Grantor(LoanCharged), "streams, other wants"),
    (Grantor(LoanRecalled), "streams, other wants"),
    // There are no domains.
    (Grantor(DomainAck), "streams, other wants"),
    (Grantor(AnewReplaces), "streams, other wants"),
    (Grantor(OwnKept), "streams, other wants"),
    (Grantor(ToldOnce), "streams, other wants"),
    (Grantor(SaidAnew), "streams, other wants"),
    (Grantor(PassedOverAnew), "streams, other wants"),
    (Grantor(AllSaidFirst), "streams, other wants"),
    (Grantor(ToldBelow), "streams, other wants"),
    // There are no gauges.
    (Holder(UnitsHeld), "unary"),
    (Holder(UseReadAfter), "unary"),
    (Grantor(KindAfterOther), "unary"),
    (Grantor(KindRecorded), "unary, a succession"),
    // There are neither rules of access nor limits nor caps.
    (Grantor(RevokedCharged), "streams, other wants"),
    (Grantor(RevokedWantsNothing), "streams, other wants"),
    (Grantor(RevokedBorrowsNothing), "a node between, streams"),
    (Grantor(FrozenGrowsNot), "streams, other wants"),
    (Grantor(DrainedWantsNothing), "streams, other wants"),
    (Grantor(IdleMakeRoom), "unary"),
    (Grantor(RoomFromIdle), "unary"),
    (Grantor(NodesCapped), "a node between"),
    // No domain has a lease.
    (Grantor(PartsWhole), "unary"),
    (Grantor(PartsInTurn), "unary"),
    // No record begins after another one.
    (Grantor(ClaimInLine), "a node between, with a successor"),
    // Nobody shows a lease that is over.
    (Grantor(LearnRunning), "unary, a succession"),
    // Nothing is taken in turn.
    (Grantor(KeptFree), "unary"),
    (Grantor(TurnsCorrected), "unary"),
    (Grantor(TurnsWait), "unary"),
    // There is one configuration.
    (Grantor(CoveredLease), "a node between"),
    (Grantor(NewestConfig), "unary, a succession"),
    (Grantor(MarkOfKind), "unary, a succession"),
    (Holder(DeadlineStays), "unary"),
    // Nothing is advised.
    (Holder(SafeWithinLease), "unary"),
    (Holder(SafeWhileLearning), "unary"),
    // Kinds stay.
    (Holder(UnitsAreUnits), "unary"),
    // There are no clients that echo their leases.
    (Grantor(EchoCounted), "unary, a succession"),
    (Grantor(EchoUnchanged), "unary, a succession"),
    (Grantor(ShownKept), "unary, a succession"),
    (Grantor(EndTold), "a node between"),
    (Grantor(UnansweredReplaced), "a node between"),
    (Grantor(EndChecked), "unary, a succession"),
    (Grantor(EndByClock), "unary, a succession"),
    (Grantor(ClaimNumbered), "unary, a succession"),
    (Grantor(RestChecked), "unary, a succession"),
    // Nobody speaks in the name of another.
    (Grantor(PollersProven), "unary, a succession"),
    (Grantor(ResealLate), "unary, a succession"),
    (Grantor(ClaimInSteps), "unary, a succession"),
    // Nobody is forgotten before an earlier report of it comes.
    (Grantor(NumberAhead), "unary"),
    // All are of one version.
    (Grantor(KnownKinds), "a node between, streams"),
    // No name is given twice.
    (Grantor(NamesakesAreTwo), "a node between"),
    // There are no windows.
    (Holder(LeaseOutlives), "unary"),
    (Holder(WindowOutlasted), "unary"),
    (Holder(RefundFirst), "unary"),
    (Holder(UsesLeft), "unary"),
    // Nobody waits for jobs.
    (Grantor(JobsAbove), "a node between, streams"),
    (Grantor(JobsOfLate), "a node between, streams"),
    (Holder(JobsSaidAgain), "a node between, streams"),
    // No second limit is tried, and nothing is let pass.
    (Grantor(SecondIsOwn), "streams, other wants"),
    (Grantor(UnitsToldOnce), "streams, other wants"),
    // Nobody is due anything.
    (Grantor(RenewedInTime), "streams, other wants"),
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
        if mutation == Grantor(PostCut) {
            // A second report of both is needed, one of which comes a refresh later.
            bounds.budget.ticks = 2;
        }
        Taken { mutation, bounds, noticed }
    }

    /// The way to any broken rule, unless nothing ever asks for this one.
    pub(crate) fn explore(&self) -> Option<Found> {
        if !self.noticed {
            let whole = explore_once(&Bounds { mutation: None, ..self.bounds.clone() }, MOST);
            assert!(whole.exhausted, "{}: {whole:?}", self.bounds.name);
            if !whole.asked.has(self.mutation) {
                return None;
            }
        }
        Some(explore(&self.bounds, MOST))
    }

    /// The way to a broken promise.
    pub(crate) fn explore_promise(&self) -> Found {
        explore(&Bounds { only_promise: true, ..self.bounds.clone() }, MOST)
    }
}
