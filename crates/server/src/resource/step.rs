//! Shares in steps: equal shares that are powers of two of a millionth, so that they change rarely.
//!
//! Of what is reserved everybody wants more than there is, so that the equal share of all would move with everyone who
//! comes or goes, and all would have to be told. In steps it halves when twice as many have come. The steps are the same
//! all over the tree: a node below is granted as many whole steps as it has clients.
//!
//! Who comes and goes where a step begins would make all go up and down with it. So nobody goes up a step before there is
//! a quarter more than that takes.
//!
//! Where the capacity is known the step below the level is taken, and what is left serves those who come next. A node that
//! holds a lease has as much as its clients needed before the last of them came, and more is on its way: it takes the
//! nearest step, so that those who are there keep theirs meanwhile. Unless it has more out than it has.

use super::Resource;

/// A level that misses a step by less is that step: sums of steps are divided again.
const NEARLY: f64 = 1.0 + 1e-6;

/// The multiple of the need of the next step that has to be there before it is taken.
const AMPLE: f64 = 1.25;

/// The rounding of a level to a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rounding {
    Below,
    Nearest,
}

// === impl Resource ===

impl Resource {
    /// The most that one subclient of `priority` gets; nothing where that is not how it is shared.
    pub(super) fn level(&self, priority: i64) -> Option<f64> {
        let level = self.holders.shares().level(priority)?;
        if !self.terms.in_steps {
            return Some(level);
        }
        let rounding =
            if self.is_leased() && !self.ledger.in_debt() { Rounding::Nearest } else { Rounding::Below };
        let step = step(level, rounding);
        let rises = rounding == Rounding::Below && self.holders.step() > 0.0 && step > self.holders.step();
        Some(if rises && level < self.holders.step() * 2.0 * AMPLE { self.holders.step() } else { step })
    }

    /// Remembers which step is taken from here on, so that the next is not taken too soon.
    pub(super) fn take_step(&mut self) {
        if self.terms.in_steps {
            let priority = self.holders.shares().priorities().max();
            self.holders.set_step(priority.and_then(|priority| self.level(priority)).unwrap_or(0.0));
        }
    }

    /// The amount that would be handed out if there were as much as that takes, in units.
    pub(super) fn wanted(&self) -> f64 {
        let wants = self.holders.shares().wants();
        if !self.terms.in_steps {
            return wants;
        }
        // There is one priority, but for who makes up others.
        let level = self
            .holders
            .shares()
            .priorities()
            .filter_map(|priority| self.level(priority))
            .fold(0.0, f64::max);
        wants.min(level * self.holders.shares().weight() as f64)
    }
}

/// `level`, in units, as a power of two of a millionth; nothing if it is less than a millionth.
fn step(level: f64, rounding: Rounding) -> f64 {
    let micros = level * 1e6;
    if micros < 1.0 || !micros.is_finite() {
        return if micros < 1.0 { 0.0 } else { level };
    }
    let steps = match rounding {
        Rounding::Below => (micros * NEARLY).log2().floor(),
        Rounding::Nearest => micros.log2().round(),
    };
    steps.exp2() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: u64 = 1 << 23;

    /// In millionths.
    fn check(level: f64, rounding: Rounding) -> u64 {
        (step(level, rounding) * 1e6) as u64
    }

    #[test]
    fn a_level_is_cut_to_a_power_of_two_of_a_millionth() {
        assert_eq!(check(10.0, Rounding::Below), STEP);
        assert_eq!(check(8.388_608, Rounding::Below), STEP);
        assert_eq!(check(8.388_607, Rounding::Below), STEP, "what is nearly a step is one");
        assert_eq!(check(8.38, Rounding::Below), STEP / 2);
        assert_eq!((check(0.0, Rounding::Below), check(5e-7, Rounding::Nearest)), (0, 0));
        assert!(step(f64::INFINITY, Rounding::Nearest).is_infinite());
    }

    #[test]
    fn a_node_keeps_its_step_until_it_has_too_little_for_it_by_far() {
        let clients = |n: f64| check(8.388_608 * n / (n + 1.0), Rounding::Nearest);
        assert_eq!((clients(3.0), clients(100.0)), (STEP, STEP));
        assert_eq!(clients(1.0), STEP / 2, "the second of two shares with the first until there is more");
    }
}
