//! Two leaders at once: one that was deposed and lives on, and its successor. And a client that goes from one to the other
//! and back.

use std::time::Duration;

use lessor_client::internals::holding::HoldingConfig;
use lessor_client::internals::session::{self, Action, Session, SessionConfig};
use lessor_client::{Failure, Fallback, Kind, Transport};
use lessor_proto::message::{Down, HolderKind};
use lessor_proto::{Amount, ClientId, Incarnation, Time};
use lessor_server::node::{Node, Output, Peer};
use lessor_sim::mutation::Mutation;

use super::hall::{self, Report, units};

/// The client, both leaders, and the stream to one of them.
pub(super) struct Line {
    now: Time,
    session: Session,
    leaders: [Node; 2],
    /// The leader that answers a client that opens a stream.
    answers: usize,
    stream: Option<(u64, usize, Peer)>,
    /// Grants are lost on their way.
    deaf: bool,
}

/// The client has all 10 of the first leader. It shows that to the second one and keeps 2, and another one gets 8 there;
/// what the second leader then grants to it is lost. Back at the first leader it wants all 10 again.
pub(crate) fn back_to_the_deposed(without: Option<Mutation>) -> Option<String> {
    let mut line = Line::new(without);
    line.want(10.0);
    line.pass(5);
    assert_eq!(line.uses(), units(10));

    line.hang_up();
    (line.answers, line.deaf) = (1, true);
    line.want(2.0);
    line.pass(5);
    let wish = Report { wants: 8.0, ..Report::default() };
    let other = hall::ask(&mut line.leaders[1], line.now, (HolderKind::Client, "other", 1), &wish);
    assert_eq!((line.uses(), other), (units(2), units(8)));

    line.hang_up();
    (line.answers, line.deaf) = (0, false);
    line.want(10.0);
    line.pass(20);
    let all = line.uses().saturating_add(other);
    (all > units(10)).then(|| format!("{all} of 10 are in use"))
}

// === impl Line ===

impl Line {
    pub(super) fn new(without: Option<Mutation>) -> Line {
        let id = ClientId::new("c", 16).expect("a name");
        let config = SessionConfig {
            transport: Transport::Stream,
            rules: without.map(Mutation::client).unwrap_or_default(),
            ..SessionConfig::new(id, Incarnation(1), vec!["leader:1".into()])
        };
        let mut session = Session::new(config);
        let holding =
            HoldingConfig { fallback: Fallback::Pessimistic, ..HoldingConfig::new(Kind::Rate, 0.0, 0) };
        session.add(Time::ZERO, hall::resource(), holding);
        Line {
            now: Time::ZERO,
            session,
            leaders: [hall::first(without, 10), hall::successor(without, 10)],
            answers: 0,
            stream: None,
            deaf: false,
        }
    }

    pub(super) fn uses(&self) -> Amount {
        let allowance = self.session.allowance(self.now, &hall::resource());
        if self.now < allowance.until { allowance.capacity.unwrap_or(Amount::MAX) } else { Amount::ZERO }
    }

    pub(super) fn want(&mut self, wants: f64) {
        self.session.set_wants(self.now, &hall::resource(), wants);
    }

    /// The stream breaks, and both ends hear of it.
    fn hang_up(&mut self) {
        if let Some((id, leader, peer)) = self.stream.take() {
            self.leaders[leader].disconnect(self.now, peer);
            self.session.handle(
                self.now,
                session::Event::Closed { id, failure: Failure::Unreachable("it broke".to_owned()) },
            );
        }
    }

    pub(super) fn pass(&mut self, seconds: u64) {
        let end = self.now + Duration::from_secs(seconds);
        loop {
            while self.client_acts() || self.leaders_act() {}
            let deadlines = self.leaders.iter().filter_map(Node::next_deadline);
            let next = deadlines.chain([self.session.next_deadline()]).min().unwrap_or(end);
            if next >= end {
                break;
            }
            // Whatever was due at this moment has been done.
            self.now = next.max(self.now + Duration::from_millis(1));
        }
        self.now = self.now.max(end);
    }

    fn client_acts(&mut self) -> bool {
        match self.session.poll(self.now) {
            None => return false,
            Some(Action::Connect { id, hello, .. }) => {
                let peer = self.leaders[self.answers].connect(self.now, hello);
                self.stream = Some((id, self.answers, peer));
            }
            Some(Action::Send { id, up }) => {
                if let Some((_, leader, peer)) = self.stream.filter(|(stream, ..)| *stream == id) {
                    self.leaders[leader].receive(self.now, peer, up);
                }
            }
            Some(Action::Disconnect { .. }) => {
                if let Some((_, leader, peer)) = self.stream.take() {
                    self.leaders[leader].disconnect(self.now, peer);
                }
            }
            Some(_) => {}
        }
        true
    }

    fn leaders_act(&mut self) -> bool {
        for leader in 0..2 {
            let Some(output) = self.leaders[leader].poll(self.now) else { continue };
            if let Output::Send { peer, down } = output {
                self.leaders[leader].ready(self.now, peer);
                let lost = self.deaf && matches!(down, Down::Grants(_) | Down::Renewed { .. });
                if let Some((id, ..)) =
                    self.stream.filter(|stream| (stream.1, stream.2) == (leader, peer) && !lost)
                {
                    self.session.handle(self.now, session::Event::Down { id, down });
                }
            }
            return true;
        }
        false
    }
}
