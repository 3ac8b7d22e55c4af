//! The process's own clock.

use std::future::Future;

use lessor_proto::Time;

use super::Clock;
use crate::shell::clock;

/// Time as the shell reads it.
pub(crate) struct Boot;

impl Clock for Boot {
    fn now(&self) -> Time {
        clock::now()
    }

    fn sleep_until(&self, at: Time) -> impl Future<Output = ()> + Send {
        clock::sleep_until(at)
    }
}
