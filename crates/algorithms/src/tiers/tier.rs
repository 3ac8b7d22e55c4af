//! A tier as it is configured: a limit in a window, the way in which that is counted, and the times for which it stays.

use std::time::Duration;

/// A tier: how much it allows, and for how long it stays.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tier {
    /// Hits in a window; at least 1.
    pub limit: u32,
    /// The time for which a hit counts. Positive.
    pub window: Duration,
    /// The time for which the tier is active, from the hit that enters it. A tier without any is never entered.
    pub active: Duration,
    /// After that, for how long it cannot be entered.
    pub cooldown: Duration,
    /// Whether a request passes it over while it cools down or is full, instead of being refused.
    pub is_skippable: bool,
    /// The way in which the hits of the window are counted.
    pub kind: Window,
}

/// The fate of the hits of a tier's earlier active time when the tier is entered again.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Windows {
    /// They count for the whole window, so that no more than the limit lies in any window. The tier may be full when it is
    /// entered.
    #[default]
    Keep,
    /// They are forgotten, as in Charon's paper: each active time begins with an empty window. Around its beginning twice
    /// the limit may lie in a window.
    Reset,
}

/// A way to count the hits of a window: what is remembered, and how exact the count is.
///
/// Slices and fixed windows begin where the active time begins. None of the kinds ever counts a hit for longer
/// than the exact log, so with the same hits none of them refuses what the log would grant; only the bucket
/// counts hits in part.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Window {
    /// Every time is remembered: 16 bytes for each time at which there were hits, so at most 16 times the limit.
    #[default]
    Exact,
    /// Hits of the same slice count as made at its beginning: at most `slices` + 1 times are remembered, and a hit is
    /// forgotten up to one slice too early.
    Sliding {
        /// Into how many slices the window is divided; at least 1.
        slices: u16,
    },
    /// All hits are forgotten when the window in which they were made ends. Twice the limit may pass around that end.
    Fixed,
    /// Hits are forgotten one after the other, evenly, the limit in a window. In a window `limit` pass at once and as many
    /// again over its course.
    Bucket,
}
