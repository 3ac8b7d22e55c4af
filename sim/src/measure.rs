//! The measures by which a run is judged: how much of the capacity was used, by whom, and whether ever too much.
//!
//! Everything is counted where it matters, in what *clients* believe they may use. A simulation tells a [`Recorder`] what
//! happens; the [`Recording`] turns it into [`Figures`].
//!
//! With C the capacity, W what all clients want and H what all believe they hold, utilisation is b = H / min(C, W).
//! It can be gamed by never taking back, so it always comes with the allocation error: half of what fair shares and
//! beliefs differ by, over min(C, W).
//!
//! Between two events nothing changes, so both are known at every moment, and the figure of a second is the mean over all
//! of it. Nothing is gained by being right at the instant of a sample: in the simulation of Doorman, where everything
//! happens at the beginning of a second, this is what it is after everybody had a turn. Samples at one instant, before
//! anybody could answer to the wants that changed in the same second, are kept beside it.
//!
//! ```
//! use lessor_sim::measure::Recorder;
//!
//! let mut recorder = Recorder::new(100.0, 2, 2);
//! recorder.event(0.0, &[80.0, 80.0], &[60.0, 40.0], &[50.0, 50.0]);
//! let figures = recorder.finish(None).figures();
//! assert_eq!(figures.b_mean_conv, Some(1.0));
//! assert_eq!(figures.allocation_error_conv, Some(0.1));
//! assert_eq!(figures.overshoot_events, 0);
//! ```

mod figures;
mod stretch;

pub use self::figures::{Figures, median, quantile};
pub use self::stretch::{LOW, Stretch};

/// Takes down what happens in a run.
#[derive(Clone, Debug)]
pub struct Recorder {
    recording: Recording,
    state: Totals,
    /// The time of the last event.
    since_seconds: f64,
}

/// All clients at one moment, in units of capacity.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Totals {
    /// The sum of what they want.
    pub wants: f64,
    /// The sum of what they believe they hold.
    pub believes: f64,
    /// Half the sum of what each one's belief differs from its fair share by.
    pub misplaced: f64,
}

/// The means of one second.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Second {
    /// Of utilisation, as a fraction of 1.
    pub b: f64,
    /// Of the allocation error, as a fraction of 1.
    pub allocation_error: f64,
    /// The time with b < 0.95, in seconds.
    pub low_seconds: f64,
    /// The most that all clients believed at any time in it, in units of capacity.
    pub believed_max: f64,
}

/// A run, as it was taken down.
#[derive(Clone, PartialEq, Debug)]
pub struct Recording {
    /// The capacity to share, in units of capacity.
    pub capacity: f64,
    /// The number of clients.
    pub clients: usize,
    /// Every second from 0 to the end.
    pub seconds: Vec<Second>,
    /// At one instant of every second, the last one included.
    pub samples: Vec<Sample>,
    /// In the order in which they happened.
    pub faults: Vec<Mark>,
    /// Events after which the clients' beliefs were added up.
    pub events: u64,
    /// Those after which the clients believed more than there is.
    pub overshoot_events: u64,
    /// For how long they did, in seconds.
    pub overshoot_seconds: f64,
    /// By how much they did, over that time, in units of capacity times seconds.
    pub overshoot_amount: f64,
    /// The most that all clients believed after any event, in units of capacity.
    pub believed_max: f64,
    /// Requests sent on all hops.
    pub calls: u64,
    /// Of everything that happened, where the simulation keeps one.
    pub trace_hash: Option<u64>,
}

/// The tree at one instant.
#[derive(Clone, PartialEq, Debug)]
pub struct Sample {
    /// The second in which it is.
    pub at_seconds: u64,
    /// The clients.
    pub totals: Totals,
    /// Everybody, from the root down to the clients.
    pub levels: Vec<Level>,
}

/// All servers of one level, or all clients, in units of capacity.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Level {
    /// The amount that they want from above: of clients what they want, of servers what their books say is wanted
    /// of them.
    pub wants: f64,
    /// The amount that they have given: of servers what their books say is leased below them, of clients what they
    /// believe they may use.
    pub has: f64,
    /// The amount that they may give: of servers what they hold themselves, of clients again what they believe they
    /// may use.
    pub capacity: f64,
}

/// A fault that befell the run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mark {
    /// The second.
    pub at_seconds: u64,
    /// `spike`, `lose`, `restore`, `elect` or `noelect`.
    pub kind: String,
    /// The name of the client or job.
    pub target: String,
}

/// Half a millionth, the grain of leases: sums of floating point numbers that differ by less are equal.
const GRAIN: f64 = 0.5e-6;

// === impl Recorder ===

impl Recorder {
    /// A run of `clients` clients that share `capacity` for so many seconds. Nobody wants or believes anything yet.
    #[must_use]
    pub fn new(capacity: f64, clients: usize, seconds: u64) -> Recorder {
        let recording = Recording {
            capacity,
            clients,
            seconds: vec![Second::default(); seconds as usize],
            samples: Vec::new(),
            faults: Vec::new(),
            events: 0,
            overshoot_events: 0,
            overshoot_seconds: 0.0,
            overshoot_amount: 0.0,
            believed_max: 0.0,
            calls: 0,
            trace_hash: None,
        };
        Recorder { recording, state: Totals::default(), since_seconds: 0.0 }
    }

    /// Something happened, and from here on this is what each client wants, what it believes it may use, and what it should
    /// hold. To be called after every event that may have changed any of it, the end of a lease among them: a client
    /// without a lease believes 0. Times do not go back.
    ///
    /// # Panics
    /// If it is not one number of each kind for each client.
    pub fn event(&mut self, time_seconds: f64, wants: &[f64], believes: &[f64], fair: &[f64]) {
        let clients = self.recording.clients;
        assert_eq!([wants.len(), believes.len(), fair.len()], [clients; 3], "a number for each client");
        self.pass(time_seconds);
        let misplaced = believes.iter().zip(fair).map(|(has, fair)| (has - fair).abs()).sum::<f64>() / 2.0;
        self.state = Totals { wants: wants.iter().sum(), believes: believes.iter().sum(), misplaced };
        self.recording.events += 1;
        self.recording.believed_max = self.recording.believed_max.max(self.state.believes);
        if self.overshoots() {
            self.recording.overshoot_events += 1;
        }
    }

    /// Takes a sample of the clients as the last event left them, and of the levels of the tree from the root down to the
    /// clients. Once a second, after the faults and the changes of wants in that second and before anybody asks.
    pub fn sample(&mut self, at_seconds: u64, levels: Vec<Level>) {
        self.recording.samples.push(Sample { at_seconds, totals: self.state, levels });
    }

    /// A fault befalls a client or a job.
    pub fn fault(&mut self, at_seconds: u64, kind: &str, target: &str) {
        let (kind, target) = (kind.to_owned(), target.to_owned());
        self.recording.faults.push(Mark { at_seconds, kind, target });
    }

    /// One request is sent, on any hop. What is sent when the last second is over does not count.
    pub fn call(&mut self, time_seconds: f64) {
        if time_seconds < self.recording.seconds.len() as f64 {
            self.recording.calls += 1;
        }
    }

    /// The run is over; the hash is of everything that happened, if the simulation keeps one.
    #[must_use]
    pub fn finish(mut self, trace_hash: Option<u64>) -> Recording {
        self.pass(self.recording.seconds.len() as f64);
        self.recording.trace_hash = trace_hash;
        self.recording
    }

    /// Adds the time since the last event to the seconds that it lies in.
    fn pass(&mut self, time_seconds: f64) {
        let (b, error) = (self.recording.b(&self.state), self.recording.allocation_error(&self.state));
        if self.overshoots() {
            let passed = (time_seconds - self.since_seconds).max(0.0);
            self.recording.overshoot_seconds += passed;
            self.recording.overshoot_amount += passed * (self.state.believes - self.recording.capacity);
        }
        while self.since_seconds < time_seconds {
            let begun = self.since_seconds.floor();
            let until = time_seconds.min(begun + 1.0);
            let passed = until - self.since_seconds;
            if let Some(second) = self.recording.seconds.get_mut(begun as usize) {
                second.b += b * passed;
                second.allocation_error += error * passed;
                second.low_seconds += if b < LOW { passed } else { 0.0 };
                second.believed_max = second.believed_max.max(self.state.believes);
            }
            self.since_seconds = until;
        }
    }

    fn overshoots(&self) -> bool {
        self.state.believes > self.recording.capacity + GRAIN
    }
}

// === impl Recording ===

impl Recording {
    /// Utilisation at a moment, as a fraction of 1; 1 where nobody wants anything.
    #[must_use]
    pub fn b(&self, totals: &Totals) -> f64 {
        self.share(totals, totals.believes).unwrap_or(1.0)
    }

    /// Allocation error at a moment, as a fraction of 1; 0 where nobody wants anything.
    #[must_use]
    pub fn allocation_error(&self, totals: &Totals) -> f64 {
        self.share(totals, totals.misplaced).unwrap_or(0.0)
    }

    /// Everything that the run is judged by.
    #[must_use]
    pub fn figures(&self) -> Figures {
        figures::figures(self)
    }

    fn share(&self, totals: &Totals, amount: f64) -> Option<f64> {
        let whole = self.capacity.min(totals.wants);
        (whole > 0.0).then(|| amount / whole)
    }
}

#[cfg(test)]
mod tests;
