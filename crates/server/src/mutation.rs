//! Rules taken out one at a time, to show that the simulator would notice.
//!
//! Without the feature `mutations` no rule can be taken out: [`Rules`] is empty and every question to it is answered yes.

/// The rules of a node, perhaps with one of them taken out.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Rules {
    #[cfg(feature = "mutations")]
    without: Option<Rule>,
    #[cfg(feature = "mutations")]
    holder_without: Option<lessor_client::mutation::Mutation>,
}

/// A rule of a grantor (section 14.3 of the protocol).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Mutation {
    /// A report counts for all grants, also for those sent after the one it shows.
    AckWithoutSeq,
    /// A charge ends a tenth before the lease does.
    ShortCharge,
    /// A charge lasts no longer than the lease, whatever clocks do.
    NoDriftMargin,
    /// A smaller grant counts when it is decided, as in Doorman.
    CreditAtDecision,
    /// A life of a client frees what its earlier ones were charged for.
    IncarnationFreesOld,
    /// After a cut, grants made since may add up to more than the limit.
    NoPostCut,
    /// A node's grants may outlive its own lease.
    NoNestedEnd,
    /// A successor takes it that nothing is out.
    NoGhost,
    /// A successor of the leader of a node below others takes it that nothing is out.
    NoNodeGhost,
    /// Capacity that may be out from before stops counting half way.
    ShortGhost,
    /// The record says that what is left from before is over in half the time that it is.
    ShortRest,
    /// More is handed out than the record says that outlasts what is left from before.
    RestUnguarded,
    /// A claim is honoured before the record allows for it beside what is left from before.
    ClaimUnwritten,
    /// Whatever is claimed comes out of the part of what may be out from before that ends last.
    ClaimFromLast,
    /// Units are claimed below a node that has shown what is out there to a successor of the node above already.
    ClaimAfterShown,
    /// Claims are honoured beyond what may be out.
    ClaimsUnlimited,
    /// Capacity that a holder has from an earlier epoch is taken out of what may be out each time it shows it, and
    /// each time another leader of a node does.
    ClaimsAdded,
    /// A report of a node's leader frees what the leader before it was charged for.
    LeaderFreesOld,
    /// Processes that bear the name of one node are one holder, whether one succeeds the other or not.
    NamesakesAreOne,
    /// Another kind of a resource is granted at once, whatever is out of the one before.
    KindAtOnce,
    /// A leader takes what is left from before for the kind that its own template says.
    KindForgotten,
    /// A mark that was written for one kind allows for as much of another.
    MarkOfOtherKind,
    /// A node hands out its lease from above also where no template covers the resource any more.
    UncoveredLease,
    /// A fraction of a part of a domain's lease is granted where that is due.
    PartsDivided,
    /// A part of a domain's lease stays with whoever has it, however many wait for one.
    PartsKept,
    /// A leader grants by an older configuration than was in force before.
    OldConfigGrants,
    /// A heartbeat renews what is out also while a cut is being carried out.
    RenewInDebt,
    /// More is handed out than the mark allows that is certainly written.
    MarkLate,
    /// Claims are honoured without a look at their tokens.
    NoTokenCheck,
    /// A token is good for as much as is claimed with it.
    TrustAmount,
    /// A new leader of a node shows as much as may be out below it, and not what has been shown to it.
    InheritUnseen,
    /// A new leader of a node shows what those below had when it began for as long as any of it may last.
    InheritEnded,
    /// A new leader of a node below is told that all is over that those before it had, whatever they are charged for.
    EarlierUncounted,
    /// The same is told when that is over before it is certain that this leader still led when it was first heard.
    EarlierUnconfirmed,
    /// A holder that was forgotten goes on after what its first report shows, whatever the later ones do.
    NumberBehind,
    /// The lease that a poller shows too early is renewed where it is to be answered unchanged.
    EchoRenews,
    /// A sticky lease that was echoed counts from the election, and not from the echo.
    EchoUncounted,
    /// A poller claims with a lease whatever it counted when the leader stopped that had granted it.
    EndUnchecked,
    /// The lease of a poller is resealed before its earlier leader has certainly stopped.
    ResealEarly,
    /// A poller claims with the first request that shows a lease of an earlier leader.
    ClaimAtOnce,
    /// A server that knows nothing learns for as long as is configured, whatever holders show.
    LearnAsConfigured,
    /// A server that learns charges what is shown to it as far as there is room.
    ShownWithinLimit,
    /// A server that learns charges what is shown to it before its record says that it does not know.
    LearnUnwritten,
    /// Below another node a record that says that nothing is out says so of what was granted before its line of succession, too.
    LineIsAll,
    /// A leader that finds no record takes it that nothing is out as long as there are no templates.
    UntoldIsNothing,
    /// A leader that finds no record takes it that nothing is out.
    EmptyIsNothing,
    /// Below another node an empty record says that nothing is known, also in the line of succession that it has just begun.
    UnknownBelow,
    /// A record is believed though holders show that it is not the last.
    TrustOldRecord,
    /// One unit more is saved up for those who ask for units than the limit brings in the burst.
    UnitOnTop,
    /// Units that were sent to be used later do not count as saved up.
    OutIsFree,
    /// A peak is due like wants: it takes from the shares of others.
    PeakTakesShare,
    /// A loan is recalled below the part that a raise goes up to.
    RecallBelowPart,
    /// Wanted capacity is lent as if nobody wanted it.
    LendWhatIsWanted,
    /// A loan is not charged to whoever has it.
    LoanIsFree,
    /// A loan is not recalled for those who are short.
    LoanStays,
    /// A client or node that says what domains did is not told which of its reports was heard last.
    NoDomainAck,
    /// Hits of a domain that are said anew are added to those that were said before.
    AnewIsAdded,
    /// Hits of a domain are told to everybody, and to those who made them.
    OwnToldBack,
    /// Hits of a domain that were told are told again with the next news.
    ToldAgain,
    /// A node says nothing anew when its stream to the node above has begun.
    NotSaidAnew,
    /// A node says what is new of a domain of which it has not said everything on its stream.
    RestSaidFirst,
    /// A node tells those below nothing of the hits that the node above tells.
    NotToldBelow,
}

// === impl Rule ===

impl Rule {
    /// All of them.
    pub const ALL: [Rule; 64] = [
        Rule::AckBySeq,
        Rule::FullCharge,
        Rule::DriftMargin,
        Rule::CreditAtAck,
        Rule::OldLivesCharged,
        Rule::PostCut,
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
        Rule::EchoCounted,
        Rule::EndChecked,
        Rule::ResealLate,
        Rule::ClaimInSteps,
        Rule::LearnAsShown,
        Rule::ShownBeyondLimit,
        Rule::LearnWritten,
        Rule::LineIsPart,
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
        Rule::AllSaidFirst,
        Rule::ToldBelow,
    ];
}

// === impl Rules ===

impl Rules {
    /// All but one of those of a grantor.
    #[cfg(feature = "mutations")]
    #[must_use]
    pub const fn without(rule: Rule) -> Rules {
        Rules { without: Some(rule), holder_without: None }
    }

    /// All but one of those that a node keeps towards the one above it.
    #[cfg(feature = "mutations")]
    #[must_use]
    pub const fn holder_without(mutation: lessor_client::mutation::Mutation) -> Rules {
        Rules { without: None, holder_without: Some(mutation) }
    }

    /// The rule that the session with the node above lacks, if any.
    #[cfg(feature = "mutations")]
    pub(crate) const fn of_holder(self) -> Option<lessor_client::mutation::Mutation> {
        self.holder_without
    }

    /// Whether that one of a grantor is kept.
    pub(crate) fn keep(self, rule: Rule) -> bool {
        #[cfg(feature = "mutations")]
        return self.without != Some(rule);
        #[cfg(not(feature = "mutations"))]
        {
            let _ = rule;
            true
        }
    }
}
