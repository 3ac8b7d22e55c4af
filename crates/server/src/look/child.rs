//! The stream of a node below, as far as looks go down it: it is asked one thing at a time.

use std::time::Duration;

use lessor_proto::message::{Hello, ViewPart};
use lessor_proto::{ClientId, Incarnation, Time};

/// A node below that has a stream open.
#[derive(Clone, Debug)]
pub(super) struct ChildLine {
    pub(super) name: ClientId,
    /// The line of succession in which it stands, and its epoch in that: of two in one line the later has taken the other's place.
    pub(super) line: Option<(u64, Incarnation)>,
    /// Whether it knows looks.
    pub(super) can_be_asked: bool,
    /// The look that it is at.
    sent: Option<SentLook>,
}

/// A look that was sent to a child and is not answered yet.
#[derive(Clone, Debug)]
struct SentLook {
    id: u64,
    /// The number of the look here.
    of: u64,
    at: Time,
    /// Nobody waits for it any more.
    is_given_up: bool,
    /// The next part.
    next: u32,
    bytes: Vec<u8>,
}

/// The progress of a look at a child.
#[derive(Debug)]
pub(super) enum Progress {
    /// More is to come.
    More,
    /// All has come.
    Whole(Vec<u8>),
    /// The parts do not fit together.
    Broken,
}

/// The time after which a child that has not answered is asked again.
const AGAIN: Duration = Duration::from_secs(10);

// === impl ChildLine ===

impl ChildLine {
    /// The stream that was opened with `hello`.
    pub(super) fn new(hello: Hello, can_be_asked: bool) -> ChildLine {
        let line = hello.line.map(|line| (line, hello.incarnation));
        ChildLine { name: hello.holder, line, can_be_asked, sent: None }
    }

    /// Whether it has something to answer.
    pub(super) fn is_at_something(&self) -> bool {
        self.sent.is_some()
    }

    /// Whether it has left something unanswered that nobody waits for any more.
    pub(super) fn is_silent(&self) -> bool {
        self.sent.as_ref().is_some_and(|sent| sent.is_given_up)
    }

    /// It is asked for look `of`.
    pub(super) fn ask(&mut self, now: Time, id: u64, of: u64) {
        self.sent = Some(SentLook { id, of, at: now, is_given_up: false, next: 0, bytes: Vec::new() });
    }

    /// Lets one that has left something unanswered for long be asked again.
    pub(super) fn free(&mut self, now: Time) {
        self.sent.take_if(|sent| sent.is_given_up && sent.at + AGAIN <= now);
    }

    /// Nobody waits for look `of` any more. What still comes of it is passed over.
    pub(super) fn give_up(&mut self, of: u64) {
        if self.sent.as_ref().is_some_and(|sent| sent.of == of) {
            self.pass_over();
        }
    }

    /// The rest of what it is at is passed over.
    pub(super) fn pass_over(&mut self) {
        if let Some(sent) = &mut self.sent {
            (sent.is_given_up, sent.bytes) = (true, Vec::new());
        }
    }

    /// A part of a view has come. Returns how far the look is, with its number here, if somebody waits for it.
    pub(super) fn hear(&mut self, part: ViewPart) -> Option<(u64, Progress)> {
        let sent = self.sent.as_mut().filter(|sent| sent.id == part.id)?;
        let of = sent.of;
        if sent.is_given_up {
            if part.is_last {
                self.sent = None;
            }
            return None;
        }
        if sent.next != part.part {
            self.pass_over();
            return Some((of, Progress::Broken));
        }
        sent.next += 1;
        sent.bytes.extend(part.body);
        if !part.is_last {
            return Some((of, Progress::More));
        }
        let bytes = self.sent.take().map(|sent| sent.bytes).unwrap_or_default();
        Some((of, Progress::Whole(bytes)))
    }
}
