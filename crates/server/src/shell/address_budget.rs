//! The budget of an address: the work that all who come from there may cause together, whoever they prove to be.
//!
//! Work beyond it is not refused but waits unread, so nobody else waits for it. A host has a network of 64 bits of IPv6
//! addresses to itself, so that counts as one address.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lessor_client::internals::clock;
use lessor_proto::Time;
use lessor_proto::message::Refusal;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::call_line::CallLine;
use super::measure::{Counts, Label};
use crate::access::Tempo;

/// The limits of one address.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AddressLimits {
    /// Handshakes of TLS a second, in the long run.
    pub handshakes: f64,
    /// Calls, and messages on streams, a second, in the long run; absent: there is no limit.
    pub requests: Option<f64>,
}

/// The budgets of all addresses that somebody is connected from, or has been until a moment ago.
#[derive(Debug)]
pub(super) struct AddressBudgets {
    limits: AddressLimits,
    throttled: Arc<Counts<Throttled>>,
    under_way: Arc<AtomicUsize>,
    table: Mutex<BTreeMap<IpAddr, Arc<AddressBudget>>>,
}

/// The budget of one address.
#[derive(Debug)]
pub(super) struct AddressBudget {
    at_work: Arc<Semaphore>,
    handshakes: Mutex<Tempo>,
    requests: Option<Mutex<Tempo>>,
    calls: CallLine,
    throttled: Arc<Counts<Throttled>>,
    /// Requests that are not answered yet: of this address, and of all.
    under_way: AtomicUsize,
    all_under_way: Arc<AtomicUsize>,
}

/// A request that is under way until this is dropped.
#[derive(Debug)]
pub(super) struct UnderWay(Arc<AddressBudget>);

/// Work that had to wait, as there was too much of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Throttled {
    /// A handshake of TLS.
    Handshake,
    /// A call that is answered once.
    Call,
    /// A message on a stream.
    Message,
}

/// Handshakes of one address at work at once: some tens of milliseconds each, where the way is long.
const AT_WORK: usize = 64;
/// The time in which handshakes may come that are then done at once, and the one for requests.
const BURST: Duration = Duration::from_secs(2);
/// Requests under way, of all addresses together; each may have half of them. One that waits for its body takes some five KiB.
const UNDER_WAY: usize = 40_000;
/// Budgets that are kept before those are looked for that nobody needs.
const SWEPT: usize = 1_024;

// === impl AddressLimits ===

impl Default for AddressLimits {
    fn default() -> AddressLimits {
        AddressLimits { handshakes: 500.0, requests: None }
    }
}

// === impl Throttled ===

impl Label for Throttled {
    const NAME: &'static str = "what";
    const VALUES: &'static [&'static str] = &["handshake", "call", "message"];

    fn place(self) -> usize {
        self as usize
    }
}

// === impl AddressBudgets ===

impl AddressBudgets {
    pub(super) fn new(limits: AddressLimits, throttled: &Arc<Counts<Throttled>>) -> Arc<AddressBudgets> {
        let throttled = Arc::clone(throttled);
        Arc::new(AddressBudgets { limits, throttled, under_way: Arc::default(), table: Mutex::default() })
    }

    /// The budget of an address.
    pub(super) fn of(&self, address: IpAddr) -> Arc<AddressBudget> {
        let mut table = self.table();
        let network = network(address);
        if let Some(known) = table.get(&network) {
            return Arc::clone(known);
        }
        sweep(&mut table, AddressBudget::is_full);
        let budget = Arc::new(AddressBudget::new(self));
        table.insert(network, Arc::clone(&budget));
        budget
    }

    /// Locks the table, also after a panic: every change of it is one step.
    fn table(&self) -> MutexGuard<'_, BTreeMap<IpAddr, Arc<AddressBudget>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl AddressBudget ===

impl AddressBudget {
    fn new(all: &AddressBudgets) -> AddressBudget {
        let AddressBudgets { limits, throttled, under_way, .. } = all;
        AddressBudget {
            at_work: Arc::new(Semaphore::new(AT_WORK)),
            handshakes: Mutex::new(Tempo::new(limits.handshakes, BURST)),
            requests: limits.requests.map(|rate| Mutex::new(Tempo::new(rate, BURST))),
            calls: CallLine::default(),
            throttled: Arc::clone(throttled),
            under_way: AtomicUsize::new(0),
            all_under_way: Arc::clone(under_way),
        }
    }

    /// Begins a request.
    ///
    /// # Errors
    /// When there are as many as there may be, here or in all.
    pub(super) fn begin(self: &Arc<AddressBudget>) -> Result<UnderWay, Refusal> {
        let begin = |under_way: &AtomicUsize| under_way.fetch_add(1, Ordering::Relaxed) + 1;
        let (here, in_all) = (begin(&self.under_way), begin(&self.all_under_way));
        // Given back where it is refused, too.
        let begun = UnderWay(Arc::clone(self));
        let refusal =
            |what: &str, count, limit| Err(Refusal::Exhausted { what: what.to_owned(), count, limit });
        match (here, in_all) {
            (_, count) if count > UNDER_WAY => refusal("requests under way", count, UNDER_WAY),
            (count, _) if count > UNDER_WAY / 2 => {
                refusal("requests under way from one address", count, UNDER_WAY / 2)
            }
            _ => Ok(begun),
        }
    }

    /// The turn of a handshake, which waits until few enough from here are at work, and have been lately.
    pub(super) async fn handshake(&self) -> OwnedSemaphorePermit {
        let at_work = Arc::clone(&self.at_work);
        let mut has_waited = at_work.available_permits() == 0;
        let permit = at_work.acquire_owned().await.expect("nobody closes the semaphore");
        while let Err(at) = take(&self.handshakes, clock::now()) {
            has_waited = true;
            clock::sleep_until(at).await;
        }
        if has_waited {
            self.throttled.add(Throttled::Handshake);
        }
        permit
    }

    /// The calls that wait until they are paid for.
    pub(super) fn calls(&self) -> &CallLine {
        &self.calls
    }

    /// Pays for a call, or a message on a stream, at `now`.
    ///
    /// # Errors
    /// When there is nothing left, with the moment at which there will be.
    pub(super) fn pay_request(&self, now: Time) -> Result<(), Time> {
        self.requests.as_ref().map_or(Ok(()), |tempo| take(tempo, now))
    }

    /// Whether another like it is as good.
    fn is_full(&self, now: Time) -> bool {
        let is_idle =
            |tempo: &Mutex<Tempo>| tempo.lock().unwrap_or_else(PoisonError::into_inner).is_idle(now);
        is_idle(&self.handshakes) && self.requests.as_ref().is_none_or(is_idle)
    }
}

/// Takes one, also after a panic: a tempo is one moment.
fn take(tempo: &Mutex<Tempo>, now: Time) -> Result<(), Time> {
    tempo.lock().unwrap_or_else(PoisonError::into_inner).take(now)
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let AddressBudget { under_way, all_under_way, .. } = &*self.0;
        for count in [under_way, all_under_way] {
            count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Forgets budgets that nobody pays out of, and of which another like it is as good; now and then, as there come to be more.
pub(super) fn sweep<K: Ord, B>(table: &mut BTreeMap<K, Arc<B>>, is_full: impl Fn(&B, Time) -> bool) {
    if table.len() >= SWEPT && table.len().is_power_of_two() {
        let now = clock::now();
        table.retain(|_, budget| Arc::strong_count(budget) > 1 || !is_full(budget, now));
    }
}

/// The origin that counts as one address: one of IPv4, however it is written, or a network of 64 bits.
pub(super) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budgets(limits: AddressLimits) -> Arc<AddressBudgets> {
        AddressBudgets::new(limits, &Arc::default())
    }

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn a_network_of_ipv6_has_one_budget_and_so_has_an_address_of_ipv4() {
        let budgets = budgets(AddressLimits::default());
        let same =
            |one: &str, other: &str| Arc::ptr_eq(&budgets.of(address(one)), &budgets.of(address(other)));
        assert!(same("2001:db8:1:2:3:4:5:6", "2001:db8:1:2:ffff::"));
        assert!(!same("2001:db8:1:2::", "2001:db8:1:3::"));
        assert!(same("10.0.0.1", "::ffff:10.0.0.1"));
        assert!(!same("10.0.0.1", "10.0.0.2"));
    }

    #[test]
    fn what_nobody_needs_is_not_kept() {
        let budgets = budgets(AddressLimits::default());
        let held = budgets.of(address("10.0.0.1"));
        for number in 0..5_000_u32 {
            budgets.of(IpAddr::from(number.to_be_bytes()));
        }
        assert!(budgets.table().len() <= 2 * SWEPT, "{} are kept", budgets.table().len());
        assert!(Arc::ptr_eq(&held, &budgets.of(address("10.0.0.1"))));
    }

    #[test]
    fn requests_are_paid_for_at_the_tempo_of_their_address() {
        let budgets = budgets(AddressLimits { requests: Some(10.0), ..AddressLimits::default() });
        let (budget, start) = (budgets.of(address("10.0.0.1")), Time::ZERO + Duration::from_secs(9));
        let paid = (0..100).filter(|_| budget.pay_request(start).is_ok()).count();
        assert_eq!(paid, 20, "two seconds' worth of them");
        assert!(budgets.of(address("10.0.0.2")).pay_request(start).is_ok(), "others have their own");
        assert!(!budget.is_full(start));
    }

    #[test]
    fn one_address_has_half_of_the_requests_under_way() {
        let budgets = budgets(AddressLimits::default());
        let (one, other) = (budgets.of(address("10.0.0.1")), budgets.of(address("10.0.0.2")));
        let mut begun: Vec<UnderWay> =
            (0..UNDER_WAY / 2).map(|_| one.begin().expect("there is room")).collect();
        let refused = one.begin().expect_err("it has enough").to_string();
        assert_eq!(refused, "requests under way from one address: 20001 is over the limit of 20000");
        begun.extend((0..UNDER_WAY / 2).map(|_| other.begin().expect("there is room")));
        let third = budgets.of(address("10.0.0.3"));
        let refused = third.begin().expect_err("all are taken").to_string();
        assert_eq!(refused, "requests under way: 40001 is over the limit of 40000");
        begun.clear();
        assert!(third.begin().is_ok());
        assert_eq!(budgets.under_way.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn handshakes_beyond_their_number_wait_and_those_of_others_do_not() {
        let budgets = budgets(AddressLimits { handshakes: 1e6, ..AddressLimits::default() });
        let budget = budgets.of(address("10.0.0.1"));
        let mut at_work = Vec::new();
        for _ in 0..AT_WORK {
            at_work.push(budget.handshake().await);
        }
        let mut next = Box::pin(budget.handshake());
        assert!(futures_util::poll!(&mut next).is_pending());
        drop(budgets.of(address("10.0.0.2")).handshake().await);
        assert_eq!(budgets.throttled.of(Throttled::Handshake), 0);
        at_work.pop();
        drop(next.await);
        assert_eq!(budgets.throttled.of(Throttled::Handshake), 1);
    }
}
