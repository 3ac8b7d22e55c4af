//! The terms of a resource: the template that covers it or, where none does any more, the last that did.

use std::ops::Deref;
use std::sync::Arc;

use crate::repository::Template;

/// The terms of a resource, which read as their template.
#[derive(Clone, Debug)]
pub(super) struct GrantTerms {
    template: Arc<Template>,
    /// Whether the repository covers the resource; if not, nothing is granted, and it goes when its leases have.
    is_covered: bool,
    /// Whether an override says that nobody gets more of it.
    is_frozen: bool,
}

// === impl GrantTerms ===

impl Deref for GrantTerms {
    type Target = Arc<Template>;

    fn deref(&self) -> &Arc<Template> {
        &self.template
    }
}

impl GrantTerms {
    /// Those of a resource that `template` covers.
    pub(super) fn new(template: Arc<Template>) -> GrantTerms {
        GrantTerms { template, is_covered: true, is_frozen: false }
    }

    /// The template that covers the resource.
    pub(super) fn covering(&self) -> Option<&Arc<Template>> {
        self.is_covered.then_some(&self.template)
    }

    /// Whether one covers it.
    pub(super) fn is_covered(&self) -> bool {
        self.is_covered
    }

    /// `template` covers it from here on. Returns the last before that.
    pub(super) fn cover(&mut self, template: Arc<Template>) -> Arc<Template> {
        self.is_covered = true;
        std::mem::replace(&mut self.template, template)
    }

    pub(super) fn is_frozen(&self) -> bool {
        self.is_frozen
    }

    /// An override says whether nobody gets more of it. Returns whether one said so before.
    pub(super) fn freeze(&mut self, is_frozen: bool) -> bool {
        std::mem::replace(&mut self.is_frozen, is_frozen)
    }

    /// None covers it any more.
    pub(super) fn uncover(&mut self) {
        self.is_covered = false;
    }
}
