//! The authority of a task: until when it may act, for everybody in the process to read.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lessor_proto::{Epoch, Time};
use tokio::sync::watch;

use super::traffic::EtcdTraffic;

/// Until when a task may act, and in which epoch, for everybody in the process to read.
#[derive(Debug, Default)]
pub struct Authority {
    acting: Mutex<Acting>,
    /// Which cluster elects here, and under which prefix; 0 before that is known.
    electorate: AtomicU64,
    /// Told when the task may act again after its authority has lapsed, and when it leads no more.
    changed: watch::Sender<()>,
    /// The calls that were made on the way.
    pub(in crate::shell) traffic: EtcdTraffic,
}

#[derive(Clone, Copy, Debug, Default)]
struct Acting {
    /// The epoch, and until when.
    until: Option<(Epoch, Time)>,
    /// When nobody else led yet for certain.
    led: Option<Time>,
    /// The epoch, and until when nobody else can lead.
    key: Option<(Epoch, Time)>,
    /// Set when the task has resigned: it gets no authority any more.
    resigned: bool,
}

// === impl Authority ===

impl Authority {
    /// Until when this task may act as the leader, if it may.
    #[must_use]
    pub fn until(&self) -> Option<Time> {
        self.acting().until.map(|(_, until)| until)
    }

    /// The same of the epoch `epoch` only. Whoever was deposed and is elected again may hear of that later than this changes;
    /// what it did in the epoch before must end with that.
    #[must_use]
    pub fn until_in(&self, epoch: Epoch) -> Option<Time> {
        self.acting().until.filter(|&(acting_epoch, _)| acting_epoch == epoch).map(|(_, until)| until)
    }

    /// The line of succession of the leaders that are elected here and go on from a record of `line`, if etcd has answered.
    /// Clusters that were set up alike have one id, and a record that is copied into another cluster has the line of the
    /// first: it takes both to tell them apart.
    pub(in crate::shell) fn line_of(&self, line: u64) -> Option<u64> {
        let electorate = Some(self.electorate.load(Ordering::Relaxed)).filter(|&it| it != 0)?;
        Some(electorate.rotate_left(32) ^ line)
    }

    pub(super) fn set_electorate(&self, electorate: u64) {
        self.electorate.store(electorate, Ordering::Relaxed);
    }

    pub(in crate::shell) fn set(&self, until: Option<(Epoch, Time)>) {
        let mut acting = self.acting();
        acting.until = until.filter(|_| !acting.resigned);
    }

    pub(super) fn set_led(&self, led: Option<Time>) {
        self.acting().led = led;
    }

    /// When nobody else led yet for certain, if this task leads in the epoch `epoch`.
    pub(in crate::shell) fn led_in(&self, epoch: Epoch) -> Option<Time> {
        let acting = self.acting();
        acting.led.filter(|_| acting.until.is_some_and(|(of, _)| of == epoch))
    }

    pub(in crate::shell) fn set_key(&self, key: Option<(Epoch, Time)>) {
        let mut acting = self.acting();
        acting.key = key.filter(|_| !acting.resigned);
    }

    /// Until when nobody else can lead, if this task led in the epoch `epoch` last. It may have no authority before.
    pub(in crate::shell) fn key_in(&self, epoch: Epoch) -> Option<Time> {
        self.acting().key.filter(|&(of, _)| of == epoch).map(|(_, until)| until)
    }

    /// Lets those go on who wait for this task to act again.
    pub(in crate::shell) fn tell(&self) {
        self.changed.send_replace(());
    }

    /// Changes when those may go on who wait for this task to act again.
    pub(in crate::shell) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Time has passed that the clock did not show, and this task may act for that much less. The task that stands for
    /// election finds the same by itself: should both, it may act for twice as much less until etcd has answered again.
    pub(in crate::shell) fn lose_time(&self, lost: Duration) {
        let mut acting = self.acting();
        acting.until = acting.until.map(|(epoch, until)| (epoch, until.earlier(lost)));
        acting.led = acting.led.map(|led| led.earlier(lost));
        acting.key = acting.key.map(|(epoch, until)| (epoch, until.earlier(lost)));
    }

    pub(super) fn resign(&self) {
        *self.acting() = Acting { resigned: true, ..Acting::default() };
    }

    fn acting(&self) -> MutexGuard<'_, Acting> {
        // Nothing that is done with it can fail half way.
        self.acting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_resigned_gets_no_authority_any_more() {
        let authority = Authority::default();
        assert_eq!(authority.until(), None);
        authority.set(Some((Epoch(3), Time::from_nanos(7))));
        assert_eq!(authority.until(), Some(Time::from_nanos(7)));
        authority.resign();
        authority.set(Some((Epoch(3), Time::from_nanos(9))));
        assert_eq!(authority.until(), None);
    }

    #[test]
    fn authority_is_that_of_one_epoch() {
        let authority = Authority::default();
        authority.set(Some((Epoch(3), Time::from_nanos(7))));
        assert_eq!(
            (authority.until_in(Epoch(3)), authority.until_in(Epoch(2))),
            (Some(Time::from_nanos(7)), None)
        );
    }
}
