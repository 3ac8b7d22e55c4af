//! The identity of a holder: its kind, its name, and which life of that name speaks.

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

/// The holder that asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Holder<'a> {
    pub(crate) kind: HolderKind,
    pub(crate) name: &'a str,
    pub(crate) life: Life<'a>,
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
