//! The places of a port: so many in all, and no more than so many for one address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::shell::driver::Driver;
use crate::shell::port_name::Port;

/// The places of a port.
#[derive(Debug)]
pub(in crate::shell) struct Places {
    pub(super) port: Port,
    free: Arc<Semaphore>,
    /// The number that connections from one address may take.
    most: usize,
    taken: Mutex<HashMap<IpAddr, usize>>,
    pub(super) driver: Arc<Driver>,
}

/// A place, until it is dropped.
#[derive(Debug)]
pub(super) struct TakenPlace {
    pub(super) places: Arc<Places>,
    address: IpAddr,
    _permit: OwnedSemaphorePermit,
}

// === impl Places ===

impl Places {
    /// `port` with so many places, of which connections from one address may take no more than `most`.
    pub(in crate::shell) fn new(port: Port, places: usize, most: usize, driver: &Arc<Driver>) -> Arc<Places> {
        let free = Arc::new(Semaphore::new(places));
        Arc::new(Places { port, free, most, taken: Mutex::default(), driver: Arc::clone(driver) })
    }

    /// The place of a connection from `address`; nothing if that has enough.
    pub(super) fn take(
        self: &Arc<Places>,
        address: IpAddr,
        permit: OwnedSemaphorePermit,
    ) -> Option<TakenPlace> {
        // One that speaks IPv4 has one address, however it is written.
        let address = address.to_canonical();
        let mut taken = self.taken();
        let of_address = taken.entry(address).or_default();
        if *of_address >= self.most {
            self.driver.traffic().turned_away.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        *of_address += 1;
        self.driver.traffic().connections.add(self.port);
        Some(TakenPlace { places: Arc::clone(self), address, _permit: permit })
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
    fn taken(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl TakenPlace ===

impl Drop for TakenPlace {
    fn drop(&mut self) {
        self.places.driver.traffic().connections.remove(self.places.port);
        let mut taken = self.places.taken();
        if let Some(of_address) = taken.get_mut(&self.address) {
            *of_address -= 1;
            if *of_address == 0 {
                taken.remove(&self.address);
            }
        }
    }
}
