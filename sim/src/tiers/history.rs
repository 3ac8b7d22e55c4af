//! The history of a domain: every request with its answer, and what each tier did meanwhile.

use lessor_algorithms::tiers::{Ask, Bound, Contract, Decision, Domain, Global, Status, Tier, TierState};

use super::arrival::Arrival;

/// Into how many parts of the same length the whole time is divided for pictures.
pub const COLUMNS: usize = 1200;

/// A run from beginning to end. Times in nanoseconds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct History {
    /// The contract that the domain followed.
    pub contract: Contract,
    /// When it was over.
    pub end: u64,
    /// The requests, in their order.
    pub requests: Vec<Request>,
    /// The tiers of all policies, in ascending order.
    pub lanes: Vec<Lane>,
}

/// A request and its answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The request, and the time of it.
    pub arrival: Arrival,
    /// The answer.
    pub decision: Decision,
}

/// The history of one tier.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lane {
    /// Counted from 0.
    pub policy: usize,
    /// Counted from 1.
    pub number: usize,
    /// The tier.
    pub tier: Tier,
    /// When it was not inactive, in order.
    pub phases: Vec<Phase>,
    /// The entries into it, in order.
    pub entered: Vec<Entered>,
    /// Hits that were granted in it.
    pub hits: u64,
    /// The times at which they were granted, each with how many, in order.
    pub granted: Vec<(u64, u32)>,
    /// [`COLUMNS`] of them.
    pub columns: Vec<Column>,
}

/// A burst into a tier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entered {
    /// When.
    pub at: u64,
    /// The tier that it left, counted from 1; 0 where none was active.
    pub from: usize,
}

/// A time in which a tier did the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Phase {
    /// The first nanosecond.
    pub from: u64,
    /// The first that does not belong to it.
    pub until: u64,
    /// The state of the tier.
    pub doing: Doing,
}

/// The state of a tier that is not inactive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Doing {
    /// It is the current one.
    Current,
    /// It is active, and a higher one is the current one.
    Shadowed,
    /// It cannot be entered.
    Cooling,
}

/// The events of a tier in a part of the time.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Column {
    /// The most hits that counted in its window.
    pub fullest: u32,
    /// Hits that were granted in it.
    pub granted: u32,
    /// Hits that were refused because it had no room.
    pub refused: u32,
}

/// The state of a run while it goes on.
struct TierRecorder {
    domain: Domain,
    all: Global,
    now: u64,
    history: History,
}

/// Makes the requests of a domain, of which nothing is known before, and looks on until `end`. `others` is when other domains
/// of the resource make how many hits, which only a global limit takes notice of: as many as it lets through. Both in the
/// order of their times; what comes at `end` or later does not happen.
#[must_use]
pub fn run(contract: &Contract, arrivals: &[Arrival], others: &[Arrival], end: u64) -> History {
    let mut recorder = TierRecorder::new(contract, end);
    let mut others = others.iter().peekable();
    for &arrival in arrivals.iter().filter(|arrival| arrival.at < end) {
        while let Some(other) = others.next_if(|other| other.at <= arrival.at) {
            recorder.others(other);
        }
        recorder.pass(arrival.at);
        recorder.ask(arrival);
    }
    recorder.pass(end);
    recorder.history
}

// === impl TierRecorder ===

impl TierRecorder {
    fn new(contract: &Contract, end: u64) -> TierRecorder {
        let policies = contract.policies().iter().enumerate();
        let lanes = policies.flat_map(|(policy, of)| {
            (1..).zip(of.tiers()).map(move |(number, tier)| Lane::new(policy, number, tier.clone()))
        });
        let (contract, lanes) = (contract.clone(), lanes.collect());
        let history = History { contract, end, requests: Vec::new(), lanes };
        TierRecorder { domain: Domain::new(), all: Global::exact(), now: 0, history }
    }

    fn states(&self) -> Vec<TierState> {
        self.domain.tiers(&self.history.contract, self.now).collect()
    }

    /// Lets time pass, and looks on.
    fn pass(&mut self, until: u64) {
        let end = self.history.end;
        while self.now < until {
            let states = self.states();
            let column = self.history.column(self.now);
            let changes = states.iter().filter_map(|state| match state.status {
                Status::Inactive => None,
                Status::Active { until } | Status::Cooling { until } => Some(until),
            });
            let next_column = begin(column + 1, end, COLUMNS);
            let next = changes.fold(until.min(next_column), u64::min).max(self.now + 1);
            for (lane, state) in self.history.lanes.iter_mut().zip(&states) {
                lane.stay(self.now, next, state);
                lane.columns[column].fullest = lane.columns[column].fullest.max(state.hits);
            }
            self.now = next;
        }
    }

    /// Other domains make hits.
    fn others(&mut self, arrival: &Arrival) {
        if let Some(limit) = self.history.contract.global_limit() {
            let room = limit.saturating_sub(self.all.hits(arrival.at));
            self.all.record(arrival.at, room.min(arrival.copies));
        }
    }

    fn ask(&mut self, arrival: Arrival) {
        let before = self.states();
        let ask = Ask::between(arrival.min.min(arrival.copies), arrival.copies);
        let decision = self.domain.request(&self.history.contract, &mut self.all, self.now, ask);
        let after = self.states();
        let column = self.history.column(self.now);
        // The tier where the request is on its way through each policy.
        let mut tiers = vec![0; self.history.contract.policies().len()];
        before.iter().filter(|state| state.is_current).for_each(|state| tiers[state.policy] = state.tier);
        for ((lane, before), after) in self.history.lanes.iter_mut().zip(before).zip(&after) {
            let hits = after.hits.saturating_sub(before.hits);
            if hits > 0 {
                lane.granted.push((self.now, hits));
            }
            if lane.hit(before, after, column) {
                let from = std::mem::replace(&mut tiers[lane.policy], lane.number);
                lane.entered.push(Entered { at: self.now, from });
            }
        }
        let refused = arrival.copies - decision.granted;
        if decision.bound == Some(Bound::Tiers)
            && let Some(lane) = self.history.lane_mut(decision.policy, decision.tier)
        {
            lane.columns[column].refused = lane.columns[column].refused.saturating_add(refused);
        }
        self.history.requests.push(Request { arrival, decision });
    }
}

// === impl History ===

impl History {
    /// In which column a time before the end lies.
    #[must_use]
    pub fn column(&self, at: u64) -> usize {
        cell(at, self.end, COLUMNS)
    }

    /// The tier of a policy that had no room: the first one stands in for the fake one.
    fn lane_mut(&mut self, policy: usize, number: usize) -> Option<&mut Lane> {
        let number = number.max(1);
        self.lanes.iter_mut().find(|lane| (lane.policy, lane.number) == (policy, number))
    }
}

/// In which of `cells` equal parts of the time until `end` a time lies; in the last if it is behind that.
pub(super) fn cell(at: u64, end: u64, cells: usize) -> usize {
    let cell = u128::from(at) * cells as u128 / u128::from(end.max(1));
    usize::try_from(cell).unwrap_or(cells).min(cells - 1)
}

/// The first nanosecond of such a part.
pub(super) fn begin(cell: usize, end: u64, cells: usize) -> u64 {
    let at = (cell as u128 * u128::from(end)).div_ceil(cells as u128);
    u64::try_from(at).unwrap_or(u64::MAX)
}

/// The state that takes the longest, of the times in each.
fn longest(times: &[u64; 3]) -> Option<Doing> {
    let all = [Doing::Cooling, Doing::Shadowed, Doing::Current];
    all.into_iter().filter(|doing| times[*doing as usize] > 0).max_by_key(|doing| times[*doing as usize])
}

// === impl Lane ===

impl Lane {
    fn new(policy: usize, number: usize, tier: Tier) -> Lane {
        let columns = vec![Column::default(); COLUMNS];
        let (phases, entered, granted) = (Vec::new(), Vec::new(), Vec::new());
        Lane { policy, number, tier, phases, entered, hits: 0, granted, columns }
    }

    /// For how long it did that, in nanoseconds.
    #[must_use]
    pub fn time(&self, doing: Doing) -> u64 {
        self.phases.iter().filter(|phase| phase.doing == doing).map(|phase| phase.until - phase.from).sum()
    }

    /// The state of the tier for most of the time in each of `cells` equal parts of the time until `end`; nothing
    /// where it is inactive.
    #[must_use]
    pub fn mostly(&self, end: u64, cells: usize) -> Vec<Option<Doing>> {
        let mut times = vec![[0; 3]; cells];
        for phase in &self.phases {
            let mut from = phase.from;
            while from < phase.until {
                let cell = cell(from, end, cells);
                let until = phase.until.min(begin(cell + 1, end, cells)).max(from + 1);
                times[cell][phase.doing as usize] += until - from;
                from = until;
            }
        }
        times.iter().map(longest).collect()
    }

    /// Does the same from `from` until `until`.
    fn stay(&mut self, from: u64, until: u64, state: &TierState) {
        let doing = match state.status {
            Status::Inactive => return,
            Status::Active { .. } if state.is_current => Doing::Current,
            Status::Active { .. } => Doing::Shadowed,
            Status::Cooling { .. } => Doing::Cooling,
        };
        match self.phases.last_mut() {
            Some(last) if last.until == from && last.doing == doing => last.until = until,
            _ => self.phases.push(Phase { from, until, doing }),
        }
    }

    /// Takes notice of a request that led from one state to another. Returns whether the tier was entered.
    fn hit(&mut self, before: TierState, after: &TierState, column: usize) -> bool {
        let hits = after.hits.saturating_sub(before.hits);
        self.hits += u64::from(hits);
        let column = &mut self.columns[column];
        column.granted = column.granted.saturating_add(hits);
        column.fullest = column.fullest.max(after.hits);
        matches!(after.status, Status::Active { .. }) && after.status != before.status
    }
}

#[cfg(test)]
mod tests;
