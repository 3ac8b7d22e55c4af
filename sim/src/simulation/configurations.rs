//! The configurations of a simulation: what its operators have put in force, or will have.

use super::editions::Edition;
use super::templates::TemplateOffice;
use crate::plan::SimulationPlan;
use crate::rule_book::RuleBook;

/// The configurations, as operators say them.
#[derive(Debug)]
pub(crate) struct Configurations {
    /// All editions of the configuration, where tasks have copies of their own.
    pub(crate) editions: Vec<Edition>,
    /// The etcd of the templates, where tasks follow them.
    pub(crate) templates: Option<Box<TemplateOffice>>,
    /// The rules of access, if servers go by any.
    pub(crate) rule_book: Option<Box<RuleBook>>,
}

// === impl Configurations ===

impl Configurations {
    /// Those at the beginning of a simulation of `plan`.
    pub(super) fn new(plan: &SimulationPlan) -> Configurations {
        Configurations {
            editions: Vec::new(),
            templates: None,
            rule_book: plan.limits.access.then(|| Box::new(RuleBook::new(plan))),
        }
    }
}
