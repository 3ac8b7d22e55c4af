//! A short history: so few facts that they fit into a domain, or into a small allocation of its own.
//!
//! A *fact* is a time, and what is known of it: that a tier was entered then, that hits count as made then in a queue, or
//! that hits are owed. What it is about is its *tag*, a byte, so that a queue is found by one look at a few bytes. The facts
//! of a queue lie in order, oldest first; those that are not used lie behind all others.
//!
//! A hit that does not fit is not taken: then the history has to become a longer one.

use super::tags::{Places, alike, gathered};
use super::{NEVER, Run};

/// Of facts that are not used.
const FREE: u8 = 0xff;
/// Of the number of hits that are owed, which is where the time would be.
const DEBT: u8 = 0xfe;
/// Behind the last fact, as tags are looked through by eights.
const END: u8 = 0xfd;
/// Of the time that the owner of a queue has set; with the number of the queue added. Alone that number is the tag of runs.
const TIME: u8 = 0x80;

/// At most so many queues can be told apart.
pub(super) const MOST_QUEUES: usize = 0x7d;

/// At most `N` facts, whose tags are `W` words: at most 16 and two.
#[derive(Clone, Debug)]
pub(in crate::tiers) struct Few<const N: usize, const W: usize> {
    last: u64,
    times: [u64; N],
    hits: [u16; N],
    tags: [[u8; 8]; W],
    queues: u8,
    /// Whether the queues are open.
    is_open: bool,
}

/// It was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct DoesNotFit;

// === impl Few ===

impl<const N: usize, const W: usize> Few<N, W> {
    /// Nothing is known.
    pub(super) const fn new() -> Few<N, W> {
        let mut tags = [[END; 8]; W];
        let mut place = 0;
        while place < N {
            tags[place / 8][place % 8] = FREE;
            place += 1;
        }
        Few { last: 0, times: [0; N], hits: [0; N], tags, queues: 0, is_open: false }
    }

    /// With so many queues, all empty.
    pub(super) fn open(queues: usize) -> Result<Few<N, W>, DoesNotFit> {
        match u8::try_from(queues) {
            Ok(few) if queues <= MOST_QUEUES => Ok(Few { queues: few, is_open: true, ..Few::new() }),
            _ => Err(DoesNotFit),
        }
    }

    /// The same with room for more facts.
    pub(super) fn widened<const M: usize, const V: usize>(&self) -> Few<M, V> {
        let mut few = Few { last: self.last, queues: self.queues, is_open: self.is_open, ..Few::new() };
        few.times[..N].copy_from_slice(&self.times);
        few.hits[..N].copy_from_slice(&self.hits);
        few.tags.as_flattened_mut()[..N].copy_from_slice(&self.tags.as_flattened()[..N]);
        few
    }

    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    pub(super) fn queues(&self) -> usize {
        usize::from(self.queues)
    }

    #[inline]
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    #[inline]
    pub(super) fn set_last(&mut self, at: u64) {
        self.last = at;
    }

    #[inline]
    pub(super) fn debt(&self) -> u32 {
        // It was a `u32`.
        self.first(DEBT).map_or(0, |place| self.times[place] as u32)
    }

    pub(super) fn set_debt(&mut self, hits: u32) -> Result<(), DoesNotFit> {
        match (self.first(DEBT), hits) {
            (None, 0) => {}
            (None, _) => self.add(DEBT, u64::from(hits), 0)?,
            (Some(place), 0) => self.remove(1 << place),
            (Some(place), _) => self.times[place] = u64::from(hits),
        }
        Ok(())
    }

    #[inline]
    pub(super) fn time(&self, queue: usize) -> u64 {
        self.first(TIME | tag(queue)).map_or(NEVER, |place| self.times[place])
    }

    pub(super) fn set_time(&mut self, queue: usize, at: u64) -> Result<(), DoesNotFit> {
        match self.first(TIME | tag(queue)) {
            Some(place) => self.times[place] = at,
            None => self.add(TIME | tag(queue), at, 0)?,
        }
        Ok(())
    }

    /// The hits of all runs of a queue that are not before `first`.
    #[inline]
    pub(super) fn hits_from(&self, queue: usize, first: u64) -> u32 {
        let (mut places, mut sum) = (self.places(tag(queue)), 0);
        while let Some(run) = self.run(places) {
            sum += if run.at >= first { run.count } else { 0 };
            places = run.later;
        }
        sum
    }

    #[inline]
    pub(super) fn oldest(&self, queue: usize) -> Option<Run> {
        self.run(self.places(tag(queue)))
    }

    #[inline]
    pub(super) fn newest(&self, queue: usize) -> Option<Run> {
        self.newest_of(self.places(tag(queue)))
    }

    #[inline]
    pub(super) fn after(&self, run: Run) -> Option<Run> {
        self.run(run.later)
    }

    /// Adds hits to a queue, none of whose runs may be later.
    #[inline]
    pub(super) fn push(&mut self, queue: usize, at: u64, hits: u32) -> Result<(), DoesNotFit> {
        match self.newest(queue) {
            Some(newest) if newest.at == at => self.increase(newest, hits),
            _ => self.add(tag(queue), at, hits),
        }
    }

    /// The same, and forgets the runs of the queue before `first`. When the hits count as made is said by the newest run
    /// that is left.
    #[inline]
    pub(super) fn renew(
        &mut self,
        queue: usize,
        first: u64,
        hits: u32,
        at: impl Fn(Option<Run>) -> u64,
    ) -> Result<(), DoesNotFit> {
        let places = self.places(tag(queue));
        let gone = self.before(places, first);
        let newest = self.newest_of(places & !gone);
        let at = at(newest);
        match newest {
            Some(newest) if newest.at == at => {
                self.increase(newest, hits)?;
                self.remove(gone);
            }
            _ if gone.count_ones() == 1 => {
                self.turn(places, at, u16::try_from(hits).map_err(|_| DoesNotFit)?);
            }
            _ => {
                self.remove(gone);
                self.add(tag(queue), at, hits)?;
            }
        }
        Ok(())
    }

    /// Adds hits to a queue where they belong by their time.
    pub(super) fn insert(&mut self, queue: usize, at: u64, hits: u32) -> Result<(), DoesNotFit> {
        let places = self.places(tag(queue));
        let Some(later) = self.first_after(places, at) else { return self.push(queue, at, hits) };
        if let Some(run) = self.newest_of(places & below(later))
            && run.at == at
        {
            return self.increase(run, hits);
        }
        self.add(tag(queue), at, hits)?;
        let end = self.len();
        self.times[later..end].rotate_right(1);
        self.hits[later..end].rotate_right(1);
        self.tags.as_flattened_mut()[later..end].rotate_right(1);
        Ok(())
    }

    /// Adds hits to the newest run that is not later than `at`. If there is none the oldest run becomes as old as that.
    pub(super) fn join(&mut self, queue: usize, at: u64, hits: u32) -> Result<(), DoesNotFit> {
        let places = self.places(tag(queue));
        let Some(oldest) = self.run(places) else { return self.push(queue, at, hits) };
        let later = self.first_after(places, at).unwrap_or(N);
        let run = self.newest_of(places & below(later)).unwrap_or(oldest);
        self.increase(run, hits)?;
        let time = &mut self.times[usize::from(run.place)];
        *time = at.min(*time);
        Ok(())
    }

    /// Forgets the runs of a queue before `first`.
    pub(super) fn forget_before(&mut self, queue: usize, first: u64) {
        self.remove(self.before(self.places(tag(queue)), first));
    }

    /// Forgets all runs of a queue.
    pub(super) fn clear(&mut self, queue: usize) {
        self.remove(self.places(tag(queue)));
    }

    /// Forgets so many of the newest hits of a queue.
    pub(super) fn forget_newest(&mut self, queue: usize, mut hits: u32) {
        while hits > 0
            && let Some(newest) = self.newest(queue)
        {
            let back = hits.min(newest.count);
            hits -= back;
            match u16::try_from(newest.count - back) {
                Ok(left) if left > 0 => self.hits[usize::from(newest.place)] = left,
                _ => self.remove(1 << newest.place),
            }
        }
    }

    /// Makes of a queue a single run.
    pub(super) fn put(&mut self, queue: usize, at: u64, value: u32) -> Result<(), DoesNotFit> {
        let hits = u16::try_from(value).map_err(|_| DoesNotFit)?;
        let places = self.places(tag(queue));
        if places.count_ones() != 1 {
            self.remove(places);
            return self.add(tag(queue), at, value);
        }
        let place = places.trailing_zeros() as usize;
        (self.times[place], self.hits[place]) = (at, hits);
        Ok(())
    }

    /// The number of facts.
    pub(super) fn len(&self) -> usize {
        self.first(FREE).unwrap_or(N)
    }

    /// Where a tag is.
    #[inline]
    fn places(&self, tag: u8) -> Places {
        self.tags.iter().rev().fold(0, |places, &eight| places << 8 | gathered(alike(tag, eight)))
    }

    /// The first place of a tag.
    #[inline]
    fn first(&self, tag: u8) -> Option<usize> {
        let found = self.tags.iter().position(|&eight| alike(tag, eight) != 0)?;
        Some(8 * found + alike(tag, self.tags[found]).trailing_zeros() as usize / 8)
    }

    /// The run in the first of these places.
    #[inline]
    fn run(&self, places: Places) -> Option<Run> {
        let place = places.trailing_zeros() as u16;
        let (at, hits) = (*self.times.get(usize::from(place))?, self.hits[usize::from(place)]);
        Some(Run { at, count: u32::from(hits), place, later: places & (places - 1) })
    }

    /// The run in the last of these places.
    #[inline]
    fn newest_of(&self, places: Places) -> Option<Run> {
        self.run(1 << places.checked_ilog2()?)
    }

    /// Those of the places of a queue that have a time before `first`.
    #[inline]
    fn before(&self, places: Places, first: u64) -> Places {
        let mut left = places;
        while let Some(run) = self.run(left)
            && run.at < first
        {
            left = run.later;
        }
        places & !left
    }

    /// The first of these places with a time after `at`.
    fn first_after(&self, places: Places, at: u64) -> Option<usize> {
        (0..N).find(|&place| places & 1 << place != 0 && self.times[place] > at)
    }

    #[inline]
    fn increase(&mut self, run: Run, hits: u32) -> Result<(), DoesNotFit> {
        let sum = u32::checked_add(run.count, hits).and_then(|sum| u16::try_from(sum).ok());
        self.hits[usize::from(run.place)] = sum.ok_or(DoesNotFit)?;
        Ok(())
    }

    /// Adds a fact behind all others.
    #[inline]
    fn add(&mut self, tag: u8, time: u64, hits: u32) -> Result<(), DoesNotFit> {
        let (Some(place), Ok(hits)) = (self.first(FREE), u16::try_from(hits)) else { return Err(DoesNotFit) };
        (self.times[place], self.hits[place], self.tags[place / 8][place % 8]) = (time, hits, tag);
        Ok(())
    }

    /// Forgets the oldest run of a queue, which is in these places, and adds one that is the newest.
    #[inline]
    fn turn(&mut self, places: Places, at: u64, hits: u16) {
        let (mut place, mut left) = (places.trailing_zeros() as usize, places & places.wrapping_sub(1));
        while left != 0 {
            let next = left.trailing_zeros() as usize;
            (self.times[place], self.hits[place]) = (self.times[next], self.hits[next]);
            (place, left) = (next, left & (left - 1));
        }
        (self.times[place], self.hits[place]) = (at, hits);
    }

    /// Takes out what is in these places; the others keep their order.
    #[inline]
    fn remove(&mut self, places: Places) {
        if places != 0 {
            self.close_ranks(places);
        }
    }

    fn close_ranks(&mut self, places: Places) {
        let (tags, mut end) = (self.tags.as_flattened_mut(), 0);
        for place in 0..N {
            (self.times[end], self.hits[end], tags[end]) = (self.times[place], self.hits[place], tags[place]);
            end += usize::from(places & 1 << place == 0);
        }
        tags[end..N].fill(FREE);
    }
}

/// Of the runs of a queue, of which there are at most [`MOST_QUEUES`].
#[inline]
fn tag(queue: usize) -> u8 {
    queue as u8
}

/// The places before one of at most sixteen.
fn below(place: usize) -> Places {
    ((1_u32 << place) - 1) as Places
}
