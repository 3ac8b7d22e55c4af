//! The handle of a limit on the uses in any window, by key.

use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::Duration;

use tokio::sync::mpsc;

use super::clock;
use super::command::Command;
use super::registry::Registry;
use super::resource::Closed;
use crate::denied::Denied;
use crate::waiting::{Boot, Waiting};
use crate::window::{KeysOptions, WindowKeys, WindowUsage};

/// A limit on the uses in any window, exact over all clients together, for any number of keys. Opened with
/// [`Client::windows`](super::Client::windows).
///
/// Each key is a resource, named by the prefix and the key; its template says how many uses there may be in which
/// window. It is leased when the key is first asked for, so the first request of a key is
/// granted after a round trip, and later ones at once as long as units lie here. What another client has used counts for it as
/// long as the window lasts; what it has not used moves to whoever needs it. A key that nobody has asked for in ten seconds is
/// given back and forgotten, once nothing of it counts any more.
///
/// A refused request consumes nothing. Clones are the same limit.
///
/// ```no_run
/// # async fn work(client: lessor_client::Client) -> Result<(), Box<dyn std::error::Error>> {
/// let requests = client.windows("api/").open()?;
/// match requests.acquire("tenant-42", 1).await {
///     Ok(()) => println!("200"),
///     Err(denied) if denied.is_over_limit() => println!("429, after {:?}", denied.retry_after()),
///     Err(denied) => println!("503, {denied}"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Windows {
    keys: Arc<WindowKeys>,
    commands: mpsc::UnboundedSender<Command>,
}

/// The settings with which a limit on windows is to be opened. They end with `open`.
#[derive(Clone, Debug)]
#[must_use = "nothing is opened without `open`"]
pub struct WindowsOpening<'a> {
    registry: &'a Registry,
    commands: &'a mpsc::UnboundedSender<Command>,
    prefix: String,
    options: KeysOptions,
}

/// Has the driver look at keys when it is woken. It does not keep the driver alive.
#[derive(Debug)]
struct KeysNotifier(mpsc::WeakUnboundedSender<Command>);

// === impl WindowsOpening ===

impl<'a> WindowsOpening<'a> {
    pub(super) fn new(
        registry: &'a Registry,
        commands: &'a mpsc::UnboundedSender<Command>,
        prefix: String,
    ) -> WindowsOpening<'a> {
        WindowsOpening { registry, commands, prefix, options: KeysOptions::default() }
    }

    /// Is served before all with a lower number; 0 without it.
    pub fn priority(self, priority: i64) -> Self {
        WindowsOpening { options: KeysOptions { priority, ..self.options }, ..self }
    }

    /// The longest that `acquire` waits; 100 ms without it, which is enough for units to come from another client.
    pub fn max_wait(self, max_wait: Duration) -> Self {
        let waiting = Waiting { max_wait, ..self.options.waiting };
        WindowsOpening { options: KeysOptions { waiting, ..self.options }, ..self }
    }

    /// The most callers that may wait for one key at a time; 1024 without it.
    pub fn max_waiters(self, max_waiters: usize) -> Self {
        let waiting = Waiting { max_waiters, ..self.options.waiting };
        WindowsOpening { options: KeysOptions { waiting, ..self.options }, ..self }
    }

    /// The most keys that are remembered at a time; 10,000 without it. Others are denied with [`Denied::TooManyKeys`].
    pub fn most_keys(self, most: usize) -> Self {
        WindowsOpening { options: KeysOptions { most, ..self.options }, ..self }
    }

    /// Opens the limit. If the prefix is open already, returns another handle of the same, and the settings of the first opening
    /// stay.
    ///
    /// # Errors
    /// When the client is closed.
    pub fn open(self) -> Result<Windows, Closed> {
        let mut open = self.registry.windows();
        if let Some(keys) = open.get(&self.prefix) {
            return Ok(Windows { keys: Arc::clone(keys), commands: self.commands.clone() });
        }
        let notifier = Waker::from(Arc::new(KeysNotifier(self.commands.downgrade())));
        let keys = Arc::new(WindowKeys::new(&self.prefix, self.options, notifier));
        self.commands.send(Command::OpenWindows(Arc::clone(&keys))).map_err(|_| Closed)?;
        open.insert(self.prefix, Arc::clone(&keys));
        Ok(Windows { keys, commands: self.commands.clone() })
    }
}

// === impl Windows ===

impl Windows {
    /// Makes `n` uses of `key` at once, or none. The empty key is the prefix by itself.
    ///
    /// # Errors
    /// When fewer are to be had here. Nothing is taken then, and more is asked for: it may lie elsewhere.
    pub fn try_acquire(&self, key: &str, n: u32) -> Result<(), Denied> {
        self.keys.try_acquire(key, n, clock::now).map_err(|denied| self.explain(denied))
    }

    /// Makes `n` uses of `key` at once, if it is known and has so many at hand. Returns the use of the key after that; absent:
    /// none was made, and nothing is asked for: whoever wants them all the same says so by [`Windows::try_acquire`],
    /// [`Windows::acquire`] or in a request of several resources.
    #[must_use]
    pub fn take_at_hand(&self, key: &str, n: u32) -> Option<WindowUsage> {
        self.keys.take_at_hand(key, n, clock::now)
    }

    /// Makes `n` uses of `key`, and waits for units that lie elsewhere, in order.
    ///
    /// # Errors
    /// When they did not come within [`WindowsOpening::max_wait`], with what a look without waiting would say; or when too many
    /// wait. Nothing is taken then.
    pub async fn acquire(&self, key: &str, n: u32) -> Result<(), Denied> {
        self.acquire_within(key, n, self.keys.options().waiting.max_wait).await
    }

    /// The same with another longest wait than that of the opening.
    ///
    /// # Errors
    /// As [`Windows::acquire`].
    pub async fn acquire_within(&self, key: &str, n: u32, max_wait: Duration) -> Result<(), Denied> {
        let made = self.keys.acquire_within(&Boot, key, n, max_wait).await;
        made.map_err(|denied| self.explain(denied))
    }

    /// Undoes up to `n` uses of `key` that were granted here, and returns how many: as many as still count. Which use it undoes
    /// is not known, so the units of those come back that would be free first.
    pub fn refund(&self, key: &str, n: u32) -> u32 {
        self.keys.refund(key, n, clock::now())
    }

    /// The use of `key` by this client, if the key is remembered: for the fields of an answer.
    #[must_use]
    pub fn usage(&self, key: &str) -> Option<WindowUsage> {
        self.keys.usage(key, clock::now())
    }

    /// Whether `key` is remembered.
    #[must_use]
    pub fn knows(&self, key: &str) -> bool {
        self.keys.knows(key)
    }

    /// The keys with the most uses here, the greatest first, and what is used of each; `most` of them at the most. It looks at
    /// all that are remembered, and whoever asks for a key that is new waits meanwhile: it is for pages, not for requests.
    #[must_use]
    pub fn busiest(&self, most: usize) -> Vec<(Box<str>, WindowUsage)> {
        self.keys.busiest(most, clock::now())
    }

    /// The uses that the leases would have refused and that were let pass since the start, as their grantor lets everything pass:
    /// they count in no window. All keys that are remembered are looked at.
    #[must_use]
    pub fn unenforced(&self) -> u64 {
        self.keys.unenforced()
    }

    /// The number of keys that are remembered.
    #[must_use]
    pub fn keys(&self) -> usize {
        self.keys.len()
    }

    /// The keys behind it.
    pub(super) fn keys_of(&self) -> &WindowKeys {
        &self.keys
    }

    /// The denial as the program is told it: once the client is closed, that it is.
    pub(super) fn explain(&self, denied: Denied) -> Denied {
        if self.commands.is_closed() { Denied::Closed } else { denied }
    }
}

// === impl KeysNotifier ===

impl Wake for KeysNotifier {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(commands) = self.0.upgrade() {
            // A closed client asks for nothing.
            let _ = commands.send(Command::Windows);
        }
    }
}
