//! The wires of the town: every message is late, and some never arrive.

use std::time::Duration;

use rand::RngExt;
use rand_pcg::Pcg64;

/// How bad the wires are.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Network {
    /// The shortest time a message takes.
    pub shortest: Duration,
    /// The longest.
    pub longest: Duration,
    /// The fraction of messages that are lost.
    pub loss: f64,
}

// === impl Network ===

impl Network {
    /// How long a message takes; nothing if it is lost.
    pub fn fate(&self, dice: &mut Pcg64) -> Option<Duration> {
        let lost = dice.random_bool(self.loss);
        let spread = self.longest.saturating_sub(self.shortest);
        let delay = self.shortest + spread.mul_f64(dice.random::<f64>());
        (!lost).then_some(delay)
    }
}

impl Default for Network {
    /// 1 to 50 ms, and one message in twenty lost.
    fn default() -> Network {
        Network { shortest: Duration::from_millis(1), longest: Duration::from_millis(50), loss: 0.05 }
    }
}
