//! The pass of a stream: what the holder at its other end may say by the rules of access, and how often it is listened to.
//!
//! A holder that says too much is not refused but not read: the connection fills up, and the peer waits. The node is never asked.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use lessor_client::internals::clock;
use lessor_proto::message::{Hello, HolderKind, Refusal, Up};
use lessor_proto::{ClientId, Time};

use super::super::address_budget::{AddressBudget, Throttled};
use super::super::gate::{PaidStream, Purse, Visit};
use super::super::measure::Counts;
use crate::access::{Review, StreamRights, Tempo};

/// The pass of one stream.
pub(super) struct Pass {
    kind: HolderKind,
    holder: ClientId,
    /// Absent where there are no rules.
    guest: Option<Guest>,
    /// The budget of its address; absent where it came by no network.
    address: Option<Arc<AddressBudget>>,
    throttled: Arc<Counts<Throttled>>,
    pace: Tempo,
    /// Whether the next message is paid for, and whether that has been done at its address.
    is_paid: bool,
    is_paid_at_address: bool,
    /// The wait until it can be.
    wait: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// A holder whom rules are held against.
struct Guest {
    visit: Visit,
    rights: StreamRights,
    /// The resources that any stream may have. Names that the node refuses count as well, as they are remembered.
    resources: usize,
    purse: Option<Arc<Purse>>,
    paid: Option<PaidStream>,
}

/// Messages a second of a client, and of a node, which speaks for many. Ours send some ten a second.
const MESSAGES: [f64; 2] = [500.0, 5_000.0];
/// The time in which messages may come that are then read at once.
const BURST: Duration = Duration::from_secs(2);

// === impl Pass ===

impl Pass {
    /// The pass of whoever says `hello`, on a stream that may have so many resources.
    ///
    /// # Errors
    /// When no rule lets it open a stream as that holder.
    pub(super) fn open(visit: Option<Visit>, hello: &Hello, resources: usize) -> Result<Pass, Refusal> {
        let (kind, holder) = (hello.kind, hello.holder.clone());
        let guest = visit.map(|visit| Guest::enter(visit, kind, &holder, resources)).transpose()?;
        let [of_client, of_node] = MESSAGES;
        let rate = if kind == HolderKind::Node { of_node } else { of_client };
        Ok(Pass {
            kind,
            holder,
            guest,
            address: None,
            throttled: Arc::default(),
            pace: Tempo::new(rate, BURST),
            is_paid: false,
            is_paid_at_address: false,
            wait: None,
        })
    }

    /// The same on a connection whose address has that budget; messages that have to wait are counted there.
    pub(super) fn with_budget(
        self,
        address: Option<Arc<AddressBudget>>,
        throttled: &Arc<Counts<Throttled>>,
    ) -> Pass {
        Pass { address, throttled: Arc::clone(throttled), ..self }
    }

    /// Whether the next message may be read. It is paid for once, however often that is asked before it comes.
    pub(super) fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut has_waited = self.wait.is_some();
        loop {
            if self.is_paid {
                return Poll::Ready(());
            }
            if let Some(wait) = &mut self.wait {
                std::task::ready!(wait.as_mut().poll(cx));
                self.wait = None;
            }
            match self.pay(clock::now()) {
                Ok(()) => self.is_paid = true,
                Err(at) => {
                    if !std::mem::replace(&mut has_waited, true) {
                        self.throttled.add(Throttled::Message);
                    }
                    self.wait = Some(Box::pin(clock::sleep_until(at)));
                }
            }
        }
    }

    /// A message has been read.
    pub(super) fn spend(&mut self) {
        (self.is_paid, self.is_paid_at_address) = (false, false);
    }

    /// Holds a message against the rules, and cuts what it says down to what may be said. Gives back nothing where it is passed
    /// over.
    ///
    /// # Errors
    /// When it is a report that is refused.
    pub(super) fn check(&mut self, mut up: Up) -> Result<Option<Up>, Refusal> {
        let Some(guest) = &mut self.guest else { return Ok(Some(up)) };
        let of_identity = guest.purse.as_ref().and_then(|purse| purse.resources());
        let most = of_identity.map_or(guest.resources, |most| most.min(guest.resources));
        let ruling = guest.rights.check(&mut up, Some(most));
        guest.visit.note(&ruling)?;
        Ok((!ruling.is_passed_over).then_some(up))
    }

    /// Looks at the rules again, if they have changed.
    pub(super) fn review(&mut self) -> Review {
        match &mut self.guest {
            Some(guest) if guest.visit.is_over() => Review::Over,
            Some(guest) if guest.visit.is_of_before() => guest.review(self.kind, &self.holder),
            _ => Review::Same,
        }
    }

    fn pay(&mut self, now: Time) -> Result<(), Time> {
        // Whoever has paid here need not pay again when it is the next one that has nothing left.
        if let Some(address) = self.address.as_ref().filter(|_| !self.is_paid_at_address) {
            address.pay_request(now)?;
            self.is_paid_at_address = true;
        }
        let mut ahead = self.pace;
        ahead.take(now)?;
        if let Some(purse) = self.guest.as_ref().and_then(|guest| guest.purse.as_ref()) {
            purse.pay_report(now)?;
        }
        self.pace = ahead;
        Ok(())
    }
}

impl fmt::Debug for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pass").field("holder", &self.holder).finish_non_exhaustive()
    }
}

// === impl Guest ===

impl Guest {
    fn enter(visit: Visit, kind: HolderKind, holder: &ClientId, resources: usize) -> Result<Guest, Refusal> {
        let admitted = visit.rights(kind, holder).map_err(|denial| denial.refusal())?;
        let rights = StreamRights::new(admitted, visit.stance());
        let purse = visit.purse();
        let paid = purse.as_ref().map(Purse::pay_stream).transpose()?;
        Ok(Guest { visit, rights, resources, purse, paid })
    }

    fn review(&mut self, kind: HolderKind, holder: &ClientId) -> Review {
        self.visit = self.visit.again();
        self.purse = self.visit.purse();
        let admitted = self.visit.rights(kind, holder);
        match self.rights.review(admitted, self.visit.stance()) {
            Review::Same if !self.is_within_budget() => Review::Anew,
            review => review,
        }
    }

    /// Whether there may be this stream: one that was opened without a budget pays now, as far as there is room.
    fn is_within_budget(&mut self) -> bool {
        match (&self.purse, &mut self.paid) {
            (None, _) => true,
            (Some(purse), Some(paid)) => !purse.gives_way(paid),
            (Some(purse), None) => {
                self.paid = purse.pay_stream().ok();
                self.paid.is_some()
            }
        }
    }
}
