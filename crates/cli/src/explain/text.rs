//! An explanation as text: the amount and its reason first, and then the nodes from that of the client up to the root.

use super::reason;
use super::{Explanation, Life, OverrideRow};
use crate::status::node::{short, wanted};

/// The text for people of a chain of explanations.
pub(super) fn display(chain: &[Explanation], client: Option<&str>, unreached: Option<&str>) -> String {
    let Some(first) = chain.first() else { return String::new() };
    let mut text = String::new();
    if client.is_some() {
        for life in &first.lives {
            text.push_str(&first.of_life(life));
            if let Some(origin) = bound_above(chain, life) {
                text.push_str(&field("where", &origin));
            }
        }
    } else {
        let row = &first.resource;
        text.push_str(&format!(
            "{} at {}: {} of {} out, {} wanted by {}\n",
            row.resource,
            first.node,
            first.amount(row.leased + row.ghost),
            first.division.limit.map_or_else(|| "no limit".to_owned(), |limit| first.amount(limit)),
            wanted(row.wants),
            clients(row.clients)
        ));
    }
    for explanation in chain {
        text.push_str(&explanation.of_node());
        explanation.overrides.iter().for_each(|it| text.push_str(&field("override", &it.line())));
    }
    if let Some(why) = unreached {
        text.push_str(&field("above", &format!("not known: {why}")));
    }
    text
}

/// At which node above that of `life` the amount is bound in the end: a level is as high as the lease that it divides.
fn bound_above(chain: &[Explanation], life: &Life) -> Option<String> {
    let (mut bound_by, mut origin) = (life.bound_by.as_str(), None);
    for above in chain.iter().skip(1) {
        let held = above.lives.iter().max_by(|one, other| one.charged.total_cmp(&other.charged))?;
        if !matches!(bound_by, "level" | "band" | "turn" | "lease_above") || held.bound_by == "wants" {
            break;
        }
        bound_by = held.bound_by.as_str();
        let (has, wants) = (above.amount(held.told), above.wanted(held.wants));
        origin = Some(format!(
            "at {}: {} has {has} of {wants} there, bound by {bound_by}",
            above.node, held.client
        ));
    }
    origin
}

/// A line of its own, with what it is about.
fn field(name: &str, value: &str) -> String {
    format!("  {name:<10} {value}\n")
}

fn clients(number: usize) -> String {
    if number == 1 { "1 client".to_owned() } else { format!("{number} clients") }
}

// === impl OverrideRow ===

impl OverrideRow {
    /// All of it in a line.
    pub(crate) fn line(&self) -> String {
        let OverrideRow { id, what, reason, by, ends_in_seconds } = self;
        format!("{id}: {what}, for {ends_in_seconds:.0} s more; {by} says: {reason}")
    }
}

// === impl Explanation ===

impl Explanation {
    /// With the unit that it is counted in.
    fn amount(&self, number: f64) -> String {
        short(number) + if self.resource.kind == "gauge" { "" } else { "/s" }
    }

    /// One life of the client: what it has, what it would get, and why.
    fn of_life(&self, life: &Life) -> String {
        let mut text = format!(
            "{} at {} has {} of {} that it wants of {}",
            life.client,
            self.node,
            self.amount(life.told),
            self.wanted(life.wants),
            self.resource.resource
        );
        if life.ends_in_seconds > 0.0 {
            text.push_str(&format!(", for {:.0} s", life.ends_in_seconds));
        }
        if life.is_cut {
            text.push_str("; it says more than the template lets count");
        }
        text.push('\n');
        text.push_str(&field("would get", &self.would_get(life)));
        text.push_str(&field("bound by", &self.bound_by(life)));
        let also: Vec<_> = life.also.iter().map(|name| reason::part(name)).collect();
        if !also.is_empty() && life.bound_by != "wants" {
            text.push_str(&field("with it", &also.join(", ")));
        }
        let named: Vec<&str> = life.also.iter().chain([&life.bound_by]).map(String::as_str).collect();
        text.push_str(&field("not by", &reason::others(&named)));
        if let Some(remedy) = reason::remedy(&life.bound_by) {
            text.push_str(&field("for more", remedy));
        }
        let kind = if life.kind == "node" {
            format!("a node with {} clients", life.weight)
        } else {
            weight(life.weight)
        };
        let heard = format!(
            "heard {:.1} s ago by {}, {kind}, life {}",
            life.heard_seconds_ago, life.way, life.session
        );
        text.push_str(&field("holder", &heard));
        text
    }

    fn wanted(&self, number: f64) -> String {
        let text = wanted(number);
        if text == "all" { text } else { self.amount(number) }
    }

    fn would_get(&self, life: &Life) -> String {
        let Some(gets) = life.gets else {
            return "nothing can be granted at the moment; what it has lasts until its end".to_owned();
        };
        let mut text =
            format!("{} if it asked now; its share is {}", self.amount(gets), self.amount(life.share));
        if life.charged > life.told {
            text.push_str(&format!(
                ", and it is charged for {} until it says that it keeps to less",
                self.amount(life.charged)
            ));
        }
        text
    }

    fn bound_by(&self, life: &Life) -> String {
        let mut text = reason::what(&life.bound_by).to_owned();
        let band = life.bands.iter().find(|band| band.share < band.wants);
        let level = band.and_then(|band| self.division.bands.iter().find(|of| of.priority == band.priority));
        if let (Some(level), "level" | "band") = (level, life.bound_by.as_str()) {
            match level.level {
                Some(amount) => text.push_str(&format!(
                    " ({} each at priority {}, of {} left for it)",
                    self.amount(amount),
                    level.priority,
                    self.amount(level.left)
                )),
                None => text.push_str(&format!(
                    " ({} left for priority {})",
                    self.amount(level.left),
                    level.priority
                )),
            }
        }
        match life.bound_by.as_str() {
            "learning" if self.resource.learning => {
                text.push_str(&format!(" ({:.0} s more)", self.resource.learning_ends_in_seconds));
            }
            "ghost" => text.push_str(&format!(" ({:.0} s more)", self.resource.ghost_ends_in_seconds)),
            "debt" => text.push_str(&format!(" ({} too much)", self.amount(self.division.excess))),
            _ => {}
        }
        if let Some(seconds) = self.held_back_seconds {
            text.push_str(&format!(" ({seconds:.0} s more)"));
        }
        if let Some(later) = self.later_config {
            text.push_str(&format!(
                "; nothing is granted here: version {} of the configuration, and {later} was in force",
                self.config_version
            ));
        }
        text
    }

    /// The node: where its capacity comes from, and where that is.
    fn of_node(&self) -> String {
        let (row, division) = (&self.resource, &self.division);
        let mut source = match (&self.above, division.configured) {
            (Some(above), _) => self.lease_above(above),
            (None, Some(configured)) => {
                let template = row.template.as_deref().unwrap_or("?");
                let version = if self.config_version > 0 {
                    format!(", version {}", self.config_version)
                } else {
                    String::new()
                };
                format!(
                    "capacity {} (template {template}{version}), {}",
                    self.amount(configured),
                    row.algorithm
                )
            }
            (None, None) => "no template covers it".to_owned(),
        };
        if division.reserved > 0.0 {
            source.push_str(&format!(", {} reserved for floors", self.amount(division.reserved)));
        }
        let mut text = field(&format!("at {}", self.node), &source);
        let mut out = format!(
            "{} leased to {}, {} wanted",
            self.amount(row.leased),
            clients(row.clients),
            self.wanted(row.wants)
        );
        if let Some(free) = division.free {
            out.push_str(&format!(", {} free", self.amount(free)));
        }
        if row.ghost > 0.0 {
            out.push_str(&format!(
                ", {} out that nobody has shown, for {:.0} s more",
                self.amount(row.ghost),
                row.ghost_ends_in_seconds
            ));
        }
        if row.in_debt {
            out.push_str(&format!(", {} too much since a cut", self.amount(division.excess)));
        }
        if row.learning {
            out.push_str(&format!(", learning for {:.0} s more", row.learning_ends_in_seconds));
        }
        text.push_str(&field("", &out));
        if division.bands.len() > 1 || division.bands.iter().any(|band| band.level.is_some()) {
            let bands = division.bands.iter().map(|band| match band.level {
                Some(level) => format!(
                    "priority {}: {} left, level {}",
                    band.priority,
                    self.amount(band.left),
                    self.amount(level)
                ),
                None => format!("priority {}: {} left", band.priority, self.amount(band.left)),
            });
            text.push_str(&field(
                "",
                &format!(
                    "{} divided; {}",
                    self.amount(division.divided),
                    bands.collect::<Vec<_>>().join("; ")
                ),
            ));
        }
        text
    }

    fn lease_above(&self, above: &super::LeaseAbove) -> String {
        let node = above.node.as_deref().unwrap_or("the node above");
        let lease = self.division.limit.map_or_else(|| "no limit".to_owned(), |limit| self.amount(limit));
        let seconds = self.resource.lease_ends_in_seconds.unwrap_or(0.0);
        let mut text = format!("lease of {lease} from {node} ({}) for {seconds:.0} s", above.server);
        if let Some(by) = &above.bound_by {
            text.push_str(&format!(", bound there by {by}"));
        }
        if let Some(fault) = &above.fault {
            text.push_str(&format!(", not renewed: {fault}"));
        }
        text.push_str(&format!(", {}", self.resource.algorithm));
        text
    }
}

fn weight(clients: u64) -> String {
    if clients == 1 { "weight 1".to_owned() } else { format!("stands for {clients}") }
}
