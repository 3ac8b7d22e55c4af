//! A holding: what one client believes that it may use of one resource, and what it uses.

use lessor_proto::Time;
use lessor_proto::message::Order;
use lessor_server::repository::Kind;

use crate::plan::Hold;
use crate::program::Used;
use crate::resource::Resource;

/// A holding of one resource by one client, as the client believes.
#[derive(Clone, Debug)]
pub(crate) struct Holding {
    pub(crate) client: u32,
    pub(crate) resource: u16,
    /// The kind for which it takes the resource. Clients of Doorman's take it for none.
    pub(crate) kind: Kind,
    /// Whether its units are uses in a window.
    pub(crate) is_window: bool,
    /// Whether it has heard that it is of the other, and is to come back as that.
    pub(crate) reopens: bool,
    pub(crate) priority: i64,
    pub(crate) weight: u32,
    /// The amount that it states, or that was measured last.
    pub(crate) wants: f64,
    pub(crate) is_measured: bool,
    /// In millionths.
    pub(crate) amount: u64,
    /// Until when, by its clock.
    pub(crate) until: Time,
    /// Units of a gauge under permits, which outlast a smaller lease, and until when each of them is in use.
    pub(crate) used: Vec<Used>,
    /// All units that are out, in millionths, whatever has become of their lease.
    pub(crate) in_use: u64,
    pub(crate) stance: Stance,
    /// The amount that the domain whose lease it is was told last, in millionths.
    pub(crate) told: u64,
    /// The part of it that is in the sums.
    pub(crate) counted: u64,
    /// Whether any was counted since it was last said that none was.
    pub(crate) was_counted: bool,
    /// When the next look at its end is due.
    pub(crate) lapse: Time,
    /// The grant that it holds.
    pub(crate) order: Option<Order>,
    /// The last promise: to use no more than so much under grants up to that one.
    pub(crate) promised: Option<(Order, u64)>,
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
            kind: of.kind,
            is_window: of.window.is_some(),
            reopens: false,
            priority: hold.priority,
            weight: hold.weight,
            wants: hold.wants,
            is_measured: hold.is_measured,
            amount: 0,
            until: Time::ZERO,
            used: Vec::new(),
            in_use: 0,
            stance: Stance::Kept,
            told: 0,
            counted: 0,
            was_counted: false,
            lapse: Time::MAX,
            order: None,
            promised: None,
        }
    }

    /// Its process is another, and knows nothing.
    pub(crate) fn reborn(&mut self) {
        self.amount = 0;
        self.until = Time::ZERO;
        self.used = Vec::new();
        self.in_use = 0;
        self.stance = Stance::Kept;
        self.told = 0;
        self.reopens = false;
        self.order = None;
        self.promised = None;
    }

    /// It was dropped: whatever is adopted after that begins anew.
    pub(crate) fn begin_anew(&mut self) {
        (self.order, self.promised, self.told) = (None, None, 0);
    }

    /// It has a lease of nothing, and uses units beyond that by leave of whoever granted it.
    pub(crate) fn goes_by(&mut self, order: Option<Order>) {
        self.order = self.order.max(order);
    }

    pub(crate) fn order(&self) -> Option<Order> {
        self.order
    }

    pub(crate) fn use_at(&self, local: Time) -> u64 {
        let leased = if local < self.until { self.amount } else { 0 };
        leased.max(self.in_use_at(local))
    }

    /// Units that are in use under permits whose lease has not ended.
    pub(crate) fn in_use_at(&self, local: Time) -> u64 {
        self.used.iter().filter(|used| local < used.until).map(|used| used.micros).sum()
    }
}
