//! The events of a simulation, and the messages that are under way.
//!
//! Millions of events lie ahead in a large simulation, nearly all of them deadlines. So an event is small, and what it
//! brings lies elsewhere.

use lessor_client::Failure;
use lessor_client::internals::session;
use lessor_proto::message::{Answer, Ask, Down, Hello, Leader, Release, Up};
use lessor_proto::{Epoch, ReportId, Time};
use lessor_server::election::call::{Answer as FromEtcd, Call, Failure as NoAnswer, Watched};

use crate::actor::{Actor, Sender};
use crate::faults::Fault;
use crate::rule_book::Whose;
use crate::simulation::TemplateStep;
use crate::stream::StreamRef;

/// Something that happens at a moment.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// A deadline of somebody.
    Wake(Actor),
    /// Something arrives at a task.
    ToNode {
        task: u32,
        delivery: Box<ToNode>,
    },
    /// Something arrives at a holder.
    ToHolder {
        holder: Sender,
        delivery: Box<ToHolder>,
    },
    /// A belief ends, unless it was renewed.
    Lapse(u32),
    /// A program uses some of what it may, or ends that.
    Use(u32),
    /// A hit that was denied is tried again.
    Hit(u32),
    /// A request for the domain that clients share comes to one of them.
    Request(u32),
    /// A life of a client takes up a resource that it dropped.
    Take(u32, u32),
    /// A program that was told of another kind comes back as that, in the same life of its client.
    Reopen(u32, u32),
    /// A leader hears what has waited until it may act again.
    Waiting(u32),
    /// A process that was frozen goes on.
    Thaw(Actor),
    Fault(Fault),
    /// A client comes back.
    Back(u32),
    /// A twin goes.
    TwinEnds(u32),
    /// The process of a task begins.
    Start(u32),
    /// A client wants something else.
    Wants(u32),
    /// A task hears that the configuration of its site has changed.
    Reload(u32),
    /// A task reads the rules of access, which have changed.
    Access(u32),
    /// A step of the follower of a task, or of the operator who pushes templates.
    Templates(u32, Box<TemplateStep>),
    /// Somebody gets all rights back.
    Regain(Whose),
    /// A task cleans up in an epoch.
    Tidy(u32, u32),
    /// A task asks what the clock of its leader shows, is asked, or is told.
    Clock(u32, Box<ClockCall>),
    /// A template comes back.
    Cover(u16),
    /// A call arrives at etcd.
    EtcdCall {
        caller: Caller,
        id: u64,
        call: Box<SentCall>,
    },
    /// Its answer arrives at a task.
    EtcdAnswers {
        caller: Caller,
        id: u64,
        result: Box<Result<FromEtcd, NoAnswer>>,
    },
    /// A task sees something on a watch.
    EtcdShows {
        caller: Caller,
        id: u64,
        watched: Box<Watched>,
    },
    /// A lease at etcd ends that a task of a site has.
    LeasesEnd(u32),
    /// Etcd goes on.
    EtcdThaws,
    /// A process of a task has written its file.
    Stored {
        task: u32,
        births: u32,
    },
    /// There is room again on the disk of a site.
    Room(u32),
}

/// A step of a question about the clock of a leader.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ClockCall {
    /// It is time to ask, and again after a while.
    Due { births: u32 },
    /// Another leader is seen: it is asked at once.
    Seen { births: u32 },
    /// The question of a task has come.
    Asked { by: u32, births: u32, asked: Time },
    /// The answer has.
    Told { births: u32, asked: Time, epoch: Epoch, shown: Time },
}

/// A process of a task that calls etcd.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Caller {
    pub(crate) task: u32,
    pub(crate) birth: u32,
}

/// A call of etcd that is under way.
#[derive(Clone, Debug)]
pub(crate) struct SentCall {
    pub(crate) sent: Time,
    pub(crate) call: Call,
}

/// Something that arrives at a task.
#[derive(Clone, Debug)]
pub(crate) enum ToNode {
    Ask {
        from: Sender,
        id: ReportId,
        ask: Box<Ask>,
    },
    Release {
        from: Sender,
        id: ReportId,
        release: Box<Release>,
    },
    Open {
        stream: StreamRef,
        hello: Box<Hello>,
    },
    Up {
        stream: StreamRef,
        up: Up,
    },
    /// The end of a stream; `certain` if it arrives although the stream is cut.
    Gone {
        stream: StreamRef,
        certain: bool,
    },
    /// The last message has left.
    Ready {
        stream: StreamRef,
    },
}

/// Something that arrives at a holder.
#[derive(Clone, Debug)]
pub(crate) enum ToHolder {
    Answered { id: ReportId, answer: Box<Answer> },
    Failed { id: ReportId, failure: Failure },
    Released { id: ReportId, redirect: Option<Leader> },
    Down { stream: StreamRef, down: Down },
    Closed { stream: StreamRef, failure: Failure, certain: bool },
}

// === impl Event ===

impl Event {
    /// Whether it is one of servers alone: what clients believe does not change by it.
    pub(crate) fn is_of_servers(&self) -> bool {
        match self {
            Event::Wake(actor) | Event::Thaw(actor) => matches!(actor, Actor::Task(_)),
            Event::ToHolder { holder, .. } => matches!(holder.actor, Actor::Task(_)),
            Event::ToNode { .. }
            | Event::Start(_)
            | Event::Reload(_)
            | Event::Access(_)
            | Event::Templates(..)
            | Event::Regain(_)
            | Event::Tidy(..)
            | Event::Clock(..)
            | Event::EtcdCall { .. }
            | Event::EtcdAnswers { .. }
            | Event::EtcdShows { .. }
            | Event::LeasesEnd(_)
            | Event::EtcdThaws
            | Event::Stored { .. }
            | Event::Room(_)
            | Event::Waiting(_) => true,
            Event::Lapse(_)
            | Event::Use(_)
            | Event::Hit(_)
            | Event::Request(_)
            | Event::Take(..)
            | Event::Reopen(..)
            | Event::Fault(_)
            | Event::Back(_)
            | Event::TwinEnds(_)
            | Event::Wants(_)
            | Event::Cover(_) => false,
        }
    }
}

// === impl ToHolder ===

impl ToHolder {
    /// The same for a session, which knows it, or the stream that it came on, by this number.
    pub(crate) fn event(self, id: u64) -> session::Event {
        match self {
            ToHolder::Answered { answer, .. } => {
                session::Event::Answered { id: ReportId(id), answer: *answer }
            }
            ToHolder::Failed { failure, .. } => session::Event::Failed { id: ReportId(id), failure },
            ToHolder::Released { redirect, .. } => session::Event::Released { id: ReportId(id), redirect },
            ToHolder::Down { down, .. } => session::Event::Down { id, down },
            ToHolder::Closed { failure, .. } => session::Event::Closed { id, failure },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_stays_small() {
        assert_eq!(size_of::<Event>(), 32);
    }
}
