//! The keys of a limit on windows: each one a resource of its own, leased when it is first asked for and given back when it has
//! not been for a while.
//!
//! The resource of a key is named by the prefix that all have, and the key. A request that finds units here touches the list of
//! the keys and the key, and says nothing to anybody; whoever drives this learns of it when it looks the next time.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::task::Waker;
use std::time::Duration;

use lessor_proto::{Drift, ResourceId, Time};

use super::{Attention, ExactWindow, WindowUsage};
use crate::denied::Denied;
use crate::mutation::HolderRules;
use crate::table::{Table, hasher};
use crate::waiting::{Clock, Waiting};

/// A key: its resource, and what is used of it.
#[derive(Debug)]
pub struct WindowKey {
    resource: ResourceId,
    pub(super) window: ExactWindow,
}

/// A key in the list of them. The hash beside it tells it from its neighbours, which need not be read for that.
#[derive(Debug)]
struct HashedKey {
    hash: u32,
    key: Arc<WindowKey>,
}

/// Keys with the same prefix.
#[derive(Debug)]
pub struct WindowKeys {
    prefix: Box<str>,
    options: KeysOptions,
    keys: RwLock<Table<HashedKey>>,
    /// Of keys: who chooses them does not know where they lie.
    hasher: RandomState,
    /// The keys that should be looked at.
    looks: Mutex<Vec<Arc<WindowKey>>>,
    /// Woken when one of them should be at once.
    notifier: Waker,
    /// Uses of keys that are forgotten, which were let pass.
    passed: AtomicU64,
    rules: HolderRules,
}

/// The options for keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeysOptions {
    /// The most keys that are remembered at a time.
    pub most: usize,
    /// The limits on waiting for one key.
    pub waiting: Waiting,
    /// The priority: a greater one is served first.
    pub priority: i64,
    /// The bound on the error of clocks.
    pub drift: Drift,
}

// === impl KeysOptions ===

impl Default for KeysOptions {
    /// Ten thousand keys, a wait of 100 ms, the least of usual priorities.
    fn default() -> KeysOptions {
        KeysOptions {
            most: 10_000,
            waiting: Waiting { max_wait: Duration::from_millis(100), ..Waiting::DEFAULT },
            priority: 0,
            drift: Drift::DEFAULT,
        }
    }
}

// === impl WindowKeys ===

impl WindowKeys {
    /// No key yet. `notifier` is woken when keys should be looked at.
    #[must_use]
    pub fn new(prefix: &str, options: KeysOptions, notifier: Waker) -> WindowKeys {
        WindowKeys {
            prefix: prefix.into(),
            options,
            keys: RwLock::new(Table::new()),
            hasher: hasher(),
            looks: Mutex::default(),
            notifier,
            passed: AtomicU64::new(0),
            rules: HolderRules::default(),
        }
    }

    /// The same by these rules, in tests.
    #[must_use]
    pub fn with_rules(self, rules: HolderRules) -> WindowKeys {
        WindowKeys { rules, ..self }
    }

    /// The beginning of the names of its resources.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The options that it has.
    #[must_use]
    pub fn options(&self) -> KeysOptions {
        self.options
    }

    /// Makes `n` uses of `key` at once, or none.
    ///
    /// # Errors
    ///
    /// See [`Denied`]. Nothing is taken then.
    pub fn try_acquire(&self, key: &str, n: u32, clock: impl Fn() -> Time) -> Result<(), Denied> {
        self.with(key, &clock, |found| {
            let (made, attention) = found.window.attempt(n, &clock);
            self.call(found, attention);
            made
        })?
    }

    /// Makes `n` uses of `key` at once, if it is remembered and has so many at hand. If not, nothing is missed: whoever asks so
    /// asks again in another way. Returns the use of the key after that; absent: none was made.
    pub fn take_at_hand(&self, key: &str, n: u32, clock: impl Fn() -> Time) -> Option<WindowUsage> {
        let keys = self.read();
        let found = self.known(&keys, key)?;
        let (usage, attention) = found.window.take_at_hand(n, clock);
        self.call(found, attention);
        usage
    }

    /// Waits for `n` uses of `key`, in order, for `max_wait` at the longest.
    ///
    /// # Errors
    ///
    /// See [`Denied`]. Nothing is taken then.
    pub async fn acquire_within<C: Clock>(
        &self,
        clock: &C,
        key: &str,
        n: u32,
        max_wait: Duration,
    ) -> Result<(), Denied> {
        let now = || clock.now();
        let (made, found) =
            self.with(key, &now, |found| (found.window.attempt(n, now), Arc::clone(found)))?;
        let (made, attention) = made;
        self.call(&found, attention);
        match made {
            Err(denied) if waits(&denied) => {
                let waiting = Waiting { max_wait, ..self.options.waiting };
                let call = |attention| self.call(&found, attention);
                let waited = found.window.wait_for(clock, n, waiting, call).await;
                if !matches!(waited, Err(Denied::TimedOut { .. })) {
                    return waited;
                }
                // Whoever waited in vain hears what a look without waiting says by then.
                let (made, attention) = found.window.last_attempt(n, now);
                self.call(&found, attention);
                made
            }
            made => made,
        }
    }

    /// Undoes up to `n` uses of `key`, and returns how many: as many as count here.
    pub fn refund(&self, key: &str, n: u32, now: Time) -> u32 {
        self.known(&self.read(), key).map_or(0, |found| found.window.refund(n, now))
    }

    /// Whether `key` is remembered.
    #[must_use]
    pub fn knows(&self, key: &str) -> bool {
        self.known(&self.read(), key).is_some()
    }

    /// The use of `key`, if it is remembered.
    #[must_use]
    pub fn usage(&self, key: &str, now: Time) -> Option<WindowUsage> {
        self.known(&self.read(), key).map(|found| found.window.usage(now))
    }

    /// The keys with the most uses at `now`, the greatest first, and what is used of them; `most` of them at the most. All that
    /// are remembered are looked at, and a key that is new waits meanwhile.
    #[must_use]
    pub fn busiest(&self, most: usize, now: Time) -> Vec<(Box<str>, WindowUsage)> {
        let keys = self.read();
        let mut all: Vec<_> = keys.iter().map(|of| (Arc::clone(&of.key), of.key.window.usage(now))).collect();
        drop(keys);
        // The order of the keys decides among equals.
        all.sort_by(|(one, used), (other, used_there)| {
            used_there.uses.cmp(&used.uses).then_with(|| one.resource.cmp(&other.resource))
        });
        all.truncate(most);
        all.into_iter().map(|(found, usage)| (self.name_of(&found).into(), usage)).collect()
    }

    /// The uses that were let pass, as the grantor [lets everything pass](crate::allowance::Allowance::unenforced), since the
    /// start. All keys that are remembered are looked at.
    #[must_use]
    pub fn unenforced(&self) -> u64 {
        let keys = self.read();
        let remembered: u64 = keys.iter().map(|found| found.key.window.unenforced()).sum();
        // Under the lock, so that a key that is forgotten meanwhile is counted once.
        remembered + self.passed.load(Ordering::Relaxed)
    }

    /// The number of keys that are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.read().len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the keys that should be looked at since this was last asked.
    pub(super) fn take_looks(&self) -> Vec<Arc<WindowKey>> {
        std::mem::take(&mut *self.looks.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Forgets `key` if it is idle at `now`.
    pub(super) fn retire(&self, now: Time, key: &WindowKey) -> bool {
        let name = self.name_of(key);
        // Whoever asks for it does so under the same lock.
        let mut keys = self.write();
        let is_idle = key.window.bar_idle(now);
        if is_idle && let Some(place) = self.place(&keys, name) {
            keys.take_out(place, |other| other.hash);
            self.passed.fetch_add(key.window.unenforced(), Ordering::Relaxed);
        }
        is_idle
    }

    /// Looks a key up, or remembers it from here on.
    fn with<T>(
        &self,
        key: &str,
        now: &dyn Fn() -> Time,
        call: impl FnOnce(&Arc<WindowKey>) -> T,
    ) -> Result<T, Denied> {
        let keys = self.read();
        if let Some(found) = self.known(&keys, key) {
            return Ok(call(found));
        }
        drop(keys);
        let name = format!("{}{key}", self.prefix);
        let resource = ResourceId::new(name.as_str(), ResourceId::USUAL_BYTES)
            .map_err(|fault| Denied::BadKey { name: name.as_str().into(), fault })?;
        let mut keys = self.write();
        // Another may have asked for it meanwhile.
        if let Some(found) = self.known(&keys, key) {
            return Ok(call(found));
        }
        if keys.len() >= self.options.most {
            return Err(Denied::TooManyKeys { most: self.options.most });
        }
        let window = ExactWindow::with_rules(self.options.drift, self.rules, now());
        let made = Arc::new(WindowKey { resource, window });
        let hash = self.hash(key);
        Ok(call(&keys.insert(hash, HashedKey { hash, key: made }, |other| other.hash).key))
    }

    /// The key, which is remembered from here on.
    pub(crate) fn find(&self, key: &str, now: &dyn Fn() -> Time) -> Result<Arc<WindowKey>, Denied> {
        self.with(key, now, Arc::clone)
    }

    /// The address of it, as the order of those that are locked together.
    pub(crate) fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Has a key looked at.
    pub(crate) fn call(&self, key: &Arc<WindowKey>, attention: Attention) {
        if attention == Attention::None {
            return;
        }
        self.looks.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(key));
        if attention == Attention::Now {
            self.notifier.wake_by_ref();
        }
    }

    /// The key behind the prefix.
    fn name_of<'a>(&self, key: &'a WindowKey) -> &'a str {
        &key.resource.as_str()[self.prefix.len()..]
    }

    fn hash(&self, key: &str) -> u32 {
        self.hasher.hash_one(key) as u32
    }

    fn place(&self, keys: &Table<HashedKey>, key: &str) -> Option<usize> {
        let hash = self.hash(key);
        keys.find(hash, |found| found.hash == hash && self.name_of(&found.key) == key)
    }

    fn known<'a>(&self, keys: &'a Table<HashedKey>, key: &str) -> Option<&'a Arc<WindowKey>> {
        keys.get(self.place(keys, key)?).map(|found| &found.key)
    }

    fn read(&self) -> RwLockReadGuard<'_, Table<HashedKey>> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Table<HashedKey>> {
        self.keys.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether waiting helps against a denial.
fn waits(denied: &Denied) -> bool {
    !matches!(denied, Denied::AboveBurst { .. } | Denied::Closed)
}

// === impl WindowKey ===

impl WindowKey {
    /// The resource that is leased.
    #[must_use]
    pub fn resource(&self) -> &ResourceId {
        &self.resource
    }
}
