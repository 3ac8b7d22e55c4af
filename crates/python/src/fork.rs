//! Forks: values that belong to the process that made them.
//!
//! A child has a copy of everything its parent had, but none of its threads: nobody renews its leases, and a lock that
//! another thread held stays locked. So what a process has made is of no use in its children, and dangerous: it is not
//! even dropped there. A child makes its own at first use.

use std::mem;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use pyo3::pyfunction;

/// The number of forks between the first process that had this module and this one.
static GENERATION: AtomicU64 = AtomicU64::new(0);
/// The process that was seen last.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// A value of the process that made it, which leaks in its children.
#[derive(Debug)]
pub(crate) struct Owned<T> {
    generation: u64,
    value: Option<T>,
}

/// A value for each process: a list with a link for each generation that made one.
#[derive(Debug)]
pub(crate) struct PerProcess<T> {
    first: OnceLock<Box<Link<T>>>,
}

#[derive(Debug)]
struct Link<T> {
    value: Owned<T>,
    next: OnceLock<Box<Link<T>>>,
}

/// The generation of this process.
#[inline]
pub(crate) fn generation() -> u64 {
    GENERATION.load(Ordering::Relaxed)
}

/// Looks whether this is another process than before: also one that was forked by something that does not tell Python.
pub(crate) fn look() {
    let process = std::process::id();
    if PROCESS.swap(process, Ordering::Relaxed) != process {
        GENERATION.fetch_add(1, Ordering::Relaxed);
    }
}

/// Called in a child, right after the fork.
#[pyfunction]
pub(crate) fn after_fork() {
    look();
}

// === impl Owned ===

impl<T> Owned<T> {
    pub(crate) fn new(value: T) -> Owned<T> {
        Owned { generation: generation(), value: Some(value) }
    }

    /// The value; nothing in another process than its own.
    #[inline]
    pub(crate) fn get(&self) -> Option<&T> {
        self.value.as_ref().filter(|_| self.generation == generation())
    }

    pub(crate) fn get_mut(&mut self) -> Option<&mut T> {
        self.value.as_mut().filter(|_| self.generation == generation())
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        if self.generation != generation() {
            mem::forget(self.value.take());
        }
    }
}

// === impl PerProcess ===

impl<T> PerProcess<T> {
    pub(crate) const fn new() -> PerProcess<T> {
        PerProcess { first: OnceLock::new() }
    }

    /// The value of this process, if it has one.
    #[inline]
    pub(crate) fn get(&self) -> Option<&T> {
        let link = self.first.get()?;
        link.value.get().or_else(|| link.later())
    }

    /// The value of this process, which is made if it has none.
    pub(crate) fn get_or_make<E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        if let Some(value) = self.get() {
            return Ok(value);
        }
        let made = Box::new(Link { value: Owned::new(make()?), next: OnceLock::new() });
        Ok(self.append(made))
    }

    /// Where two threads have made one, that of the first stays.
    fn append(&self, made: Box<Link<T>>) -> &T {
        let (mut made, mut slot) = (Some(made), &self.first);
        loop {
            let link = slot.get_or_init(|| made.take().expect("a link is put into one place"));
            match link.value.get() {
                Some(value) => return value,
                None => slot = &link.next,
            }
        }
    }
}

// === impl Link ===

impl<T> Link<T> {
    #[cold]
    fn later(&self) -> Option<&T> {
        let mut slot = &self.next;
        while let Some(link) = slot.get() {
            if let Some(value) = link.value.get() {
                return Some(value);
            }
            slot = &link.next;
        }
        None
    }
}
