//! A snapshot of everything that the demonstration draws, and of nothing else.

use super::target::Judge;

/// All of it.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    /// Since the beginning, and in all.
    pub(super) seconds: f64,
    pub(super) length: f64,
    /// Requests a second that the target takes, and how much of it is leased out.
    pub(super) limit: u32,
    pub(super) capacity: f64,
    /// The line that says what is to be seen.
    pub(super) says: &'static str,
    pub(super) judge: Judge,
    pub(super) root: Root,
    pub(super) leaves: Vec<Leaf>,
    /// And how many clients serve them, the first of the first leaf.
    pub(super) tenants: Vec<Tenant>,
    pub(super) fronts: usize,
    /// The last line: what the judge says.
    pub(super) summary: String,
}

/// The state of the root.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) enum Root {
    #[default]
    Serves,
    /// Nobody is there.
    Away,
    /// It has begun, and lets holders show what they have, for so many seconds more.
    Learns(f64),
}

/// A leaf.
#[derive(Clone, Debug, Default)]
pub(super) struct Leaf {
    pub(super) name: &'static str,
    /// Its lease, and for how many seconds it lasts if nothing more is heard from the root.
    pub(super) lease: f64,
    pub(super) ends: f64,
    /// The wants of its clients together.
    pub(super) wants: f64,
    pub(super) clients: Vec<Client>,
}

/// A client of a leaf.
#[derive(Clone, Debug)]
pub(super) struct Client {
    pub(super) name: String,
    /// The wants that it has measured and asked for.
    pub(super) wants: f64,
    pub(super) has: f64,
    pub(super) rung: &'static str,
}

/// A tenant, whose requests a client serves.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Tenant {
    pub(super) name: &'static str,
    /// The current tier, counted from 1, or 0 where none is; its hits and its limit.
    pub(super) tier: usize,
    pub(super) hits: u32,
    pub(super) limit: u32,
    /// A tier cools down for so many seconds more.
    pub(super) rests: Option<f64>,
    /// Requests since the beginning.
    pub(super) granted: u64,
    pub(super) refused: u64,
}

// === impl View ===

impl View {
    /// The part of the capacity that no leaf holds.
    pub(super) fn free(&self) -> f64 {
        (self.capacity - self.leaves.iter().map(|leaf| leaf.lease).sum::<f64>()).max(0.0)
    }
}

// === impl Tenant ===

impl Tenant {
    /// The state of it, in few words.
    pub(super) fn does(&self) -> String {
        match self.rests {
            Some(rests) => format!("rests {rests:.1} s"),
            None if self.tier > 1 => "bursts".to_owned(),
            None if self.granted + self.refused > 0 => "as usual".to_owned(),
            None => "waits".to_owned(),
        }
    }
}
