//! The places of a port: so many in all, and no more than so many for one address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::UnixStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::shell::address_budget::{self, AddressBudgets};
use crate::shell::driver::Driver;
use crate::shell::port_name::Port;

/// The origin of a connection, as far as places go.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Origin {
    /// An address of the network; those of IPv6 by their networks.
    Network(IpAddr),
    /// A user of this machine at a socket; absent: the system does not say which.
    User(Option<u32>),
}

/// The places of a port.
#[derive(Debug)]
pub(in crate::shell) struct Places {
    pub(super) port: Port,
    free: Arc<Semaphore>,
    /// The number that connections from one origin may take.
    most: usize,
    taken: Mutex<HashMap<Origin, usize>>,
    pub(super) budgets: Arc<AddressBudgets>,
    pub(super) driver: Arc<Driver>,
}

/// A place, until it is dropped.
#[derive(Debug)]
pub(super) struct TakenPlace {
    pub(super) places: Arc<Places>,
    origin: Origin,
    _permit: OwnedSemaphorePermit,
}

// === impl Origin ===

impl Origin {
    pub(super) fn of_address(address: IpAddr) -> Origin {
        Origin::Network(address_budget::network(address))
    }

    pub(super) fn of_socket(stream: &UnixStream) -> Origin {
        Origin::User(stream.peer_cred().ok().map(|process| process.uid()))
    }
}

// === impl Places ===

impl Places {
    /// `port` with so many places, of which connections from one origin may take no more than `most`.
    pub(in crate::shell) fn new(
        port: Port,
        places: usize,
        most: usize,
        budgets: &Arc<AddressBudgets>,
        driver: &Arc<Driver>,
    ) -> Arc<Places> {
        let free = Arc::new(Semaphore::new(places));
        let (budgets, driver) = (Arc::clone(budgets), Arc::clone(driver));
        Arc::new(Places { port, free, most, taken: Mutex::default(), budgets, driver })
    }

    /// The place of a connection from there; nothing if that has enough.
    pub(super) fn take(
        self: &Arc<Places>,
        origin: Origin,
        permit: OwnedSemaphorePermit,
    ) -> Option<TakenPlace> {
        let mut taken = self.taken();
        let of_origin = taken.entry(origin).or_default();
        if *of_origin >= self.most {
            self.driver.traffic().turned_away.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        *of_origin += 1;
        self.driver.traffic().connections.add(self.port);
        Some(TakenPlace { places: Arc::clone(self), origin, _permit: permit })
    }

    /// The permit of a place, which others wait for outside while there is none.
    pub(super) async fn permit(&self) -> OwnedSemaphorePermit {
        let free = Arc::clone(&self.free);
        if let Ok(permit) = Arc::clone(&free).try_acquire_owned() {
            return permit;
        }
        let waiting = &self.driver.traffic().waiting;
        waiting.set(self.port, 1);
        let permit = free.acquire_owned().await.expect("nobody closes the semaphore");
        waiting.set(self.port, 0);
        permit
    }

    /// Locks the table, also after a panic: every change of it is one step.
    fn taken(&self) -> MutexGuard<'_, HashMap<Origin, usize>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl TakenPlace ===

impl Drop for TakenPlace {
    fn drop(&mut self) {
        self.places.driver.traffic().connections.remove(self.places.port);
        let mut taken = self.places.taken();
        if let Some(of_origin) = taken.get_mut(&self.origin) {
            *of_origin -= 1;
            if *of_origin == 0 {
                taken.remove(&self.origin);
            }
        }
    }
}
