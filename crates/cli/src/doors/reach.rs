//! The way from doors to the servers that lease, looked at now and then.

use std::convert::Infallible;
use std::time::Duration;

use lessor_client::Builder;
use lessor_client::internals::clock;
use lessor_doors::shell::{Doors, Reach};
use sd_notify::NotifyState;
use tracing::{info, warn};

use super::sockets::tell_supervisor;

/// The interval at which it is looked whether a server answers: while none does, and while one does.
const REACH_AGAIN: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(10)];

/// Looks whether a server answers, and says so where that changes.
pub(super) async fn watch_servers(servers: &Builder, doors: &Doors) -> Infallible {
    loop {
        let reach = match servers.reach().await {
            Ok(()) => Reach::Reached,
            Err(fault) => Reach::Unreached(fault.to_string()),
        };
        if reach != doors.reach() {
            match reach.cause() {
                None => info!("ready: a server answers"),
                Some(cause) => warn!(cause, "degraded"),
            }
            let cause = reach.cause().map_or("ready".to_owned(), |cause| format!("degraded: {cause}"));
            tell_supervisor(&[NotifyState::Status(&cause)]);
        }
        let again = REACH_AGAIN[usize::from(reach == Reach::Reached)];
        doors.set_reach(reach);
        clock::sleep_until(clock::now() + again).await;
    }
}
