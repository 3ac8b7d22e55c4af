//! Rules taken out one at a time, to show that the simulator would notice.
//!
//! Without the feature `mutations` no rule can be taken out: every question to [`Rules`] is answered yes.

use lessor_client::internals::mutation::HolderRules;

/// The rules of a node, perhaps with one of them taken out.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Rules {
    #[cfg(feature = "mutations")]
    without: Option<Rule>,
    of_holder: HolderRules,
}

/// A rule of a grantor (section 14.3 of the protocol).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Rule {
    /// A report counts for the grants up to the one that it shows.
    AckBySeq,
    /// A charge lasts for as long as its lease.
    FullCharge,
    /// A charge lasts longer than its lease, by as much as clocks may err.
    DriftMargin,
    /// A smaller grant counts when it is acknowledged, or what was granted before has ended.
    CreditAtAck,
    /// A life of a client leaves what its earlier ones were charged for.
    OldLivesCharged,
    /// After a cut, grants made since add up to no more than the limit.
    PostCut,
    /// A further cut leaves in force what the cuts before it allow.
    EveryCut,
    /// A node's grants end with its own lease.
    NestedEnd,
    /// A successor counts what may be out from before.
    Ghost,
    /// A successor of the leader of a node below others counts what may be out from before.
    NodeGhost,
    /// Capacity that may be out from before counts until it has certainly ended.
    FullGhost,
    /// The record says of what is left from before that it is over no earlier than it is.
    FullRest,
    /// No more is handed out than the record says that outlasts what is left from before.
    RestGuarded,
    /// A claim is honoured once the record allows for it beside what is left from before.
    ClaimWritten,
    /// A claim comes out of that part of what may be out from before to which it belongs.
    ClaimFromOrigin,
    /// No units are claimed below a node that has shown what is out there to a successor of the node above.
    ShownIsAll,
    /// A holder that has claimed nothing yet may claim with a later report.
    ClaimLate,
    /// A holder is told nothing while it uses units of a gauge that nobody counts.
    UnitsCounted,
    /// Claims are honoured up to what may be out.
    ClaimsLimited,
    /// Capacity that a holder has from an earlier epoch is taken out of what may be out once, however often it is shown, and by
    /// however many leaders of a node.
    ClaimedOnce,
    /// A report of a node's leader leaves what the leader before it was charged for.
    OldLeadersCharged,
    /// Processes that bear the name of one node are one holder only if one succeeds the other.
    NamesakesAreTwo,
    /// Another kind of a resource is granted once nothing is out of the one before.
    KindAfterOther,
    /// A leader takes what is left from before for the kind that the record says.
    KindRecorded,
    /// A mark that was written for one kind allows for nothing of another.
    MarkOfKind,
    /// A node hands out its lease from above only where a template covers the resource.
    CoveredLease,
    /// A part of a domain's lease is granted whole or not at all.
    PartsWhole,
    /// A part of a domain's lease goes round among those who wait for one.
    PartsInTurn,
    /// Units that a holder is short of for good are kept free for it: nobody of a lower priority takes them, nor anybody for a
    /// turn.
    KeptFree,
    /// A unit that is had or lost between two turns counts as much as it would have at a turn.
    TurnsCorrected,
    /// The turn of a holder that polls waits for its poll.
    TurnsWait,
    /// A leader grants by no older configuration than was in force before.
    NewestConfig,
    /// A heartbeat renews nothing while a cut is being carried out.
    RenewAfterDebt,
    /// No more is handed out than the mark allows that is certainly written.
    MarkFirst,
    /// Claims are honoured by their tokens.
    TokenCheck,
    /// A token is good for the amount that it says.
    TokenAmount,
    /// A new leader of a node shows no more than has been shown to it.
    InheritShown,
    /// A new leader of a node shows what those below had when it began only until that has ended.
    InheritLasting,
    /// A new leader of a node below is told what those before it are charged for.
    EarlierCounted,
    /// It is told that this is over once it is certain that this leader still led when it was first heard.
    EarlierConfirmed,
    /// A holder that was forgotten goes on after the greatest number that its reports show.
    NumberAhead,
    /// The lease that a poller shows too early is answered unchanged.
    EchoUnchanged,
    /// A poller is left a lease for which nobody vouches, below another node and before that is learnt.
    ShownKept,
    /// A poller to whom nothing can be granted is told when the lease that it shows is over.
    EndTold,
    /// A life of a poller that was never answered ends with the next.
    UnansweredReplaced,
    /// A sticky lease that was echoed counts from the echo.
    EchoCounted,
    /// A poller claims with a lease that still counted when the leader stopped that had granted it.
    EndChecked,
    /// That is judged by the end of the lease on the clock of the leader that granted it.
    EndByClock,
    /// A poller claims a lease of a leader before the last only if it was left when the last one stopped, and is still.
    RestChecked,
    /// The lease of a poller is resealed once its earlier leader has certainly stopped.
    ResealLate,
    /// A poller claims with the second request that shows a lease of an earlier leader.
    ClaimInSteps,
    /// The claim of a poller is numbered as the lease by which it was resealed.
    ClaimNumbered,
    /// A holder that draws no incarnation gives something back with the token of its life, or on the connection on which that
    /// began.
    PollersProven,
    /// A server that knows nothing learns for as long as leases may last that holders show.
    LearnAsShown,
    /// A server that learns charges what is shown to it, whether there is room or not.
    ShownBeyondLimit,
    /// A server that learns charges what is shown to it once its record says that it does not know.
    LearnWritten,
    /// Below another node a record says nothing of what was granted before its line of succession.
    LineIsPart,
    /// A leader that finds no record takes it, as long as there are no templates, that anything may be out.
    UntoldIsUnknown,
    /// A leader that finds no record takes it that anything may be out.
    EmptyIsUnknown,
    /// While learning, what holders show counts only as far as its lease runs: by its date where a poller shows it, and of a
    /// client no more than the lease gave, whatever it still uses of another one. A node is granted no more than that.
    LearnRunning,
    /// Below another node nobody claims what was granted before the line of succession that the record is of.
    ClaimInLine,
    /// Below another node an empty record says that nothing is out in the line of succession that it has just begun.
    KnownBelow,
    /// A record is not believed when holders show that it is not the last.
    OldRecordDoubted,
    /// No more units are saved up for those who ask for units than the limit brings in the burst.
    UnitsWithinBurst,
    /// Units that were sent to be used later count as saved up.
    OutCounts,
    /// A peak takes nothing from the shares of others.
    PeakFromSpare,
    /// A loan is recalled down to the part that a raise goes up to.
    RecallToPart,
    /// Only capacity that nobody wants is lent.
    LendUnwanted,
    /// A loan is charged to the holder that has it.
    LoanCharged,
    /// A loan is recalled for those who are short.
    LoanRecalled,
    /// A client or node that says what domains did is told which of its reports was heard last.
    DomainAck,
    /// Hits of a domain that are said anew replace those that were said before.
    AnewReplaces,
    /// Hits of a domain are told to everybody but those who made them.
    OwnKept,
    /// Hits of a domain that were told are not told again.
    ToldOnce,
    /// A node says everything anew when its stream to the node above has begun.
    SaidAnew,
    /// A client that spoke of domains by policies which were not in force yet says everything anew when they are.
    PassedOverAnew,
    /// A node says everything of a domain on its stream before it says what is new of it.
    AllSaidFirst,
    /// A node tells those below of the hits that the node above tells.
    ToldBelow,
    /// A holder is sent only the kinds of message that it knows.
    KnownKinds,
    /// A lease that is revoked stays charged until that is acknowledged, or its lease has ended.
    RevokedCharged,
    /// A holder that may hold nothing any more counts as one that wants nothing.
    RevokedWantsNothing,
    /// Nothing is lent to a node that may hold nothing of it any more.
    RevokedBorrowsNothing,
    /// Of what is frozen nobody gets more.
    FrozenGrowsNot,
    /// A holder that an override drains counts as one that wants nothing.
    DrainedWantsNothing,
    /// Where there is no room, a holder that has and wants nothing makes some.
    IdleMakeRoom,
    /// Nobody makes room that has something.
    RoomFromIdle,
    /// The caps of a template hold for nodes as for clients.
    NodesCapped,
    /// A node passes on to the node above what is said and asked of jobs below it, and the other way round.
    JobsAbove,
    /// A holder that comes while others wait for a job is asked to say when one is done.
    JobsOfLate,
    /// The companion of a resource has the capacity of the second limit, whatever that of the resource is.
    SecondIsOwn,
    /// Units that a report says were let pass, or asked of a second limit, count once.
    UnitsToldOnce,
    /// Everything on a stream is renewed before it has to be.
    RenewedInTime,
}

#[cfg(feature = "mutations")]
thread_local! {
    static ASKED: std::cell::Cell<u128> = const { std::cell::Cell::new(0) };
}

/// Takes the rules of grantors that this thread has asked for since they were last taken: a bit for each, by its number.
#[cfg(feature = "mutations")]
#[must_use]
pub fn take_asked() -> u128 {
    ASKED.take()
}

// === impl Rule ===

impl Rule {
    /// All of them.
    pub const ALL: [Rule; 92] = [
        Rule::AckBySeq,
        Rule::FullCharge,
        Rule::DriftMargin,
        Rule::CreditAtAck,
        Rule::OldLivesCharged,
        Rule::PostCut,
        Rule::EveryCut,
        Rule::NestedEnd,
        Rule::Ghost,
        Rule::NodeGhost,
        Rule::FullGhost,
        Rule::FullRest,
        Rule::RestGuarded,
        Rule::ClaimWritten,
        Rule::ClaimFromOrigin,
        Rule::ShownIsAll,
        Rule::ClaimLate,
        Rule::UnitsCounted,
        Rule::ClaimsLimited,
        Rule::ClaimedOnce,
        Rule::OldLeadersCharged,
        Rule::NamesakesAreTwo,
        Rule::KindAfterOther,
        Rule::KindRecorded,
        Rule::MarkOfKind,
        Rule::CoveredLease,
        Rule::PartsWhole,
        Rule::PartsInTurn,
        Rule::KeptFree,
        Rule::TurnsCorrected,
        Rule::TurnsWait,
        Rule::NewestConfig,
        Rule::RenewAfterDebt,
        Rule::MarkFirst,
        Rule::TokenCheck,
        Rule::TokenAmount,
        Rule::InheritShown,
        Rule::InheritLasting,
        Rule::EarlierCounted,
        Rule::EarlierConfirmed,
        Rule::NumberAhead,
        Rule::EchoUnchanged,
        Rule::ShownKept,
        Rule::EndTold,
        Rule::UnansweredReplaced,
        Rule::EchoCounted,
        Rule::EndChecked,
        Rule::EndByClock,
        Rule::RestChecked,
        Rule::ResealLate,
        Rule::ClaimInSteps,
        Rule::ClaimNumbered,
        Rule::PollersProven,
        Rule::LearnAsShown,
        Rule::ShownBeyondLimit,
        Rule::LearnWritten,
        Rule::LineIsPart,
        Rule::ClaimInLine,
        Rule::LearnRunning,
        Rule::UntoldIsUnknown,
        Rule::EmptyIsUnknown,
        Rule::KnownBelow,
        Rule::OldRecordDoubted,
        Rule::UnitsWithinBurst,
        Rule::OutCounts,
        Rule::PeakFromSpare,
        Rule::RecallToPart,
        Rule::LendUnwanted,
        Rule::LoanCharged,
        Rule::LoanRecalled,
        Rule::DomainAck,
        Rule::AnewReplaces,
        Rule::OwnKept,
        Rule::ToldOnce,
        Rule::SaidAnew,
        Rule::PassedOverAnew,
        Rule::AllSaidFirst,
        Rule::ToldBelow,
        Rule::KnownKinds,
        Rule::RevokedCharged,
        Rule::RevokedWantsNothing,
        Rule::RevokedBorrowsNothing,
        Rule::FrozenGrowsNot,
        Rule::DrainedWantsNothing,
        Rule::IdleMakeRoom,
        Rule::RoomFromIdle,
        Rule::NodesCapped,
        Rule::JobsAbove,
        Rule::JobsOfLate,
        Rule::SecondIsOwn,
        Rule::UnitsToldOnce,
        Rule::RenewedInTime,
    ];
}

// === impl Rules ===

impl Rules {
    /// All but one of those of a grantor.
    #[cfg(feature = "mutations")]
    #[must_use]
    pub fn without(rule: Rule) -> Rules {
        Rules { without: Some(rule), of_holder: HolderRules::default() }
    }

    /// All of a grantor, and those of a holder towards the node above.
    #[cfg(feature = "mutations")]
    #[must_use]
    pub const fn with_holder(of_holder: HolderRules) -> Rules {
        Rules { without: None, of_holder }
    }

    /// The rules of the session with the node above.
    pub(crate) const fn of_holder(self) -> HolderRules {
        self.of_holder
    }

    /// Whether that one of a grantor is kept.
    pub(crate) fn keep(self, rule: Rule) -> bool {
        #[cfg(feature = "mutations")]
        {
            ASKED.set(ASKED.get() | 1 << rule as u32);
            self.without != Some(rule)
        }
        #[cfg(not(feature = "mutations"))]
        {
            let _ = rule;
            true
        }
    }
}
