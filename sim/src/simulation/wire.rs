//! The travel of messages: requests that may be lost, late or doubled, and streams that keep the order until they
//! break.

use std::time::Duration;

use lessor_client::Failure;
use lessor_proto::Time;
use lessor_proto::message::{Down, Up};

use super::{Event, Simulation, ToHolder, ToNode};
use crate::actor::{Actor, Sender};
use crate::stream::StreamRef;

/// Nothing is under way for longer than that.
const LONGEST: Duration = Duration::from_secs(60);

// === impl Simulation ===

impl Simulation {
    /// A request goes up.
    pub(super) fn post_up(&mut self, from: Sender, task: u32, delivery: ToNode) {
        let closed = self.closed_up(from.actor, task) > self.now;
        self.post(from.actor, closed, Event::ToNode { task, delivery: Box::new(delivery) });
    }

    /// An answer comes down.
    pub(super) fn post_down(&mut self, task: u32, holder: Sender, delivery: ToHolder) {
        let closed = self.closed_down(holder.actor, task) > self.now;
        self.post(holder.actor, closed, Event::ToHolder { holder, delivery: Box::new(delivery) });
    }

    fn post(&mut self, actor: Actor, closed: bool, event: Event) {
        let faulty = self.faulty();
        if closed || faulty && self.rng.chance(self.rules.faults.loss) {
            self.progress.tally.lost += 1;
            return;
        }
        if faulty && self.rng.chance(self.rules.faults.twice) {
            self.progress.tally.twice += 1;
            let delay = self.delay(actor);
            self.later(delay, event.clone());
        }
        let delay = self.delay(actor);
        self.later(delay, event);
    }

    /// Something goes up a stream.
    pub(super) fn send_up(&mut self, stream: StreamRef, task: u32, delivery: ToNode) {
        let Some(found) = self.streams.get(stream) else { return };
        let (actor, clear) = (found.holder.actor, found.up.clear);
        let sent = self.now.max(self.closed_up(actor, task));
        let at = (sent + self.delay(actor)).max(clear);
        if let Some(found) = self.streams.get_mut(stream) {
            found.up.clear = at;
        }
        self.queue.put(at, Event::ToNode { task, delivery: Box::new(delivery) });
    }

    /// Something comes down a stream.
    pub(super) fn send_down(&mut self, stream: StreamRef, delivery: ToHolder) -> Time {
        let Some(found) = self.streams.get(stream) else { return self.now };
        let (holder, task, clear) = (found.holder, found.task, found.down.clear.max(found.stalled));
        let sent = self.now.max(self.closed_down(holder.actor, task));
        let at = (sent + self.delay(holder.actor)).max(clear);
        if let Some(found) = self.streams.get_mut(stream) {
            found.down.clear = at;
        }
        self.queue.put(at, Event::ToHolder { holder, delivery: Box::new(delivery) });
        at
    }

    /// The node has let go of a stream: its holder hears of that after everything else.
    pub(super) fn close_down(&mut self, stream: StreamRef, why: &str) {
        let failure = Failure::Unreachable(why.to_owned());
        self.send_down(stream, ToHolder::Closed { stream, failure, certain: false });
        self.streams.node_left(stream);
    }

    /// Whether something that arrives on a stream was under way when it broke.
    pub(super) fn is_cut(&mut self, stream: StreamRef, up: bool) -> bool {
        let cut = match self.streams.get(stream) {
            Some(found) if up => found.up.cut < self.now,
            Some(found) => found.down.cut < self.now,
            None => true,
        };
        self.progress.tally.cut += u64::from(cut);
        cut
    }

    /// Draws the time that a message of that actor takes.
    fn delay(&mut self, actor: Actor) -> Duration {
        let link = self.process(actor).link;
        let mut delay = link.latency;
        if link.jitter > Duration::ZERO {
            delay = self.rng.time(delay, delay + link.jitter);
        }
        if self.faulty() && self.rng.chance(self.rules.faults.slow) {
            self.progress.tally.slow += 1;
            delay += self.rng.exponential(self.rules.faults.slow_mean).min(LONGEST);
        }
        delay
    }

    fn closed_up(&self, actor: Actor, task: u32) -> Time {
        let site = self.tree.tasks[task as usize].site;
        self.process(actor).cut_up.max(self.tree.sites[site as usize].door.shut_in)
    }

    fn closed_down(&self, actor: Actor, task: u32) -> Time {
        let site = self.tree.tasks[task as usize].site;
        self.process(actor).cut_down.max(self.tree.sites[site as usize].door.shut_out)
    }

    /// Counts a message that goes up.
    pub(super) fn count_up(&mut self, up: &Up) {
        match up {
            Up::Report(report) if report.renew_all && report.reports.is_empty() => {
                self.progress.counts.heartbeats += 1;
            }
            // Nobody would be told less without looks, or without jobs.
            Up::Hello(_) | Up::View(_) | Up::Jobs(_) => {}
            Up::Report(_) | Up::Release { .. } | Up::Domains(_) | Up::Units(_) | Up::Bye => {
                self.progress.counts.reports += 1;
            }
        }
    }

    /// Counts a message that comes down.
    pub(super) fn count_down(&mut self, down: &Down) {
        match down {
            Down::Renewed { .. } => self.progress.counts.renewals += 1,
            Down::Look(_) | Down::Jobs(_) => {}
            _ => self.progress.counts.pushes += 1,
        }
    }
}
