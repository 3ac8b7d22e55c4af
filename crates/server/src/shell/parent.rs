//! The way up: does what the node says with the one above it, and tells it what came of that.

mod answers;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use lessor_client::internals::clock;
use lessor_client::internals::session::Event;
use lessor_proto::message::Down;
use tokio::sync::watch;
use tracing::{info, warn};

use self::answers::Answers;
use super::driver::{Driver, Side, Upward};
use super::probe::NodeAbove;

/// The longest wait for an answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Until stopped.
pub(super) async fn follow(driver: Arc<Driver>, above: NodeAbove, mut stopped: watch::Receiver<bool>) {
    let Ok(mut actions) = driver.parent_actions() else { return };
    let anew = || above.line(TIMEOUT);
    let (mut line, mut serves, mut answers) = (anew(), None, Answers::default());
    let mut current_epoch = driver.epoch().unwrap_or_default();
    loop {
        tokio::select! {
            _ = stopped.wait_for(|&stop| stop) => return,
            Some(upward) = actions.recv() => match upward {
                Upward::Do(action) => {
                    answers.send(clock::now(), &action);
                    line.perform(action);
                }
                Upward::Begin(epoch) => current_epoch = epoch,
                // What the leader had begun ends with its line.
                Upward::End => (line, answers) = (anew(), Answers::default()),
            },
            heard = line.hear() => {
                note(&driver, &mut answers, &heard);
                if tell(&heard, &mut serves) {
                    driver.reach_parent();
                }
                driver.traffic().parent_fails.store(serves == Some(false), Ordering::Relaxed);
                if driver.on_parent(current_epoch, heard).is_err() {
                    warn!("the node above is left alone: this one is broken");
                    return;
                }
            }
        }
    }
}

/// Measures what is heard.
fn note(driver: &Driver, answers: &mut Answers, heard: &Event) {
    let traffic = driver.traffic();
    if let Some(took) = answers.hear(clock::now(), heard) {
        traffic.parent_answers.note(took);
    }
    match heard {
        Event::Failed { .. } | Event::Closed { .. } => {
            traffic.parent_failures.fetch_add(1, Ordering::Relaxed);
        }
        // What is said of it in the log, the line says.
        Event::Unknown { .. } => traffic.unknown.add(Side::Above),
        Event::Answered { .. } | Event::Released { .. } | Event::Down { .. } => {}
    }
}

/// Says when the node above begins to serve, and when it stops; not how often it does not. Returns whether it begins.
fn tell(heard: &Event, serves: &mut Option<bool>) -> bool {
    let serves_now = match heard {
        Event::Failed { .. } | Event::Closed { .. } => false,
        // A task that does not lead says who does, and that is all that it says.
        Event::Down { down: Down::Redirect(_), .. } | Event::Released { redirect: Some(_), .. } => {
            return false;
        }
        Event::Answered { answer, .. } if answer.redirect.is_some() => return false,
        // It may be no more than who leads.
        Event::Unknown { .. } => return false,
        Event::Answered { .. } | Event::Released { .. } | Event::Down { .. } => true,
    };
    if serves.replace(serves_now) == Some(serves_now) {
        return false;
    }
    match heard {
        Event::Failed { failure, .. } | Event::Closed { failure, .. } => {
            warn!(%failure, "the node above does not serve");
        }
        _ => info!("the node above serves"),
    }
    serves_now
}
