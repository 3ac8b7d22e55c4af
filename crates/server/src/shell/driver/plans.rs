//! Plans of a whole tree: two looks, one up and one down, and what this node keeps between them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lessor_client::internals::clock;
use lessor_proto::message::{Ask, HolderKind, Limits, LookKind, Report};
use lessor_proto::{Amount, ClientId, Incarnation, ResourceId, Time, wire};
use prost::Message;

use super::hold_kind::HoldKind;
use super::{Driver, Unanswered};
use crate::look::tree::{NodeBranch, SeenNodes};
use crate::look::{LookPassing, NodeContent, ViewTree};
use crate::node::PlanScan;
use crate::plan::{NodeForecast, NodePlan, Plan, PlanChange, SupplyForecast};
use crate::repository::{Glob, Kind, Repository};
use crate::revision::{self, Revision, RevisionDocument};
use crate::shell::wall_date::wall_date;
use crate::shell::{random, source};

/// A request for a plan.
#[derive(Clone, Debug, Default)]
pub struct PlanRequest {
    /// The documents, and their texts, as a push would have them.
    pub documents: Vec<(RevisionDocument, String)>,
    /// Resources only whose names match this.
    pub matching: Option<Glob>,
    /// Patterns of clients that are asked about.
    pub watched: Vec<Glob>,
}

/// Why there is no plan.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum NotPlanned {
    /// The documents are at fault.
    #[error("{0}")]
    Faults(String),
    /// Another plan is under way.
    #[error("{0}")]
    Busy(String),
    /// It cannot be asked.
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
}

/// The plan that a node is at, if it is at one.
#[derive(Debug, Default)]
pub(super) struct PlanDesk(Mutex<Option<OpenPlan>>);

/// A plan between its two looks.
#[derive(Debug)]
struct OpenPlan {
    id: u64,
    /// When another one may begin, if nothing more is heard of this.
    until: Time,
    /// The plan of this node, or why there is none; absent while it is being worked on.
    plan: Option<Result<NodePlan, String>>,
    /// The nodes below that have said what they would want.
    below: BTreeSet<String>,
}

/// The time for which a plan waits for each of its looks.
const PATIENCE: Duration = Duration::from_secs(4);
/// The time after which a plan of which nothing more is heard keeps nobody out.
const LONGEST: Duration = Duration::from_secs(10);
/// Bytes of all documents of a plan.
const MOST_BYTES: u64 = 1 << 20;
/// Clients that may be asked about by pattern.
const MOST_WATCHED: usize = 64;

// === impl PlanDesk ===

impl PlanDesk {
    /// Begins plan `id`, unless another one is under way.
    fn begin(&self, id: u64) -> Result<(), String> {
        let (mut open, now) = (self.open(), clock::now());
        if open.as_ref().is_some_and(|open| open.id != id && now < open.until) {
            return Err("another plan is under way here; wanted one at a time".to_owned());
        }
        *open = Some(OpenPlan { id, until: now + LONGEST, plan: None, below: BTreeSet::new() });
        Ok(())
    }

    /// The plan of that number has come so far.
    fn put(&self, id: u64, plan: Result<NodePlan, String>, below: BTreeSet<String>) {
        if let Some(open) = self.open().as_mut().filter(|open| open.id == id) {
            (open.plan, open.below) = (Some(plan), below);
        }
    }

    /// Takes the plan of that number, to work on it.
    fn take(&self, id: u64) -> Option<(Result<NodePlan, String>, BTreeSet<String>)> {
        let mut open = self.open();
        let open = open.as_mut().filter(|open| open.id == id)?;
        Some((open.plan.take()?, open.below.clone()))
    }

    /// Another plan may begin.
    fn end(&self, id: u64) {
        self.open().take_if(|open| open.id == id);
    }

    /// Locks it, also after a panic: a plan is there or not.
    fn open(&self) -> MutexGuard<'_, Option<OpenPlan>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Driver: whoever plans ===

impl Driver {
    /// Plans what other templates would change at this node, which leads, and at all below it. Nothing is changed by it.
    ///
    /// # Errors
    /// When the documents are at fault, another plan is under way, or this task does not lead.
    pub async fn plan(&self, request: &PlanRequest) -> Result<Plan, NotPlanned> {
        self.redirect()?;
        check(request)?;
        let (began, id) = (clock::now(), random::number());
        let question = wire::PlanQuestion {
            plan_id: id,
            document: request.documents.iter().map(packed).collect::<Result<_, _>>()?,
            affected: Vec::new(),
            matching: request.matching.as_ref().map(ToString::to_string),
        };
        let planned = self.plan_by_looks(&question, request).await;
        self.looks.plans.end(id);
        let (forecasts, seen, levels) = planned?;
        let mut plan = Plan::of(forecasts, levels);
        plan.digest = Plan::digest_of(request.documents.iter().map(|(document, _)| document)).to_string();
        plan.base = self.base();
        plan.at = humantime::format_rfc3339_seconds(wall_date()).to_string();
        plan.took_seconds = clock::now().since(began).as_secs_f64();
        for (why, ways) in
            [("silent", seen.silent), ("cannot be asked", seen.cannot_be_asked), ("left out", seen.left_out)]
        {
            plan.nodes.silent.extend(ways.into_iter().map(|way| format!("{way} ({why})")));
        }
        plan.nodes.silent.sort();
        plan.nodes.silent.dedup();
        Ok(plan)
    }

    async fn plan_by_looks(
        &self,
        question: &wire::PlanQuestion,
        request: &PlanRequest,
    ) -> Result<(Vec<NodeForecast>, SeenNodes, usize), NotPlanned> {
        let up = self.look_down_for(LookKind::PlanDemand, question.encode_to_vec(), PATIENCE).await?;
        let demands = up.content.as_deref().and_then(|content| wire::PlanDemands::decode(content).ok());
        match demands {
            Some(wire::PlanDemands { fault: Some(fault), .. }) => return Err(NotPlanned::Busy(fault)),
            Some(_) => {}
            None => return Err(NotPlanned::Unanswered(Unanswered::Late)),
        }
        let supplies = wire::PlanSupplies {
            plan_id: question.plan_id,
            supply: Vec::new(),
            watched: request.watched.iter().map(ToString::to_string).collect(),
        };
        let down = self.look_down_for(LookKind::PlanSupply, supplies.encode_to_vec(), PATIENCE).await?;
        let name = || self.identity.config.name.clone();
        let mut seen = NodeBranch::of(name(), up).seen_nodes();
        let of_down = NodeBranch::of(name(), down.clone()).seen_nodes();
        seen.silent.extend(of_down.silent);
        seen.left_out.extend(of_down.left_out);
        let mut forecasts = Vec::new();
        let levels = gather(down, &mut vec![name()], &mut forecasts, &mut seen);
        match forecasts.is_empty() {
            true => Err(NotPlanned::Unanswered(Unanswered::Late)),
            false => Ok((forecasts, seen, levels)),
        }
    }

    /// The number of the revision in force, or of the edition of the configuration.
    fn base(&self) -> u64 {
        let of_templates = self.template_status().map(|status| status.in_force);
        let of_summary = || self.summary().map_or(0, |summary| summary.status.config_version);
        of_templates.unwrap_or_else(of_summary)
    }
}

/// The forecasts of a view, from the first node down; a node that has said nothing is silent. Returns the levels below it.
fn gather(
    view: ViewTree,
    way: &mut Vec<String>,
    forecasts: &mut Vec<NodeForecast>,
    seen: &mut SeenNodes,
) -> usize {
    let forecast = view.content.and_then(|content| serde_json::from_slice::<NodeForecast>(&content).ok());
    match forecast {
        Some(forecast) => forecasts.push(forecast),
        None => seen.silent.push(way.join(" > ")),
    }
    let mut levels = 0;
    for branch in view.below {
        if let Some(below) = branch.view {
            way.push(branch.node);
            levels = levels.max(1 + gather(below, way, forecasts, seen));
            way.pop();
        }
    }
    levels
}

/// Whether a request can be planned.
fn check(request: &PlanRequest) -> Result<(), NotPlanned> {
    let fault = |fault: String| Err(NotPlanned::Faults(fault));
    let bytes: u64 = request.documents.iter().map(|(document, _)| document.bytes).sum();
    if request.documents.is_empty() {
        return fault("documents: are missing; wanted one at least".to_owned());
    }
    if bytes > MOST_BYTES {
        return fault(format!("documents: have {bytes} bytes; wanted at most {MOST_BYTES}"));
    }
    if request.watched.len() > MOST_WATCHED {
        return fault(format!("watch: has {}; wanted at most {MOST_WATCHED}", request.watched.len()));
    }
    for (document, text) in &request.documents {
        source::parse(&document.name, text).map_err(|faults| NotPlanned::Faults(faults.to_string()))?;
    }
    Ok(())
}

fn packed((document, text): &(RevisionDocument, String)) -> Result<wire::PlanDocument, NotPlanned> {
    let RevisionDocument { nodes, name, blob, bytes } = document.clone();
    let text = revision::pack(&name, text).map_err(|fault| NotPlanned::Faults(fault.to_string()))?;
    Ok(wire::PlanDocument { nodes, name, text, bytes, digest: blob.to_string() })
}

// === impl Driver: its own part ===

impl Driver {
    /// Begins a plan that somebody asks for, here or above: scans the node, and has all below asked.
    pub(super) async fn begin_plan(&self, body: &[u8]) -> NodeContent {
        let Ok(question) = wire::PlanQuestion::decode(body) else { return NodeContent::default() };
        let id = question.plan_id;
        let begun = match self.looks.plans.begin(id) {
            Ok(()) => self.scan_plan(&question).await,
            Err(busy) => return told(busy),
        };
        let plan = match begun {
            Ok(plan) => plan,
            Err(fault) => {
                self.looks.plans.put(id, Err(fault), BTreeSet::new());
                return NodeContent::default();
            }
        };
        let affected = plan.resources().into_iter().map(|id| id.to_string());
        let affected: BTreeSet<String> = affected.chain(question.affected.iter().cloned()).collect();
        let below = wire::PlanQuestion { affected: affected.into_iter().collect(), ..question };
        self.looks.plans.put(id, Ok(plan), BTreeSet::new());
        NodeContent { bytes: None, passing: LookPassing::All(below.encode_to_vec()), known: Vec::new() }
    }

    async fn scan_plan(&self, question: &wire::PlanQuestion) -> Result<NodePlan, String> {
        let affected = question.affected.iter().filter_map(|id| ResourceId::new(id.as_str(), id.len()).ok());
        let matching = question.matching.as_deref().map(Glob::new).transpose();
        let change = PlanChange {
            repository: self.document_of(&question.document)?,
            affected: affected.collect(),
            matching: matching.map_err(|fault| fault.to_string())?,
        };
        self.scan_for(change).await
    }

    /// Scans the node for a change, a slice at a time.
    async fn scan_for(&self, change: PlanChange) -> Result<NodePlan, String> {
        let mut scan = PlanScan::new(change);
        loop {
            let step = self.call(HoldKind::Look, |node, now| scan.step(now, node));
            match step.map_err(|fault| fault.to_string())? {
                Some(mut plan) => {
                    self.domains.rehearse(&mut plan);
                    return Ok(plan);
                }
                None => tokio::task::yield_now().await,
            }
        }
    }

    /// The templates that this node would follow; absent: those that it does.
    fn document_of(&self, documents: &[wire::PlanDocument]) -> Result<Option<Repository>, String> {
        let mut known = Vec::with_capacity(documents.len());
        for document in documents {
            let wire::PlanDocument { nodes, name, bytes, digest, .. } = document.clone();
            known.push(RevisionDocument { nodes, name, blob: digest.parse()?, bytes });
        }
        let revision = Revision { documents: known, ..Revision::default() };
        let Some(found) = revision.document_for(&self.identity.config.name) else { return Ok(None) };
        if found.bytes > MOST_BYTES {
            return Err(format!("{}: has {} bytes; wanted at most {MOST_BYTES}", found.name, found.bytes));
        }
        let place = revision.documents.iter().position(|document| document == found);
        let packed = place.and_then(|place| documents.get(place)).map(|document| &document.text);
        let text = revision::unpack(&found.name, found, packed.map_or(&[], Vec::as_slice));
        let text = text.map_err(|fault| fault.to_string())?;
        source::parse(&found.name, &text).map(Some).map_err(|faults| faults.to_string())
    }

    /// Puts together what would be wanted here and below.
    pub(super) async fn fold_plan(&self, body: &[u8], contents: Vec<(String, Vec<u8>)>) -> Option<Vec<u8>> {
        let question = wire::PlanQuestion::decode(body).ok()?;
        let (plan, _) = self.looks.plans.take(question.plan_id)?;
        let mut plan = match plan {
            Ok(plan) => plan,
            Err(fault) => {
                self.looks.plans.end(question.plan_id);
                return Some(wire::PlanDemands { wants: None, fault: Some(fault) }.encode_to_vec());
            }
        };
        let (mut below, mut wants) = (BTreeSet::new(), Vec::new());
        for (node, content) in contents {
            match read_demands(&content) {
                Ok(reports) => {
                    below.insert(node.clone());
                    wants.extend(reports.into_iter().map(|report| (node.clone(), report)));
                }
                Err(fault) => plan.note_silent(&node, &fault),
            }
        }
        let known = plan.resources();
        let missing = wants.iter().map(|(_, report)| &report.resource).filter(|id| !known.contains(*id));
        let missing: BTreeSet<ResourceId> = missing.cloned().collect();
        if !missing.is_empty() {
            let change = PlanChange {
                repository: self.document_of(&question.document).ok().flatten(),
                affected: missing,
                matching: None,
            };
            if let Ok(more) = self.scan_for(change).await {
                plan.join(more);
            }
        }
        let worked = tokio::task::spawn_blocking(move || {
            for (node, report) in &wants {
                plan.hear_demand(node, &report.resource, &report.bands);
            }
            plan.rehearse();
            let demands = said(&plan);
            (plan, demands)
        });
        let (plan, demands) = worked.await.ok()?;
        self.looks.plans.put(question.plan_id, Ok(plan), below);
        Some(demands)
    }

    /// Divides what would be granted, and has those below do so.
    pub(super) async fn end_plan(&self, body: &[u8]) -> NodeContent {
        let Ok(supplies) = wire::PlanSupplies::decode(body) else { return NodeContent::default() };
        let Some((Ok(mut plan), below)) = self.looks.plans.take(supplies.plan_id) else {
            return NodeContent::default();
        };
        let granted: Vec<SupplyForecast> = supplies.supply.iter().filter_map(supply).collect();
        let watched = supplies.watched.iter().filter_map(|glob| Glob::new(glob).ok());
        let watched: Vec<Glob> = watched.take(MOST_WATCHED).collect();
        let divided = tokio::task::spawn_blocking(move || plan.divide(&granted, &watched)).await;
        self.looks.plans.end(supplies.plan_id);
        let Ok((forecast, mut passed)) = divided else { return NodeContent::default() };
        let body = |node: String| {
            let supply = passed.remove(&node).unwrap_or_default();
            let supplies = wire::PlanSupplies {
                plan_id: supplies.plan_id,
                supply: supply.iter().map(supplied).collect(),
                watched: supplies.watched.clone(),
            };
            (node, supplies.encode_to_vec())
        };
        let bodies: BTreeMap<String, Vec<u8>> = below.into_iter().map(body).collect();
        let bytes = serde_json::to_vec(&forecast).ok();
        NodeContent { bytes, passing: LookPassing::Each(bodies), known: Vec::new() }
    }
}

/// The content of a node that says nothing, for that reason.
fn told(fault: String) -> NodeContent {
    let bytes = wire::PlanDemands { wants: None, fault: Some(fault) }.encode_to_vec();
    NodeContent { bytes: Some(bytes), ..NodeContent::default() }
}

/// The demands of a plan, as its node would ask for them.
fn said(plan: &NodePlan) -> Vec<u8> {
    let holder = ClientId::new(plan.node(), usize::MAX).expect("the name of a node is a name");
    let reports = plan.demands().into_iter().map(|(id, bands)| Report::new(id, bands));
    let ask = Ask {
        kind: HolderKind::Node,
        holder,
        incarnation: Some(Incarnation::default()),
        report_id: None,
        target_epoch: None,
        line: None,
        reports: reports.collect(),
    };
    wire::PlanDemands { wants: Some(ask.to_node_wire()), fault: None }.encode_to_vec()
}

fn read_demands(content: &[u8]) -> Result<Vec<Report>, String> {
    let demands = wire::PlanDemands::decode(content).map_err(|fault| fault.to_string())?;
    if let Some(fault) = demands.fault {
        return Err(fault);
    }
    let wants = demands.wants.ok_or("it says nothing")?;
    // As far as it is held against limits, its reports are.
    let limits = Limits { resources_per_request: usize::MAX, ..Limits::default() };
    Ask::from_node(wants, &limits).map(|ask| ask.reports).map_err(|refusal| refusal.to_string())
}

fn supply(said: &wire::PlanSupply) -> Option<SupplyForecast> {
    Some(SupplyForecast {
        resource: ResourceId::new(said.resource_id.as_str(), said.resource_id.len()).ok()?,
        granted: Amount::from_f64(said.capacity),
        lease_length: said.lease_seconds.map(Duration::from_secs),
        kind: if said.is_gauge == Some(true) { Kind::Gauge } else { Kind::Rate },
    })
}

fn supplied(supply: &SupplyForecast) -> wire::PlanSupply {
    wire::PlanSupply {
        resource_id: supply.resource.to_string(),
        capacity: supply.granted.as_f64(),
        lease_seconds: supply.lease_length.map(|length| length.as_secs()),
        is_gauge: (supply.kind == Kind::Gauge).then_some(true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_at_one_plan_at_a_time() {
        let desk = PlanDesk::default();
        assert_eq!((desk.begin(1), desk.begin(1)), (Ok(()), Ok(())));
        let refused = desk.begin(2).expect_err("another one");
        assert_eq!(refused, "another plan is under way here; wanted one at a time");
        // The end of another one is not that of this.
        desk.end(2);
        assert!(desk.begin(2).is_err());
        desk.end(1);
        assert_eq!(desk.begin(2), Ok(()));
        assert!(desk.take(1).is_none() && desk.take(2).is_none(), "nothing is put there yet");
        desk.put(2, Err("a fault".to_owned()), BTreeSet::new());
        let (plan, _) = desk.take(2).expect("it is there");
        assert_eq!(plan.err(), Some("a fault".to_owned()));
    }
}
