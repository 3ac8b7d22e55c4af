//! The tree of a simulation: its sites, their tasks, and the etcd by which those are elected.

use std::collections::HashMap;
use std::sync::Arc;

use super::etcd::Office;
use crate::site::{Site, Task};

/// All sites with what belongs to them.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) sites: Vec<Site>,
    /// Of all sites.
    pub(crate) tasks: Vec<Task>,
    pub(crate) etcd: Option<Office>,
    addresses: HashMap<Arc<str>, u32>,
}

// === impl Tree ===

impl Tree {
    /// One without sites, of which there will be so many.
    pub(super) fn with_capacity(sites: usize) -> Tree {
        Tree { sites: Vec::with_capacity(sites), tasks: Vec::new(), etcd: None, addresses: HashMap::new() }
    }

    /// The task that will be added next, of a site that is known, stands at `address`.
    pub(super) fn note_address(&mut self, address: &Arc<str>, task: u32) {
        self.addresses.insert(address.clone(), task);
    }

    /// The task at `address`.
    pub(super) fn task_at(&self, address: &str) -> Option<u32> {
        self.addresses.get(address).copied()
    }

    /// The addresses of the tasks of a site.
    pub(crate) fn addresses_of(&self, site: u32) -> Vec<Arc<str>> {
        let tasks = self.sites[site as usize].tasks.clone();
        tasks.map(|task| self.tasks[task as usize].address.clone()).collect()
    }
}
