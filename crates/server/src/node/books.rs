//! The books of a node, laid open for whoever checks them.

use std::collections::BTreeMap;

use lessor_client::internals::session::Session;
use lessor_proto::{Amount, ResourceId, Time};

use super::Node;
use super::parent::Above;
use crate::resource::{Books, Resource};

// === impl Node ===

impl Node {
    /// The books of a resource at `now`, with what is due to each holder.
    #[must_use]
    pub fn books(&self, now: Time, resource: &ResourceId) -> Option<Books> {
        self.resources.get(resource).map(|resource| resource.books(now))
    }

    /// The same without what is due to each, which takes longest to say.
    #[must_use]
    pub fn charges(&self, resource: &ResourceId) -> Option<Books> {
        self.resources.get(resource).map(Resource::charges)
    }

    /// The amounts that a successor must be told: no more is out.
    #[must_use]
    pub fn outstanding(&self, now: Time) -> BTreeMap<ResourceId, Amount> {
        let before = self.config.record.iter().flat_map(|record| {
            let ghost =
                |id: &ResourceId| record.ghost(id, self.tenure.since(), self.config.drift).at(now).amount();
            record.marks.keys().map(move |id| (id.clone(), ghost(id)))
        });
        let mut out: BTreeMap<_, _> = before.filter(|(_, amount)| *amount > Amount::ZERO).collect();
        out.extend(self.resources.iter().map(|(id, resource)| (id.clone(), resource.outstanding())));
        out
    }

    /// The session with the node above.
    #[must_use]
    pub fn parent_session(&self) -> Option<&Session> {
        self.parent.as_ref().map(Above::session)
    }
}
