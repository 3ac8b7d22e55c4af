//! One try: all parts are asked, and then all are taken or none is.

use std::sync::Arc;

use lessor_algorithms::tiers::Ask;
use lessor_proto::Time;

use super::{Combination, Of, Part, Refusal, TogetherAnswer, TogetherPermit};
use crate::denied::Denied;
use crate::domain::{Cut, Grant, Held, LockedDomain, Reservation};
use crate::gauge;
use crate::limiter::Hold;
use crate::window::{Attention, LockedWindow, WindowKey};

/// The units that are asked of a part.
#[derive(Clone, Copy, Debug)]
struct Asked<'a> {
    part: &'a Part<'a>,
    least: u32,
    most: u32,
}

/// A lease that is held, and what can be taken of it.
#[derive(Debug)]
struct Room<'a> {
    hold: Hold<'a>,
    units: u32,
}

/// The permit of a gauge, or its denial.
type Taken = Result<gauge::Permit, Denied>;
/// The room in a lease, or its denial.
type Found<'a> = Result<Room<'a>, Denied>;
/// The key of a window, or why it cannot be remembered.
type Key = Result<Arc<WindowKey>, Denied>;
/// The parts that are windows at which somebody should look.
type Looks = Vec<(usize, Attention)>;

/// A window that is locked, and the uses that can be made of it.
#[derive(Debug)]
struct WindowStand<'a> {
    locked: LockedWindow<'a>,
    room: Result<u32, Denied>,
}

/// The stand of a part on the request.
#[derive(Debug)]
enum Stand<'a> {
    /// It costs nothing.
    Free,
    /// The number of its units that are out for the request, or its denial.
    Gauge(Result<u32, Denied>),
    Rate(Found<'a>),
    Window(Result<WindowStand<'a>, Denied>),
    /// The lease is not asked where policies refuse.
    Domain(Reservation<'a>, Option<Found<'a>>),
}

// === impl Combination ===

impl Combination<'_> {
    /// Asks all parts, and takes what they agree on. What is `held` already is used, and given back if nothing is granted.
    pub(super) fn attempt(&self, held: Held, clock: &dyn Fn() -> Time) -> Result<TogetherPermit, Refusal> {
        let copies = self.parts.iter().map(|part| part.price.copies(u32::MAX)).fold(self.copies, u32::min);
        let asked: Vec<Asked> = self.parts.iter().map(|part| Asked::new(part, self.min, copies)).collect();
        let now = clock();
        let permits = permits(&asked, held, now);
        let keys = keys(&asked, clock);
        let (permit, looks) =
            Attempt { asked: &asked, permits: &permits, keys: &keys }.decide(copies, now, clock);
        // Nobody is called under a lock.
        for (index, attention) in looks {
            if let (Of::Window { keys: of, .. }, Some(Ok(key))) = (asked[index].part.of, &keys[index]) {
                of.call(key, attention);
            }
        }
        let mut permit = permit?;
        // Units come back without a lock, as that wakes who waits for them.
        let held = asked.iter().zip(permits).filter_map(|(asked, units)| {
            let mut units = units?.ok()?;
            units.shrink(asked.part.price.units(permit.copies));
            units.pass_on(|| now);
            Some(units)
        });
        permit.held = held.collect();
        Ok(permit)
    }
}

/// The parts of an attempt, with the permits of its gauges and the keys of its windows.
#[derive(Clone, Copy)]
struct Attempt<'a, 'p> {
    asked: &'a [Asked<'p>],
    permits: &'a [Option<Taken>],
    keys: &'a [Option<Key>],
}

/// Takes the permits of gauges, in one order for everybody, so that of two who want the same gauges one gets
/// them.
fn permits(asked: &[Asked<'_>], held: Held, now: Time) -> Vec<Option<Taken>> {
    let mut permits: Vec<_> = asked.iter().map(|_| None).collect();
    if let Held::Permit(part, mut permit) = held {
        permit.grow(asked[part].most, now);
        permits[part] = Some(Ok(permit));
    }
    for (_, index, gauge) in in_order(asked, |of| match of {
        Of::Gauge(gauge) => Some((gauge.address(), *gauge)),
        _ => None,
    }) {
        let Asked { least, most, .. } = asked[index];
        permits[index].get_or_insert_with(|| gauge.take_between(least, most, || now));
    }
    permits
}

/// The keys of windows.
fn keys(asked: &[Asked<'_>], clock: &dyn Fn() -> Time) -> Vec<Option<Key>> {
    let keys = asked.iter().map(|asked| match asked.part.of {
        Of::Window { keys, key } if asked.most > 0 => Some(keys.find(key, clock)),
        _ => None,
    });
    keys.collect()
}

/// The windows of all keys, locked in order.
fn windows(keys: &[Option<Key>]) -> Vec<(usize, LockedWindow<'_>)> {
    let found =
        keys.iter().enumerate().filter_map(|(index, key)| Some((index, key.as_ref()?.as_ref().ok()?)));
    let mut found: Vec<_> = found.collect();
    found.sort_by_key(|(_, key)| key.address());
    found.into_iter().map(|(index, key)| (index, key.locked())).collect()
}

/// The shards of all domains, locked in order.
fn locked<'a>(asked: &[Asked<'a>]) -> Vec<(usize, LockedDomain<'a>)> {
    let domains = in_order(asked, |of| match of {
        Of::Domain { domains, name, .. } => Some((domains.address(), (*domains, *name))),
        _ => None,
    });
    domains.into_iter().map(|(_, index, (domains, name))| (index, domains.locked(name))).collect()
}

/// The room in the leases of all rates, and of the domains whose policies agree; locked in order.
fn rooms<'a>(asked: &[Asked<'a>], reserved: &[Option<Reservation<'_>>], now: Time) -> Vec<Option<Found<'a>>> {
    let mut rooms: Vec<_> = asked.iter().map(|_| None).collect();
    for (_, index, lease) in in_order(asked, |of| match of {
        Of::Domain { lease, .. } | Of::Rate(lease) => Some((lease.address(), *lease)),
        Of::Gauge(_) | Of::Window { .. } => None,
    }) {
        let wanted = reserved[index].as_ref().map_or(asked[index].most, Reservation::wanted);
        if wanted > 0 {
            let mut hold = lease.hold(now);
            let room = hold.room(asked[index].least, wanted);
            rooms[index] = Some(room.map(|units| Room { hold, units }));
        }
    }
    rooms
}

/// The parts of one kind that cost anything, by address.
fn in_order<'a, T>(
    asked: &[Asked<'a>],
    of: impl Fn(&Of<'a>) -> Option<(usize, T)>,
) -> Vec<(usize, usize, T)> {
    let parts = asked.iter().enumerate().filter(|(_, asked)| asked.most > 0);
    let chosen =
        parts.filter_map(|(index, asked)| of(&asked.part.of).map(|(address, thing)| (address, index, thing)));
    let mut chosen: Vec<_> = chosen.collect();
    chosen.sort_by_key(|&(address, ..)| address);
    chosen
}

/// Takes the largest number of copies on which all agree, or nothing.
fn settle(
    asked: &[Asked<'_>],
    mut stands: Vec<Stand<'_>>,
    copies: u32,
    now: Time,
) -> (Result<TogetherPermit, Refusal>, Looks) {
    let allowed: Option<Vec<u32>> =
        asked.iter().zip(&stands).map(|(asked, stand)| stand.allows(asked)).collect();
    let Some(allowed) = allowed else { return refuse(asked, stands, now) };
    let granted = allowed.iter().copied().fold(copies, u32::min);
    let taken =
        asked.iter().zip(&mut stands).map(|(asked, stand)| stand.take(asked.part.price.units(granted)));
    if taken.filter(|is_taken| !is_taken).count() > 0 {
        return refuse(asked, stands, now);
    }
    let bound_by = allowed.iter().position(|&allowed| allowed == granted && granted < copies);
    let answers = asked.iter().zip(stands).zip(&allowed).map(|((asked, stand), &allowed)| {
        let is_least = allowed == granted && granted < copies;
        stand.grant(asked.part.price.units(granted), is_least, asked.most)
    });
    let (answers, looks) = with_looks(answers);
    (Ok(TogetherPermit { copies: granted, bound_by, answers, held: Vec::new() }), looks)
}

/// Takes nothing.
fn refuse(
    asked: &[Asked<'_>],
    stands: Vec<Stand<'_>>,
    now: Time,
) -> (Result<TogetherPermit, Refusal>, Looks) {
    let answers = asked.iter().zip(stands).map(|(asked, stand)| stand.refuse(now, asked.least));
    let (answers, looks) = with_looks(answers);
    let retry_at = answers.iter().filter_map(|answer| answer.retry_at(now)).max();
    (Err(Refusal { answers, retry_at, retry_after: retry_at.map(|at| at.since(now)) }), looks)
}

/// The answers of all parts, and the looks that they ask for.
fn with_looks(answers: impl Iterator<Item = (TogetherAnswer, Attention)>) -> (Vec<TogetherAnswer>, Looks) {
    let (answers, attention): (Vec<_>, Vec<_>) = answers.unzip();
    let looks = attention.into_iter().enumerate().filter(|(_, attention)| *attention > Attention::None);
    (answers, looks.collect())
}

// === impl Attempt ===

impl<'p> Attempt<'_, 'p> {
    /// Asks all but the gauges, under their locks, and takes what all agree on. A window has its uses dated by the clock as it
    /// is read under its lock; without windows `now` will do.
    fn decide(
        self,
        copies: u32,
        now: Time,
        clock: &dyn Fn() -> Time,
    ) -> (Result<TogetherPermit, Refusal>, Looks) {
        let Attempt { asked, permits, keys } = self;
        let windows = windows(keys);
        let now = if windows.is_empty() { now } else { clock() };
        let mut locked = locked(asked);
        let mut reserved: Vec<Option<Reservation>> = asked.iter().map(|_| None).collect();
        for (index, domain) in &mut locked {
            let ask = Ask::between(asked[*index].least, asked[*index].most);
            reserved[*index] = Some(domain.reserve(ask, now));
        }
        let rooms = rooms(asked, &reserved, now);
        let mut stands: Vec<_> = permits
            .iter()
            .zip(reserved)
            .zip(rooms)
            .map(|stand| match stand {
                ((Some(Ok(permit)), _), _) => Stand::Gauge(Ok(permit.units())),
                ((Some(Err(denied)), _), _) => Stand::Gauge(Err(denied.clone())),
                ((None, Some(reservation)), room) => Stand::Domain(reservation, room),
                ((None, None), Some(room)) => Stand::Rate(room),
                ((None, None), None) => Stand::Free,
            })
            .collect();
        for (stand, key) in stands.iter_mut().zip(keys) {
            if let Some(Err(denied)) = key {
                *stand = Stand::Window(Err(denied.clone()));
            }
        }
        for (index, mut locked) in windows {
            let room = locked.room(now, asked[index].least, asked[index].most);
            stands[index] = Stand::Window(Ok(WindowStand { locked, room }));
        }
        settle(asked, stands, copies, now)
    }
}

// === impl Asked ===

impl<'a> Asked<'a> {
    fn new(part: &'a Part<'a>, min: u32, copies: u32) -> Asked<'a> {
        let most = if copies == 0 { 0 } else { part.price.units(copies) };
        Asked { part, least: part.price.units(min).min(most), most }
    }
}

// === impl Room ===

impl Room<'_> {
    /// Takes so many units. `lacks` are those that were asked for as well.
    fn take(mut self, units: u32, lacks: u32) {
        self.hold.take(units);
        self.hold.lacks(lacks);
    }
}

// === impl Stand ===

impl Stand<'_> {
    /// The number of copies that there can be, or nothing if this part refuses.
    fn allows(&self, asked: &Asked<'_>) -> Option<u32> {
        let units = match self {
            Stand::Free => return Some(u32::MAX),
            Stand::Gauge(units) => *units.as_ref().ok()?,
            Stand::Rate(room) => room.as_ref().ok()?.units,
            Stand::Window(stand) => *stand.as_ref().ok()?.room.as_ref().ok()?,
            Stand::Domain(reservation, room) => match room.as_ref()? {
                Ok(room) => room.units,
                Err(denied) if reservation.is_degraded(denied) => asked.least,
                Err(_) => return None,
            },
        };
        Some(asked.part.price.copies(units))
    }

    /// Takes hits of the lease that a domain has for itself. It may have been cut just now; then the domain refuses, and what
    /// was taken of the leases of other domains is lost to them.
    fn take(&mut self, units: u32) -> bool {
        let Stand::Domain(reservation, room) = self else { return true };
        let is_taken = reservation.take(units);
        if !is_taken {
            *room = None;
        }
        is_taken
    }

    /// Takes so many units of the `most` that were asked for; `is_least` says that this part allows no more.
    fn grant(self, units: u32, is_least: bool, most: u32) -> (TogetherAnswer, Attention) {
        let answer = match self {
            Stand::Window(Ok(WindowStand { locked, .. })) => {
                return (TogetherAnswer::Taken(units), locked.make(units));
            }
            Stand::Free | Stand::Window(Err(_)) => TogetherAnswer::Taken(0),
            Stand::Gauge(_) => TogetherAnswer::Taken(units),
            Stand::Rate(room) => {
                if let Ok(room) = room {
                    room.take(units, if is_least { most - units } else { 0 });
                }
                TogetherAnswer::Taken(units)
            }
            Stand::Domain(reservation, Some(Ok(room))) => {
                let (wanted, has) = (reservation.wanted(), room.units);
                let (cut, lacks) = match is_least {
                    true if has < wanted => (Cut::Lease, wanted - units),
                    true => (Cut::Policies, 0),
                    false => (Cut::Elsewhere, 0),
                };
                room.take(units, lacks);
                TogetherAnswer::Domain(reservation.commit(Grant { hits: units, cut, is_degraded: false }))
            }
            Stand::Domain(reservation, Some(Err(_)) | None) => {
                let grant = Grant { hits: units, cut: Cut::Lease, is_degraded: true };
                TogetherAnswer::Domain(reservation.commit(grant))
            }
        };
        (answer, Attention::None)
    }

    /// Nothing is granted of `least` units or more.
    fn refuse(self, now: Time, least: u32) -> (TogetherAnswer, Attention) {
        let answer = match self {
            Stand::Window(Ok(WindowStand { locked, room: Err(denied) })) => {
                let attention = locked.miss(now, least, &denied);
                return (TogetherAnswer::Denied(denied), attention);
            }
            Stand::Gauge(Err(denied)) | Stand::Rate(Err(denied)) | Stand::Window(Err(denied)) => {
                TogetherAnswer::Denied(denied)
            }
            Stand::Domain(reservation, None) => TogetherAnswer::Domain(reservation.deny(None)),
            Stand::Domain(reservation, Some(Err(denied))) if !reservation.is_degraded(&denied) => {
                TogetherAnswer::Domain(reservation.deny(Some(denied)))
            }
            Stand::Free
            | Stand::Gauge(Ok(_))
            | Stand::Rate(Ok(_))
            | Stand::Window(Ok(_))
            | Stand::Domain(..) => TogetherAnswer::Agreed,
        };
        (answer, Attention::None)
    }
}
