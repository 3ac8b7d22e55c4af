//! The mailbox of a stream: what is to go down it, until its connection has room for that.
//!
//! The node and the synchronisation of domains have room for one message each, so whoever reads slowly makes nothing grow. The
//! reader of a mailbox is woken when something comes while it waits, and not while it looks for itself: a report that is
//! answered at once wakes nobody.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use lessor_proto::message::{DomainNews, Down, Look};

/// The messages that wait to go down one stream.
#[derive(Debug, Default)]
pub(in crate::shell) struct Mailbox(Mutex<Letters>);

#[derive(Debug, Default)]
struct Letters {
    /// The message of the node.
    down: Option<Down>,
    /// The message of the synchronisation of domains.
    news: Option<Box<DomainNews>>,
    /// The look of whoever asks the whole tree something, which goes down behind all else.
    look: Option<Box<Look>>,
    /// Nothing comes after what is there.
    is_closed: bool,
    reader: Option<Waker>,
    /// The reader waits until something comes.
    is_awaited: bool,
}

/// The next thing in a mailbox.
#[derive(Debug)]
pub(in crate::shell) enum Letter {
    /// A message of the node.
    Down(Down),
    /// News of domains.
    News(Box<DomainNews>),
    /// A look.
    Look(Box<Look>),
    /// Nothing yet.
    None,
    /// Nothing any more.
    End,
}

// === impl Mailbox ===

impl Mailbox {
    /// Puts in a message of the node. Returns whether there was room.
    pub(in crate::shell) fn put(&self, down: Down) -> bool {
        let mut letters = self.letters();
        let has_room = letters.down.is_none();
        if has_room {
            letters.down = Some(down);
            letters.wake();
        }
        has_room
    }

    /// Whether there is something in it that leases or domains have to say.
    pub(in crate::shell) fn is_filled(&self) -> bool {
        let letters = self.letters();
        letters.down.is_some() || letters.news.is_some()
    }

    /// Whether there is room for a message of the synchronisation of domains.
    pub(super) fn takes_news(&self) -> bool {
        self.letters().news.is_none()
    }

    /// Puts in such a message, for which there must be room.
    pub(super) fn put_news(&self, news: Box<DomainNews>) {
        let mut letters = self.letters();
        letters.news = Some(news);
        letters.wake();
    }

    /// Puts in a look, in place of one that has not been taken.
    pub(super) fn put_look(&self, look: Box<Look>) {
        let mut letters = self.letters();
        letters.look = Some(look);
        letters.wake();
    }

    /// Nothing is put in any more.
    pub(in crate::shell) fn close(&self) {
        let mut letters = self.letters();
        letters.is_closed = true;
        letters.wake();
    }

    /// Takes out the next message. The reader does not wait for another before it says so.
    pub(in crate::shell) fn take(&self) -> Letter {
        let mut letters = self.letters();
        letters.is_awaited = false;
        if let Some(news) = letters.news.take() {
            return Letter::News(news);
        }
        match letters.down.take() {
            Some(down) => Letter::Down(down),
            None if letters.is_closed => Letter::End,
            None => letters.look.take().map_or(Letter::None, Letter::Look),
        }
    }

    /// Waits until there is something to take out.
    pub(in crate::shell) fn poll_filled(&self, cx: &Context<'_>) -> Poll<()> {
        let mut letters = self.letters();
        if letters.is_any() {
            return Poll::Ready(());
        }
        letters.is_awaited = true;
        match &mut letters.reader {
            Some(reader) => reader.clone_from(cx.waker()),
            None => letters.reader = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    /// Locks it, also after a panic: a message is there or not.
    fn letters(&self) -> MutexGuard<'_, Letters> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Letters ===

impl Letters {
    /// Whether the reader has something to take, be it the end.
    fn is_any(&self) -> bool {
        self.down.is_some() || self.news.is_some() || self.look.is_some() || self.is_closed
    }

    fn wake(&mut self) {
        if std::mem::take(&mut self.is_awaited)
            && let Some(reader) = &self.reader
        {
            reader.wake_by_ref();
        }
    }
}

#[cfg(test)]
mod tests {
    use lessor_proto::ReportId;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Calls(AtomicUsize);

    impl Wake for Calls {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn its_reader_is_woken_once_when_it_waits_and_not_when_it_looks() {
        let (mailbox, calls) = (Mailbox::default(), Arc::new(Calls::default()));
        let waker = Waker::from(Arc::clone(&calls));
        let woken = || calls.0.load(Ordering::Relaxed);
        let waits = || mailbox.poll_filled(&Context::from_waker(&waker)).is_pending();
        assert!(waits());
        assert!(matches!(mailbox.take(), Letter::None));
        assert!(mailbox.put(Down::Released { id: ReportId(1) }));
        assert_eq!(woken(), 0, "it has looked since, and has not said that it waits");
        assert!(!waits() && !mailbox.put(Down::Released { id: ReportId(2) }), "there is room for one");
        assert!(matches!(mailbox.take(), Letter::Down(Down::Released { id: ReportId(1) })));
        assert!(waits() && mailbox.put(Down::Released { id: ReportId(3) }));
        mailbox.close();
        assert_eq!(woken(), 1);
        assert!(
            matches!(mailbox.take(), Letter::Down(Down::Released { id: ReportId(3) })),
            "the last comes before the end"
        );
        assert!(!waits() && matches!(mailbox.take(), Letter::End));
    }
}
