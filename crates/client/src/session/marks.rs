//! The marks of an entry: numbers by which messages find it among thousands.

use std::time::Duration;

use lessor_proto::{ReportId, Time};

use super::entry::Entry;

/// A number that an entry has or has not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mark {
    /// When it is due, with others: of what is open.
    Due,
    /// When it is due, and must go alone.
    DueAlone,
    /// When it is due on its way out.
    DueLeaving,
    /// None but this is known of it: it is on its way out, and no exchange speaks of that.
    Unreleased,
    /// The exchange in flight that asks for it.
    Asked,
    /// The exchange in flight that releases it.
    Released,
    /// The last report on a stream that spoke of it, of what is open.
    Said,
    /// The first report from which a grant of it may count, of what is open.
    Basis,
    /// The interval at which its last grant on the stream is to be renewed.
    Pace,
    /// The interval at which it is to be asked for again, by the last answer to that.
    Refresh,
    /// When its lease ends, of what is open.
    End,
    /// None but this is known of it: the next heartbeat takes it along, as its demand is not as it was said, or it has units
    /// to say that were asked for while everything was let pass.
    Changed,
    /// None but this is known of it: it has a floor, or is one.
    Kin,
}

/// All marks of one entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Marks([u64; Mark::ALL.len()]);

// === impl Mark ===

impl Mark {
    /// All of them, in the order of their numbers.
    pub(super) const ALL: [Mark; 13] = [
        Mark::Due,
        Mark::DueAlone,
        Mark::DueLeaving,
        Mark::Unreleased,
        Mark::Asked,
        Mark::Released,
        Mark::Said,
        Mark::Basis,
        Mark::Pace,
        Mark::Refresh,
        Mark::End,
        Mark::Changed,
        Mark::Kin,
    ];
    /// The number of an entry that does not have the mark, above all that others have: it is never due, as it were.
    pub(super) const ABSENT: u64 = u64::MAX;

    /// The mark of `entry`.
    #[inline]
    pub(super) fn of(self, entry: &Entry) -> u64 {
        let (is_open, is_alone) = (entry.is_open(), entry.setbacks.alone);
        let due = entry.due.as_nanos();
        let given = |number: Option<u64>| number.unwrap_or(Mark::ABSENT);
        let whether = |is_it: bool| if is_it { 0 } else { Mark::ABSENT };
        let only = |is_it: bool, number: u64| if is_it { number } else { Mark::ABSENT };
        let exchange = || given(entry.exchange.map(|ReportId(id)| id));
        match self {
            Mark::Due => only(is_open && !is_alone, due),
            Mark::DueAlone => only(is_open && is_alone, due),
            Mark::DueLeaving => only(!is_open, due),
            Mark::Unreleased => whether(!is_open && entry.exchange.is_none()),
            Mark::Asked => only(is_open, exchange()),
            Mark::Released => only(!is_open, exchange()),
            Mark::Said => only(is_open && entry.streamed.said > ReportId::default(), entry.streamed.said.0),
            Mark::Basis => only(is_open, given(entry.streamed.floor.map(|ReportId(id)| id))),
            Mark::Pace => given(entry.streamed.pace.map(nanos)),
            Mark::Refresh => given(entry.refresh().map(nanos)),
            Mark::End => only(is_open, given(entry.holding.last_end().map(Time::as_nanos))),
            Mark::Changed => {
                let has_changed = || entry.holding.demand_has_changed() || entry.holding.has_units_to_say();
                whether(is_open && !is_alone && has_changed())
            }
            Mark::Kin => whether(entry.is_floor || entry.wants_floor().is_some()),
        }
    }
}

/// A time in nanoseconds, which is some number in any case.
fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).min(Mark::ABSENT - 1)
}

// === impl Marks ===

impl Marks {
    /// Those of nothing.
    pub(super) const NONE: Marks = Marks([Mark::ABSENT; Mark::ALL.len()]);

    pub(super) fn of(entry: &Entry) -> Marks {
        Marks(Mark::ALL.map(|mark| mark.of(entry)))
    }

    pub(super) fn get(&self, mark: Mark) -> u64 {
        self.0[mark as usize]
    }
}
