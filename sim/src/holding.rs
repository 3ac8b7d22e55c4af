//! A holding: what one client believes that it may use of one resource, and what it uses.

use lessor_proto::message::Order;
use lessor_proto::{Amount, Time};
use lessor_server::repository::Kind;

use crate::plan::Hold;
use crate::program::Used;
use crate::resource::Resource;

/// A holding of one resource by one client, as the client believes.
#[derive(Clone, Debug)]
pub(crate) struct Holding {
    pub(crate) client: u32,
    pub(crate) resource: u16,
    pub(crate) taken_as: TakenAs,
    pub(crate) demand: StatedDemand,
    /// In millionths.
    pub(crate) amount: u64,
    /// Until when, by its clock.
    pub(crate) until: Time,
    pub(crate) permits: PermitsOut,
    pub(crate) stance: Stance,
    /// The amount that the domain whose lease it is was told last, in millionths.
    pub(crate) told: u64,
    pub(crate) sums: CountedBelief,
    pub(crate) grant: HeldGrant,
}

/// The kind for which a client takes a resource. Clients of Doorman's take it for none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TakenAs {
    pub(crate) kind: Kind,
    /// Whether its units are uses in a window.
    pub(crate) is_window: bool,
    /// Whether the client has heard that it is of the other, and is to come back as that.
    pub(crate) reopens: bool,
    /// Whether it is the companion of another one, which is asked for when the client is told to.
    pub(crate) is_companion: bool,
}

/// The grant that a client holds of a resource.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct HeldGrant {
    pub(crate) order: Option<Order>,
    /// The last promise: to use no more than so much under grants up to that one.
    pub(crate) promised: Option<(Order, u64)>,
}

/// The demand that a client states of a resource.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StatedDemand {
    pub(crate) priority: i64,
    pub(crate) weight: u32,
    /// The amount that it states, or that was measured last.
    pub(crate) wants: f64,
    pub(crate) is_measured: bool,
}

/// The units of a gauge that are out.
#[derive(Clone, Default, Debug)]
pub(crate) struct PermitsOut {
    /// Units under permits, which outlast a smaller lease, and until when each of them is in use.
    pub(crate) used: Vec<Used>,
    /// All units that are out, in millionths, whatever has become of their lease.
    pub(crate) in_use: u64,
}

/// The part of a belief that is in the sums of the oracle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CountedBelief {
    /// The amount, in millionths.
    pub(crate) counted: u64,
    /// Whether any was counted since it was last said that none was.
    pub(crate) was_counted: bool,
    /// When the next look at its end is due.
    pub(crate) lapse: Time,
}

/// The intention of a program with a holding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stance {
    Kept,
    /// It has let go of it, and the client gives it back when nothing is in use any more.
    Leaving,
    /// It was given back.
    Gone,
}

// === impl Holding ===

impl Holding {
    pub(crate) fn new(client: u32, hold: &Hold, of: &Resource) -> Holding {
        Holding {
            client,
            resource: hold.resource,
            taken_as: TakenAs {
                kind: of.kind,
                is_window: of.window.is_some(),
                reopens: false,
                is_companion: of.companion_of.is_some(),
            },
            demand: StatedDemand {
                priority: hold.priority,
                weight: hold.weight,
                wants: hold.wants,
                is_measured: hold.is_measured,
            },
            amount: 0,
            until: Time::ZERO,
            permits: PermitsOut::default(),
            stance: if of.companion_of.is_some() { Stance::Gone } else { Stance::Kept },
            told: 0,
            sums: CountedBelief { counted: 0, was_counted: false, lapse: Time::MAX },
            grant: HeldGrant::default(),
        }
    }

    /// Its process is another, and knows nothing.
    pub(crate) fn reborn(&mut self) {
        self.amount = 0;
        self.until = Time::ZERO;
        self.permits = PermitsOut::default();
        self.stance = if self.taken_as.is_companion { Stance::Gone } else { Stance::Kept };
        self.told = 0;
        self.taken_as.reopens = false;
        self.grant = HeldGrant::default();
    }

    /// It was dropped: whatever is adopted after that begins anew.
    pub(crate) fn begin_anew(&mut self) {
        (self.grant, self.told) = (HeldGrant::default(), 0);
    }

    /// It has a lease of nothing, and uses units beyond that by leave of whoever granted it.
    pub(crate) fn goes_by(&mut self, order: Option<Order>) {
        self.grant.order = self.grant.order.max(order);
    }

    /// Its client reports that it uses no more than `held` under grants up to `order`. A report may still be on its way out
    /// when the holding is given back: what is granted after that is numbered from the start again, and no promise is about it.
    pub(crate) fn promise(&mut self, order: Order, held: Amount) {
        if self.grant.order.is_some() {
            self.grant.promised = Some((order, held.as_micros()));
        }
    }

    /// Whether its client asks for it, as of all that is no companion.
    pub(crate) fn is_asked(&self) -> bool {
        !self.taken_as.is_companion || self.stance == Stance::Kept
    }

    pub(crate) fn order(&self) -> Option<Order> {
        self.grant.order
    }

    pub(crate) fn use_at(&self, local: Time) -> u64 {
        let leased = if local < self.until { self.amount } else { 0 };
        leased.max(self.in_use_at(local))
    }

    /// Units that are in use under permits whose lease has not ended.
    pub(crate) fn in_use_at(&self, local: Time) -> u64 {
        self.permits.in_use_at(local)
    }
}

// === impl PermitsOut ===

impl PermitsOut {
    /// Units that are in use under permits whose lease has not ended.
    fn in_use_at(&self, local: Time) -> u64 {
        self.used.iter().filter(|used| local < used.until).map(|used| used.micros).sum()
    }
}
