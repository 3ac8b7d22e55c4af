//! The overrides at etcd, as a follower knows them.
//!
//! They are read anew whenever one is seen, or something has ended there. Each ends when its key does, and where etcd is not
//! heard of meanwhile when it has been known for as long as it was to last.

use std::collections::BTreeMap;
use std::time::Duration;

use lessor_proto::Time;

use super::TemplateFollower;
use super::action::{FollowerAction, FollowerEvent};
use crate::election::call::Stored;
use crate::overrides::{Override, Overrides};
use crate::revision::BadRevision;

/// The overrides of a follower.
#[derive(Clone, Default, Debug)]
pub(super) struct FollowedOverrides {
    is_to_be_read: bool,
    in_force: Overrides,
    /// When each ends that is known, by its key and by when it was put.
    ends: BTreeMap<(Vec<u8>, u64), Time>,
    /// Those that cannot be read, of which that was said.
    bad: Vec<BadRevision>,
}

// === impl FollowedOverrides ===

impl FollowedOverrides {
    /// Those at etcd are to be read.
    pub(super) fn look(&mut self) {
        self.is_to_be_read = true;
    }

    /// A read begins: changes that are seen from here on are not in its answer.
    pub(super) fn is_being_read(&mut self) {
        self.is_to_be_read = false;
    }

    pub(super) fn is_to_be_read(&self) -> bool {
        self.is_to_be_read
    }
}

// === impl TemplateFollower ===

impl TemplateFollower {
    /// These stand at etcd, and no others.
    pub(super) fn on_overrides(&mut self, now: Time, stored: &[Stored]) {
        let mut sorted: Vec<&Stored> = stored.iter().collect();
        // The newest last.
        sorted.sort_by_key(|stored| stored.mod_revision);
        let (mut all, mut ends, mut bad) = (Overrides::default(), BTreeMap::new(), Vec::new());
        for stored in sorted {
            let key = String::from_utf8_lossy(&stored.key);
            let read = Override::decode(&key, &stored.value).and_then(|it| {
                let place = (stored.key.clone(), stored.mod_revision);
                let until = self.overrides.ends.get(&place).copied();
                let until = until.unwrap_or(now + Duration::from_secs(it.seconds));
                all.put(it, until).map_err(|fault| {
                    BadRevision::new(&key, fault.to_string(), "an override that can be in force")
                })?;
                ends.insert(place, until);
                Ok(())
            });
            bad.extend(read.err());
        }
        for fault in bad.iter().filter(|fault| !self.overrides.bad.contains(fault)) {
            self.out.tell(FollowerEvent::BadOverride(fault.clone()));
        }
        (self.overrides.ends, self.overrides.bad) = (ends, bad);
        if all != self.overrides.in_force {
            self.overrides.in_force = all.clone();
            self.out.act(FollowerAction::Override(all));
        }
    }
}
