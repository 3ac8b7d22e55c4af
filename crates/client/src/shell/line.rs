//! The line to the servers of one node: carries out what a session says, and tells what came of it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use lessor_proto::ReportId;
use lessor_proto::message::Whereabouts;
use tracing::{debug, warn};

use super::bearer::BearerToken;
use super::link::{Link, Outcome};
use super::stream::Stream;
use super::tls::ClientTls;
use crate::session::{Action, Event, Failure};

/// The line of one session: at most one request and one stream.
#[derive(Debug)]
pub struct ParentLine {
    link: Link,
    request: Option<LineRequest>,
    stream: Option<Stream>,
    /// The failure of a stream that took nothing more, with the number of the stream.
    broken: Option<(u64, Failure)>,
    /// Whether something came that was not known, and was said to.
    has_met_unknown: bool,
}

struct LineRequest {
    id: ReportId,
    outcome: Pin<Box<dyn Future<Output = Outcome> + Send>>,
}

// === impl ParentLine ===

impl ParentLine {
    /// A line on which nobody waits for an answer for longer than `timeout`.
    #[must_use]
    pub fn new(timeout: Duration) -> ParentLine {
        ParentLine {
            link: Link::new(timeout),
            request: None,
            stream: None,
            broken: None,
            has_met_unknown: false,
        }
    }

    /// The same over TLS.
    #[must_use]
    pub fn with_tls(self, tls: Option<Arc<ClientTls>>) -> ParentLine {
        ParentLine { link: self.link.with_tls(tls), ..self }
    }

    /// The same with a token in every request.
    #[must_use]
    pub fn with_token(self, token: Option<BearerToken>) -> ParentLine {
        ParentLine { link: self.link.with_token(token), ..self }
    }

    /// Does what a session says, in the background. A [`Action::Change`] is not for a line.
    pub fn perform(&mut self, action: Action) {
        match action {
            Action::Change(_) | Action::News(_) => {}
            Action::Ask { id, to, ask } => {
                debug!(id = id.0, %to, resources = ask.reports.len(), "asking");
                self.request = Some(LineRequest { id, outcome: Box::pin(self.link.ask(&to, &ask)) });
            }
            Action::Release { id, to, release } => {
                debug!(id = id.0, %to, resources = release.resources.len(), "releasing");
                self.request = Some(LineRequest { id, outcome: Box::pin(self.link.release(&to, &release)) });
            }
            Action::Connect { id, to, hello } => {
                debug!(stream = id, %to, "connecting");
                self.broken = None;
                self.stream = Some(self.link.open(id, &to, hello));
            }
            Action::Send { id, up } => {
                let Some(mut stream) = self.stream.take_if(|stream| stream.id == id) else { return };
                match stream.say(&up) {
                    Ok(()) => self.stream = Some(stream),
                    Err(failure) => self.broken = Some((id, failure)),
                }
            }
            Action::Disconnect { id } => {
                debug!(stream = id, "disconnecting");
                self.stream.take_if(|stream| stream.id == id);
                self.broken.take_if(|(broken, _)| *broken == id);
            }
        }
    }

    /// Asks the server at `to` who leads its node, beside what is under way.
    ///
    /// # Errors
    /// With what came of it, where it does not answer.
    pub async fn discover(&mut self, to: &Arc<str>) -> Result<Whereabouts, Failure> {
        self.link.discover(to).await
    }

    /// The next thing heard; never, while nothing is under way. Nothing is lost when the future is dropped.
    pub async fn hear(&mut self) -> Event {
        if let Some((id, failure)) = self.broken.take() {
            return Event::Closed { id, failure };
        }
        tokio::select! {
            heard = answer(&mut self.request) => heard,
            heard = down(&mut self.stream) => {
                if let Event::Unknown { id } = heard
                    && !std::mem::replace(&mut self.has_met_unknown, true)
                {
                    warn!(stream = id, "a message of an unknown kind is passed over: its server is of a later version");
                }
                heard
            }
        }
    }
}

async fn answer(request: &mut Option<LineRequest>) -> Event {
    let Some(asked) = request else { return std::future::pending().await };
    let (id, outcome) = (asked.id, asked.outcome.as_mut().await);
    *request = None;
    match outcome {
        Outcome::Answered(answer) => {
            debug!(id = id.0, grants = answer.grants.len(), redirect = ?answer.redirect, "answered");
            Event::Answered { id, answer }
        }
        Outcome::Released(redirect) => {
            debug!(id = id.0, ?redirect, "released");
            Event::Released { id, redirect }
        }
        Outcome::Failed(failure) => {
            debug!(id = id.0, %failure, "failed");
            Event::Failed { id, failure }
        }
    }
}

async fn down(stream: &mut Option<Stream>) -> Event {
    let Some(open) = stream else { return std::future::pending().await };
    let id = open.id;
    match open.hear().await {
        Ok(Some(down)) => {
            debug!(stream = id, ?down, "heard");
            Event::Down { id, down }
        }
        Ok(None) => Event::Unknown { id },
        Err(failure) => {
            debug!(stream = id, %failure, "the stream has ended");
            *stream = None;
            Event::Closed { id, failure }
        }
    }
}

// === impl LineRequest ===

impl std::fmt::Debug for LineRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LineRequest").field("id", &self.id).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use lessor_proto::message::{Hello, HolderKind, Up};
    use lessor_proto::{ClientId, Incarnation};
    use tokio::net::TcpListener;

    use super::*;

    fn connect(id: u64, to: &str) -> Action {
        let holder = ClientId::new("web", 256).unwrap();
        Action::Connect { id, to: to.into(), hello: Hello::new(HolderKind::Client, holder, Incarnation(1)) }
    }

    async fn hear(line: &mut ParentLine) -> Event {
        tokio::time::timeout(Duration::from_secs(20), line.hear()).await.expect("within 20 s")
    }

    #[tokio::test]
    async fn a_stream_that_takes_nothing_more_is_broken() {
        // Connections are made, and nobody ever speaks.
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut line = ParentLine::new(Duration::from_secs(3_600));
        line.perform(connect(1, &silent.local_addr().unwrap().to_string()));
        let say = |line: &mut ParentLine, messages| {
            (0..messages).for_each(|_| line.perform(Action::Send { id: 1, up: Up::Bye }));
        };
        // What a holder of 100,000 resources begins with, and as much again.
        say(&mut line, 400);
        tokio::select! {
            biased;
            heard = line.hear() => panic!("{heard:?}"),
            () = std::future::ready(()) => {}
        }
        say(&mut line, 1_000);
        let heard = hear(&mut line).await;
        assert!(matches!(&heard, Event::Closed { id: 1, failure: Failure::Unreachable(_) }), "{heard:?}");
    }

    #[tokio::test]
    async fn nothing_is_heard_of_a_stream_that_was_dropped() {
        let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().to_string();
        let mut line = ParentLine::new(Duration::from_secs(20));
        line.perform(connect(1, &gone));
        line.perform(Action::Disconnect { id: 1 });
        line.perform(connect(2, "no address"));
        let heard = hear(&mut line).await;
        assert!(matches!(&heard, Event::Closed { id: 2, .. }), "{heard:?}");
    }
}
