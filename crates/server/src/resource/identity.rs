//! The identity of a holder: its kind, its name, and which life of that name speaks.

use std::num::NonZeroU32;

use lessor_proto::Incarnation;
use lessor_proto::message::{Ask, Has, HolderKind, Report};

use crate::config::NodeConfig;
use crate::mutation::{Rule, Rules};
use crate::token::{PolledLease, PollerLife};

/// The life of its id from which a request says that it comes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Life<'a> {
    /// The incarnation that our clients send, and nodes that nobody has preceded.
    Incarnation(Incarnation),
    /// The leader of a node in its epoch of that number. All leaders of one line are one holder: the next one takes over
    /// what the one before had.
    Leader { line: u64, incarnation: Incarnation },
    /// The life in the token that Doorman's clients echo without knowing.
    Session(PollerLife),
    /// A lease without a token of ours: the client forgets what it does not know, or comes from elsewhere.
    Unnamed(&'a Has),
    /// No lease: a life that has just begun.
    New,
}

/// The connection that a call came on, as a number that nobody else can foresee. It is the same for as long as the connection
/// lasts.
///
/// Holders that draw no incarnation have nothing else by which a release of theirs could be told from that of a stranger. So
/// the number of a life says on which connection that began.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConnectionMark(NonZeroU32);

/// The numbers of the sessions that calls begin.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Sessions {
    last: u32,
    /// The connection of the call that is being answered.
    pub(crate) caller: Option<ConnectionMark>,
}

/// The holder that asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Holder<'a> {
    pub(crate) kind: HolderKind,
    pub(crate) name: &'a str,
    pub(crate) life: Life<'a>,
}

// === impl ConnectionMark ===

impl ConnectionMark {
    /// The connection of that number.
    #[must_use]
    pub const fn new(number: NonZeroU32) -> ConnectionMark {
        ConnectionMark(number)
    }

    /// Whether the life of that number began on this connection.
    pub(crate) fn has_begun(self, session: Incarnation) -> bool {
        session.0 >> u32::BITS == u64::from(self.0.get())
    }
}

// === impl Sessions ===

impl Sessions {
    /// The number of a life that begins now. One holder on one connection has had no other of that number for the last 2^32
    /// calls.
    pub(crate) fn number(self) -> Incarnation {
        let caller = self.caller.map_or(0, |ConnectionMark(number)| u64::from(number.get()));
        Incarnation(caller << u32::BITS | u64::from(self.last))
    }

    /// The next call begins others.
    pub(crate) fn pass(&mut self) {
        self.last = self.last.wrapping_add(1);
    }
}

/// The holder that sends `report`, and its life. A token tells the life under every leader: two processes of
/// one id may show the same amount.
pub(crate) fn holder<'a>(ask: &'a Ask, report: &'a Report, config: &NodeConfig) -> Holder<'a> {
    let life = match (ask.incarnation, &report.has) {
        (Some(incarnation), _) => life(ask.kind, ask.line, incarnation, config.rules),
        (None, None) => Life::New,
        (None, Some(has)) => match (has.order, PolledLease::read(&has.token)) {
            (Some(_), Ok(lease)) => Life::Session(lease.life),
            _ => Life::Unnamed(has),
        },
    };
    Holder { kind: ask.kind, name: ask.holder.as_str(), life }
}

/// Which life it is that has drawn an incarnation, or was elected. Where a node says no line, whatever else bears its name
/// is somebody else.
pub(crate) fn life<'a>(
    kind: HolderKind,
    line: Option<u64>,
    incarnation: Incarnation,
    rules: Rules,
) -> Life<'a> {
    let line = line.or_else(|| (!rules.keep(Rule::NamesakesAreTwo)).then_some(0));
    match (kind, line) {
        (HolderKind::Node, Some(line)) => Life::Leader { line, incarnation },
        _ => Life::Incarnation(incarnation),
    }
}
