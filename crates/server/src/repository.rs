//! The repository: templates in their order, and which of them a resource follows.
//!
//! A resource follows the template whose glob *is* its name, or else the first whose glob matches it. A resource
//! without a template is not known here; what becomes of it is for the node to say.
//!
//! Where a template reserves something, the *floor* of each of its resources is a resource as well, named as
//! [`ResourceId::floor`] says, and follows a template derived from that one; unless a template has its very name. The same
//! holds for the domains of a resource that have leases of their own, which are named as [`ResourceId::of_domain`] says, and
//! for the *companion* of a resource beside which a second limit is tried, named as [`ResourceId::companion`] says.
//! Where names say how much there is, a resource follows its template with that in the place of the capacity.
//!
//! A repository that exists is valid: its templates hold together, and no two have the same glob. It is replaced as a
//! whole or not at all.
//!
//! ```
//! use std::time::Duration;
//!
//! use lessor_proto::{Amount, ResourceId};
//! use lessor_server::repository::{Glob, Repository, Template};
//!
//! let repository = Repository::new(vec![Template {
//!     description: "queries per second".into(),
//!     refresh_interval: Duration::from_secs(8),
//!     ..Template::new(Glob::new("db-*")?, Amount::from_units(500))
//! }])?;
//! let orders = ResourceId::new("db-orders", 256)?;
//! assert_eq!(repository.find(&orders).unwrap().capacity, Amount::from_units(500));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod beside;
mod domains;
mod fraction;
mod legacy;
mod problem;
mod strict;
mod template;
mod workers;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use lessor_proto::ResourceId;

use crate::overrides::Overrides;

pub use self::domains::{Change, Domains};
pub use self::fraction::Fraction;
pub use self::legacy::{LEGACY_HOLD, Legacy};
pub use self::problem::{Field, Problem};
pub use self::template::{Kind, SafeCapacity, SmallLeases, Template};
pub use lessor_algorithms::{Rotate, SharePolicy};
pub use lessor_proto::glob::{BadGlob, Glob, GlobFault};

/// All templates, in their order. The default has none, so that no resource is known.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Repository {
    templates: Vec<Arc<Template>>,
    /// The templates that the floors of resources follow, in the order of the templates that those resources
    /// follow.
    floors: Vec<Option<Arc<Template>>>,
    /// The templates that the companions of resources follow, in the same order.
    companions: Vec<Option<Arc<Template>>>,
    /// Where the template with exactly that glob is.
    exact: BTreeMap<Box<str>, usize>,
    /// Where the templates are whose globs match more than themselves, in order.
    patterns: Vec<usize>,
    version: u64,
}

/// A template that cannot be taken.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("template {glob:?}: {problem}")]
pub struct BadTemplate {
    /// Its index.
    pub template: usize,
    /// Its glob.
    pub glob: String,
    /// Its problem.
    pub problem: Problem,
}

/// All that is wrong with some templates: one fault at least, in the order of the templates.
#[derive(Clone, PartialEq, Debug)]
pub struct BadTemplates(Vec<BadTemplate>);

// === impl Repository ===

impl Repository {
    /// Takes templates in the order in which their globs are to be tried.
    ///
    /// # Errors
    /// When a template does not hold together, or has the glob of an earlier one. All faults are told at once.
    pub fn new(templates: Vec<Template>) -> Result<Repository, BadTemplates> {
        let mut faults = Vec::new();
        let mut exact = BTreeMap::new();
        for (index, template) in templates.iter().enumerate() {
            let duplicate = exact.get(template.glob.as_str()).map(|&first| Problem::Duplicate { first });
            exact.entry(template.glob.as_str().into()).or_insert(index);
            let glob = || template.glob.as_str().to_owned();
            let problems = duplicate.into_iter().chain(template.problems());
            faults.extend(problems.map(|problem| BadTemplate { template: index, glob: glob(), problem }));
        }
        if !faults.is_empty() {
            return Err(BadTemplates(faults));
        }
        let is_pattern = |&index: &usize| !templates[index].glob.is_plain();
        let patterns = (0..templates.len()).filter(is_pattern).collect();
        let floors = templates.iter().map(|template| template.floor().map(Arc::new)).collect();
        let companions = templates.iter().map(|template| template.companion().map(Arc::new)).collect();
        let templates = templates.into_iter().map(Arc::new).collect();
        Ok(Repository { templates, floors, companions, exact, patterns, version: 0 })
    }

    /// The same, as the edition of that number. A leader with an earlier edition than one that was in force before it grants
    /// nothing, or a cut could be undone by a fail-over.
    #[must_use]
    pub fn at_version(self, version: u64) -> Repository {
        Repository { version, ..self }
    }

    /// Which edition it is; 0 if nobody counts them.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The template that `resource` follows: the one whose glob is that very name; or if it is a floor, a companion or the
    /// lease of a domain, the one for that; or else the first that matches it.
    #[must_use]
    pub fn find(&self, resource: &ResourceId) -> Option<Arc<Template>> {
        if !self.has_template(resource)
            && let Some((lender, domain)) = self.lender(resource)
        {
            return lender.of_domain(domain).map(Arc::new);
        }
        Template::of_name(self.own(resource)?, resource)
    }

    /// The template that `resource` follows while `overrides` are in force.
    pub(crate) fn find_under(&self, resource: &ResourceId, overrides: &Overrides) -> Option<Arc<Template>> {
        if !overrides.change_templates() {
            return self.find(resource);
        }
        if !self.has_template(resource) {
            if let Some((lender, domain)) = self.lender(resource) {
                let (of, _) = resource.domained()?;
                return overrides.applied(&of, lender).of_domain(domain).map(Arc::new);
            }
            if let Some(at) = self.floored(resource) {
                let of = resource.floored()?;
                return overrides.applied(&of, &self.templates[at]).floor().map(Arc::new);
            }
            if let Some(at) = self.accompanied(resource) {
                let of = resource.accompanied()?;
                return overrides.applied(&of, &self.templates[at]).companion().map(Arc::new);
            }
        }
        let template = Template::of_name(self.own(resource)?, resource)?;
        Some(overrides.applied(resource, &template))
    }

    /// Whether `resource` is named as the lease of a domain of a resource whose domains have some, and so is what this
    /// repository says, or nothing.
    pub(crate) fn is_of_domain(&self, resource: &ResourceId) -> bool {
        self.lender(resource).is_some()
    }

    /// The same for what is no lease of a domain.
    fn own(&self, resource: &ResourceId) -> Option<&Arc<Template>> {
        let name = resource.as_str();
        let exact = || self.exact.get(name).map(|&index| &self.templates[index]);
        let derived = || self.floor(resource).or_else(|| self.companion(resource));
        let matching = || self.matching(name).filter(|_| !self.is_named_as_companion(resource));
        exact().or_else(derived).or_else(|| matching().map(|at| &self.templates[at]))
    }

    /// Whether a template has the very name of `resource` for its glob.
    pub(crate) fn has_template(&self, resource: &ResourceId) -> bool {
        self.exact.contains_key(resource.as_str())
    }

    /// The derived template that a floor follows. What follows such a one has no floor itself.
    fn floor(&self, resource: &ResourceId) -> Option<&Arc<Template>> {
        self.floors[self.floored(resource)?].as_ref()
    }

    /// Where the template is of which the one is derived that a floor follows.
    fn floored(&self, resource: &ResourceId) -> Option<usize> {
        let floored = resource.floored()?;
        let exact = self.exact.get(floored.as_str()).copied();
        let is_derived = || self.floor(&floored).is_some() || self.companion(&floored).is_some();
        let matching = || self.matching(floored.as_str()).filter(|_| !is_derived());
        exact.or_else(matching).filter(|&at| self.floors[at].is_some())
    }

    fn matching(&self, name: &str) -> Option<usize> {
        self.patterns.iter().copied().find(|&index| self.templates[index].glob.matches(name))
    }

    /// All templates, in their order.
    #[must_use]
    pub fn templates(&self) -> &[Arc<Template>] {
        &self.templates
    }

    /// The templates that no resource can follow (but one named like their glob), because the glob `*` stands before
    /// them. Legal, and hardly meant.
    pub fn shadowed(&self) -> impl Iterator<Item = &Arc<Template>> {
        let mut patterns = self.patterns.iter().map(|&index| &self.templates[index]);
        patterns.by_ref().find(|template| template.glob.is_everything());
        patterns
    }
}

impl fmt::Debug for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.templates).finish()
    }
}

// === impl BadTemplates ===

impl BadTemplates {
    /// The faults.
    pub fn iter(&self) -> std::slice::Iter<'_, BadTemplate> {
        self.0.iter()
    }
}

impl<'a> IntoIterator for &'a BadTemplates {
    type Item = &'a BadTemplate;
    type IntoIter = std::slice::Iter<'a, BadTemplate>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// One fault a line.
impl fmt::Display for BadTemplates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, bad) in self.0.iter().enumerate() {
            write!(f, "{}{bad}", if index == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

impl std::error::Error for BadTemplates {}

#[cfg(test)]
mod tests;
