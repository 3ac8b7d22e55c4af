//! The judge of the world: what must hold after every event, and when the faults are over.

use lessor_proto::Time;

use super::task::{Books, DRIFT};
use super::{ROOT, TASKS, World, resource};

// === impl World ===

impl World {
    pub(super) fn judge(&self, now: Time) -> Result<(), String> {
        let acting: Vec<(usize, &Books)> = self
            .tasks
            .iter()
            .enumerate()
            .filter(|(_, task)| task.may_act(now))
            .filter_map(|(number, task)| Some((number, task.books.as_ref()?)))
            .collect();
        let newest = acting.iter().map(|(_, books)| books.epoch).max();
        for (task, books) in &acting {
            if Some(books.epoch) != newest && !self.was_just_forced(now, books.epoch) {
                return Err(format!(
                    "{now}: task {task} acts in epoch {}, and {newest:?} has begun",
                    books.epoch
                ));
            }
            if self.etcd.leads(ROOT) == Some(books.epoch) {
                let mark = self.etcd.record(ROOT).marks.get(&resource()).map_or(0, |mark| mark.as_micros());
                if mark < books.mark {
                    return Err(format!("{now}: task {task} has {}, the record says {mark}", books.mark));
                }
            } else if !self.was_just_forced(now, books.epoch) {
                return Err(format!(
                    "{now}: task {task} acts in epoch {}, and its key has gone",
                    books.epoch
                ));
            }
        }
        Ok(())
    }

    /// Whether a leader was deposed by hand so short a time ago that it may still go on for the authority that it
    /// has, on the slowest clock.
    fn was_just_forced(&self, now: Time, epoch: u64) -> bool {
        let slowest = self.config.authority.mul_f64(1.0 / (1.0 - f64::from(DRIFT) / 1e6));
        self.etcd.forced(ROOT, epoch).is_some_and(|at| now.since(at) <= slowest)
    }

    pub(super) fn judge_calm(&self, now: Time) -> Result<(), String> {
        let leaders: Vec<usize> = (0..TASKS).filter(|&task| self.tasks[task].may_act(now)).collect();
        let [leader] = leaders[..] else { return Err(format!("{now}: {leaders:?} lead after the faults")) };
        let address = format!("task-{leader}:1");
        for (task, at) in self.tasks.iter().enumerate().filter(|(task, _)| *task != leader) {
            let known = at.leader.as_ref().map(|leader| leader.address.as_str());
            if known != Some(&address) {
                return Err(format!("{now}: task {task} knows of {known:?}, and {address} leads"));
            }
        }
        Ok(())
    }
}
