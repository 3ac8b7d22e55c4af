//! Faults of the world: what freezes, is lost, begins anew or goes at another rate, until it is calm.

use std::collections::VecDeque;
use std::time::Duration;

use lessor_proto::Time;
use lessor_server::election::call::{Failure, Watched};

use super::task::rate;
use super::{CALM, Happening, ROOT, TASKS, World, watch};

// === impl World ===

impl World {
    pub(super) fn gaps(&mut self, now: Time) -> Result<(), String> {
        if now >= CALM {
            self.calm();
            return Ok(());
        }
        let next = now + self.rng.exponential(Duration::from_secs(2));
        self.queue.put(next.min(CALM), Happening::Fault);
        let task = self.rng.index(TASKS);
        let while_it_lasts = self.rng.time(Duration::from_millis(100), self.config.ttl * 3 / 2);
        let until = (now + while_it_lasts).min(CALM);
        match self.rng.below(11) {
            0 | 1 if self.tasks[task].frozen.is_none() => {
                self.tasks[task].frozen = Some(VecDeque::new());
                self.queue.put(until, Happening::Thaw { task });
            }
            2 if !self.etcd.is_frozen() => {
                self.etcd.freeze(until);
                self.queue.put(until, Happening::ThawEtcd);
            }
            3 => self.restart_etcd(now),
            4 => self.etcd.compact(),
            5 => {
                self.tasks[task].end();
                self.queue.put(until, Happening::Begin { task });
            }
            6 if self.tasks[task].frozen.is_none() => {
                let at = &mut self.tasks[task];
                at.books = None;
                if let Some(candidate) = &mut at.candidate {
                    candidate.resign(at.clock.at(now));
                }
                self.act(now, task)?;
            }
            7 => {
                self.tasks[task].is_cut = true;
                self.queue.put(until, Happening::Heal { task });
            }
            8 => self.change_rates(now),
            9 if !self.etcd.is_frozen() && self.etcd.depose(now, ROOT) => {
                self.counts.forced += 1;
                self.show(now);
            }
            // The watch of a task dies, and nobody tells it.
            10 => {
                let life = self.tasks[task].life;
                for &id in &self.tasks[task].watching {
                    self.etcd.store(ROOT).unwatch(watch(task, life, id));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn restart_etcd(&mut self, now: Time) {
        self.etcd.restart(now);
        for task in 0..TASKS {
            let life = self.tasks[task].life;
            for id in std::mem::take(&mut self.tasks[task].watching) {
                let watched = Watched::Ended(Failure::Unavailable("restarted".to_owned()));
                let at = now + self.rng.time(Duration::ZERO, Duration::from_millis(50));
                self.queue.put(at, Happening::Watched { task, life, id, watched });
            }
        }
    }

    fn change_rates(&mut self, now: Time) {
        let etcd_rate = rate(&mut self.rng);
        self.etcd.set_rate(now, etcd_rate);
        self.queue.put(self.etcd.next_end(ROOT).max(now), Happening::LeaseEnds);
        for task in 0..TASKS {
            let rate = rate(&mut self.rng);
            let at = &mut self.tasks[task];
            at.clock.set_rate(now, rate);
            if let Some(candidate) = &at.candidate {
                at.wakes = at.clock.when(candidate.next_deadline()).max(now + Duration::from_nanos(1));
                if at.wakes < Time::MAX {
                    self.queue.put(at.wakes, Happening::Wake { task });
                }
            }
        }
    }

    fn calm(&mut self) {
        self.losses = 0;
        self.slow = 0;
        self.tasks.iter_mut().for_each(|task| task.is_cut = false);
    }

    pub(super) fn is_lost(&mut self, task: usize) -> bool {
        self.tasks[task].is_cut || self.rng.chance(self.losses)
    }

    pub(super) fn delay(&mut self) -> Duration {
        let usual = self.rng.time(Duration::from_micros(200), Duration::from_millis(20));
        if self.rng.chance(self.slow) { usual + self.rng.exponential(Duration::from_secs(1)) } else { usual }
    }
}
