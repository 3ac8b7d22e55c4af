//! Rules of a holder that can be taken out one by one, to see that a test notices.
//!
//! Without the feature `mutations` nothing can be taken out, and every question about it is the constant `false`.

/// A rule taken out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutation {
    /// Grants are adopted in whatever order they come.
    NoOrder,
    /// A lease is counted from the receipt of its grant.
    FromReceipt,
    /// A renewal extends a lease also if the last grant was not adopted.
    RenewAnyway,
    /// Capacity that a report gives back is still used.
    KeepAfterPromise,
    /// Leaders of epochs below the fence are reported to, and their grants are adopted.
    NoFence,
    /// A node reports that it holds its lease, instead of all that it has handed out.
    HeldIsLease,
    /// A client reports that it holds its lease, also while more units of a gauge are in use.
    UnitsNotHeld,
    /// Units of a gauge in use are read before the limit is lowered, and a report is built of that.
    UseReadBefore,
    /// The deadline of a permit moves ahead with each lease, also after it has passed.
    DeadlineMoves,
    /// Safe capacity is used also where it is more than the last lease gave.
    SafeAboveLease,
}

// === impl Mutation ===

impl Mutation {
    /// All of them.
    pub const ALL: [Mutation; 10] = [
        Mutation::NoOrder,
        Mutation::FromReceipt,
        Mutation::RenewAnyway,
        Mutation::KeepAfterPromise,
        Mutation::NoFence,
        Mutation::HeldIsLease,
        Mutation::UnitsNotHeld,
        Mutation::UseReadBefore,
        Mutation::DeadlineMoves,
        Mutation::SafeAboveLease,
    ];
}
