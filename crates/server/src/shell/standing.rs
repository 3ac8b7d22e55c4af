//! A task that stands for election: what etcd says becomes what the driver does, and what the leader wants to be written
//! for its successors is written.

mod clocks;

use lessor_proto::Epoch;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use lessor_client::internals::clock;
use lessor_proto::message::Leader;
use tokio::sync::{mpsc, oneshot, watch};
use tracing::{info, warn};

use self::clocks::ClockAnswer;
pub(super) use self::clocks::Clocks;
use super::driver::{Driver, Unanswered};
use super::etcd::{Election, NotWritten, TemplateWatch};
use crate::election::Event;
use crate::election::lag::{Lag, Step};
use crate::follower::TaskStanding;
use crate::follower::deference::Deference;
use crate::marks::MarkWrite;

/// The longest wait until another may lead, when this task ends.
pub(super) const RESIGNATION: Duration = Duration::from_secs(3);

/// The interval at which a leader looks whether it has the configuration that was in force.
const LOOK: Duration = Duration::from_secs(1);

/// A write of the record that has been asked for.
struct Writing {
    epoch: Epoch,
    ticket: u64,
    done: oneshot::Receiver<Result<(), NotWritten>>,
}

/// The reasons for which a task leaves it to others to lead, looked at now and then.
pub(super) struct Keeping {
    lag: Lag,
    deference: Deference,
    /// The templates, where they are followed at etcd.
    templates: Option<TemplateWatch>,
}

/// The candidacy of a task: what it stands for, at which election, and when it leaves it to others.
struct Candidacy<'a> {
    driver: &'a Arc<Driver>,
    election: &'a mut Election,
    clocks: &'a mut Clocks,
    keeping: &'a mut Keeping,
}

/// Somebody who wants this task to leave its node to another, and waits for what came of it: the epoch that it gave up, and the
/// time after which it stands again; nothing where it did not lead.
pub(super) type HandOver = oneshot::Sender<Option<(Epoch, Duration)>>;

/// Until stopped, or until the node is broken: then the leader resigns, and another takes over at once.
pub(super) async fn stand(
    driver: Arc<Driver>,
    (mut election, mut clocks): (Election, Clocks),
    mut keeping: Keeping,
    mut asked: mpsc::Receiver<HandOver>,
    mut stopped: watch::Receiver<bool>,
) {
    let Ok(mut writes) = driver.record_writes() else { return };
    let candidacy =
        Candidacy { driver: &driver, election: &mut election, clocks: &mut clocks, keeping: &mut keeping };
    // A check of the node that fails in a call of this very task must not take the resignation along: the key would stay.
    let went_on = candidacy.go_on(&mut writes, &mut asked, &mut stopped);
    let ended = AssertUnwindSafe(went_on).catch_unwind().await;
    if !matches!(ended, Ok(Ok(()))) {
        warn!("this task stands for election no more: its node is broken");
    }
    // What is out exactly is written behind all that was asked for before, and then that this task leads no more.
    if let Ok(Some((epoch, write))) = driver.resign() {
        drop(election.write(Some(epoch), write.change));
    }
    election.resign();
    let resigned = tokio::time::timeout(RESIGNATION, async {
        while let Some(event) = election.event().await {
            if event == Event::Resigned {
                return;
            }
        }
    });
    match resigned.await {
        Ok(()) => info!("another task may lead"),
        Err(_) => {
            warn!(after = ?RESIGNATION, "etcd has not heard that this task leads no more: its key has to end");
        }
    }
}

/// Gives up the epoch as at the end of the server: what is out is written, and that nobody has to wait for this task. Nothing is
/// granted from here on.
fn hand_over(driver: &Driver, election: &Election, told: HandOver) -> Result<(), Unanswered> {
    let left = driver.resign()?;
    if let Some((epoch, write)) = left {
        drop(election.write(Some(epoch), write.change));
        // Somebody else has led by then, if there is anybody.
        election.hand_over(election.ttl);
        info!(epoch = epoch.0, again_after = ?election.ttl, "leaves it to another task to lead, as an operator wants it");
        // Nobody need wait for it.
        let _ = told.send(Some((epoch, election.ttl)));
    } else {
        let _ = told.send(None);
    }
    Ok(())
}

// === impl Candidacy ===

impl Candidacy<'_> {
    /// Stands and leads until it is stopped.
    ///
    /// # Errors
    ///
    /// When the node is broken.
    ///
    /// # Panics
    ///
    /// When the node fails one of its own checks in a call from here.
    async fn go_on(
        self,
        writes: &mut mpsc::UnboundedReceiver<(Epoch, MarkWrite)>,
        asked: &mut mpsc::Receiver<HandOver>,
        stopped: &mut watch::Receiver<bool>,
    ) -> Result<(), Unanswered> {
        let Candidacy { driver, election, clocks, keeping } = self;
        let mut writing: Option<Writing> = None;
        let mut looks = tokio::time::interval(LOOK);
        loop {
            let outcome = tokio::select! {
                _ = stopped.wait_for(|&stop| stop) => return Ok(()),
                Some(told) = asked.recv() => hand_over(driver, election, told),
                Some(event) = election.event() => tell(driver, event, clocks),
                _ = looks.tick() => keeping.keep_up(driver, election),
                reading = clocks.go_on() => match reading {
                    Some(ClockAnswer { epoch, asked, shown }) => {
                        election.hear_clock(epoch, asked, shown);
                        driver.hear_of_epoch(epoch)
                    }
                    None => Ok(()),
                },
                Some((epoch, write)) = writes.recv(), if writing.is_none() => {
                    let ticket = write.ticket;
                    writing = Some(Writing { epoch, ticket, done: election.write(Some(epoch), write.change) });
                    Ok(())
                }
                written = async { (&mut writing.as_mut().expect("there is one").done).await }, if writing.is_some() => {
                    let Writing { epoch, ticket, .. } = writing.take().expect("there is one");
                    driver.on_record(epoch, ticket, matches!(written, Ok(Ok(()))))
                }
                else => return Ok(()),
            };
            if outcome == Err(Unanswered::Broken) {
                return outcome;
            }
        }
    }
}

// === impl Keeping ===

impl Keeping {
    /// The reasons of a task that begins: where it has no templates yet, it leaves it to others to lead from the start.
    pub(super) fn begin(election: &Election, templates: Option<TemplateWatch>) -> Keeping {
        let mut keeping = Keeping { lag: Lag::new(election.ttl), deference: Deference::default(), templates };
        let stands = keeping.templates.as_ref().is_none_or(|templates| templates.status.borrow().stands);
        if let Some(Step::Aside(time)) = keeping.deference.look(clock::now(), stands, false) {
            election.stand_aside(time);
            info!("this task does not stand for election yet: it has not the templates to lead by");
        }
        keeping
    }

    /// Leaves it to others to lead for want of the configuration that was in force, or that others have, and stands again when
    /// it is there.
    fn keep_up(&mut self, driver: &Driver, election: &Election) -> Result<(), Unanswered> {
        let (here, later) = driver.editions()?;
        match self.lag.look(clock::now(), here, later) {
            Some(Step::Aside(time)) => {
                election.stand_aside(time);
                warn!(version = here, ?later, at_most = ?time, "this task leaves it to others to lead: its configuration is older");
            }
            Some(Step::Stand) if !self.deference.is_aside() => {
                election.stand_again();
                info!(version = here, "this task may lead again: it has the configuration that was in force");
            }
            Some(Step::Stand) | None => {}
        }
        let Some(templates) = &self.templates else { return Ok(()) };
        let (leads, stands) = (driver.whereabouts().is_leader, templates.status.borrow().stands);
        let step = self.deference.look(clock::now(), stands, leads);
        let record = if leads { here.max(later.unwrap_or_default()) } else { 0 };
        let standing = TaskStanding { leads, stands: !self.deference.is_aside(), record };
        templates.standing.send_if_modified(|before| std::mem::replace(before, standing) != standing);
        match step {
            Some(Step::Aside(_)) if leads => {
                warn!(
                    version = here,
                    "this task leaves it to another to lead, which has the templates that it refuses"
                );
                hand_over(driver, election, oneshot::channel().0)
            }
            Some(Step::Aside(time)) => {
                election.stand_aside(time);
                Ok(())
            }
            Some(Step::Stand) => {
                election.stand_again();
                info!(version = here, "this task may lead: it has the templates that others have");
                Ok(())
            }
            None => Ok(()),
        }
    }
}

/// Does what an event asks for.
fn tell(driver: &Driver, event: Event, clocks: &mut Clocks) -> Result<(), Unanswered> {
    match event {
        Event::Elected { epoch, record } => {
            clocks.follow(None);
            driver.lead(epoch, *record)
        }
        Event::Resumed => driver.resume(),
        Event::Deposed => driver.follow(Leader::default(), None),
        Event::Leader(leader) => {
            let address = leader.map(|leader| leader.address);
            clocks.follow(address.as_deref());
            // Which epoch that is stands in its own record only: it is asked for that, with what its clock shows.
            driver.follow(Leader { address }, None)
        }
        Event::Faulty(_) => {
            driver.hear_of_etcd(false);
            Ok(())
        }
        Event::Healthy => {
            driver.hear_of_etcd(true);
            Ok(())
        }
        // What authority allows is looked at in every step.
        Event::Lapsed | Event::Resigned | Event::Written(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests;
