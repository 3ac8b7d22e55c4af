//! A plan as text.

use std::collections::{BTreeMap, BTreeSet};

use lessor_server::plan::{BandChange, Movers, Plan, PlanNote, RefusedHolders, ResourceForecast};

use crate::status::node::{short, wanted};

/// Names that are written out; of those after them there is the number.
const NAMED: usize = 3;

/// The text for people.
pub(super) fn display(plan: &Plan) -> String {
    let mut text = String::new();
    let base = match plan.base {
        0 => "against what is in force".to_owned(),
        base => format!("against revision {base}"),
    };
    let asked = plan.nodes.asked.len();
    let all = asked + plan.nodes.silent.len();
    text.push_str(&format!("{base}, asked {} within {:.2} s\n", of(asked, all, "node"), plan.took_seconds));
    for silent in &plan.nodes.silent {
        text.push_str(&format!("! no answer: {silent}: whoever is there is not in this\n"));
    }
    for resource in &plan.resources {
        text.push_str(&of_resource(plan, resource));
    }
    text.push_str(&notes(&plan.notes));
    if plan.unplanned > 0 {
        text.push_str(&format!(
            "! {} that change as well are not looked at\n",
            count(plan.unplanned, "resource")
        ));
    }
    text.push_str(&sum(plan));
    text
}

fn sum(plan: &Plan) -> String {
    let gained: f64 = plan.resources.iter().map(|resource| resource.gainers.sum).sum();
    let [lost, all] = plan.moved.map(short);
    match plan.resources.len() {
        0 => "nothing changes for anybody\n".to_owned(),
        changes => {
            let changes = if changes == 1 {
                "1 resource changes".to_owned()
            } else {
                format!("{changes} resources change")
            };
            format!("{changes}: of {all} units {lost} are lost, and {} gained\n", short(gained))
        }
    }
}

fn of_resource(plan: &Plan, resource: &ResourceForecast) -> String {
    let ResourceForecast { resource: name, capacity, template, .. } = resource;
    let unit = if resource.kind.iter().any(|kind| kind == "gauge") { "" } else { "/s" };
    let sign = if template[1].is_none() { "-" } else { "~" };
    let amount =
        |amount: Option<f64>| amount.map_or_else(|| "no limit".to_owned(), |amount| short(amount) + unit);
    let head = match template {
        [_, None] => "no template".to_owned(),
        _ if capacity[0] == capacity[1] => format!("capacity {}", amount(capacity[0])),
        _ => format!("capacity {} -> {}", amount(capacity[0]), amount(capacity[1])),
    };
    let mut text =
        format!("{sign} {name}: {head}, wanted {}, out {}\n", wanted(resource.wants), short(resource.out));
    let globs = template.clone().map(Option::unwrap_or_default);
    for (what, [before, after]) in
        [("template", &globs), ("kind", &resource.kind), ("algorithm", &resource.algorithm)]
    {
        if before != after && !before.is_empty() && !after.is_empty() {
            text.push_str(&line(what, &format!("{before} -> {after}")));
        }
    }
    text.push_str(&levels(resource, unit));
    text.push_str(&clients(resource, unit));
    text.push_str(&movers("most lost", &resource.losers, unit));
    text.push_str(&movers("most gained", &resource.gainers, unit));
    let refused = plan.refused.iter().filter(|refused| refused.resource == *name);
    text.extend(refused.map(|refused| line("refused", &of_refused(refused))));
    let until = &resource.until;
    let in_force = match until.latest_s > 0.0 {
        true => {
            format!(
                "within {:.1} s, by {:.1} s at the latest: {}",
                until.likely_s, until.latest_s, until.because
            )
        }
        false => format!("at once: {}", until.because),
    };
    text + &line("in force", &in_force)
}

fn levels(resource: &ResourceForecast, unit: &str) -> String {
    let level =
        |level: Option<f64>| level.map_or_else(|| "all they want".to_owned(), |level| short(level) + unit);
    if [&resource.kind, &resource.algorithm].iter().any(|[before, after]| before != after) {
        // What a level of the one would be to the other says nothing.
        return String::new();
    }
    let is_one = resource.levels.len() == 1;
    let told = |band: &BandChange| {
        let of = if is_one { String::new() } else { format!(", of priority {}", band.priority) };
        line("level", &format!("{} -> {}{of}", level(band.level[0]), level(band.level[1])))
    };
    resource.levels.iter().filter(|band| band.level[0] != band.level[1]).map(told).collect()
}

fn clients(resource: &ResourceForecast, unit: &str) -> String {
    let (losers, gainers) = (&resource.losers, &resource.gainers);
    let all = losers.count + gainers.count + resource.keep;
    if all == 0 {
        return line("clients", "none");
    }
    let told = |movers: &Movers, verb: &str| match movers.count {
        0 => format!("none {verb}s"),
        1 => format!("1 {verb}s {}{unit}", short(movers.sum)),
        count => format!("{count} {verb} {}{unit} together", short(movers.sum)),
    };
    let keep = match resource.keep {
        0 => "none keeps its share".to_owned(),
        1 => "1 keeps its share".to_owned(),
        keep => format!("{keep} keep their shares"),
    };
    let mut text = format!("of {all}: {}, {}, {keep}", told(losers, "lose"), told(gainers, "gain"));
    if resource.not_named > 0 {
        text.push_str(&format!("; {} of them are counted together", resource.not_named));
    }
    line("clients", &text)
}

/// A line for each client, in columns.
fn movers(what: &str, movers: &Movers, unit: &str) -> String {
    let rows: Vec<[String; 4]> = movers
        .worst
        .iter()
        .map(|mover| {
            let [before, after] = mover.share.map(short);
            [mover.client.clone(), before, after + unit, mover.node.clone()]
        })
        .collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let [name, before, after] = [width(0), width(1), width(2)];
    let row = |(number, row): (usize, &[String; 4])| {
        let [client, from, to, node] = row;
        let label = if number == 0 { what } else { "" };
        line(label, &format!("{client:name$}  {from:>before$} -> {to:after$}  at {node}"))
    };
    rows.iter().enumerate().map(row).collect()
}

fn of_refused(refused: &RefusedHolders) -> String {
    let RefusedHolders { node, count: all, some, why, by_s, .. } = refused;
    let names: BTreeSet<&str> = some.iter().map(String::as_str).collect();
    format!("{} at {node} by {by_s:.0} s, as {why}", names_of(&names, *all))
}

/// Each note once, with all that it is about.
fn notes(notes: &[PlanNote]) -> String {
    let mut all: BTreeMap<&str, [BTreeSet<&str>; 2]> = BTreeMap::new();
    for PlanNote { resource, node, note } in notes {
        let [resources, nodes] = all.entry(note).or_default();
        resources.insert(resource);
        nodes.insert(node);
    }
    let told = |(note, [resources, nodes]): (&str, [BTreeSet<&str>; 2])| {
        let [resources, nodes] = [resources, nodes].map(|names| names_of(&names, names.len()));
        format!("! {resources} at {nodes}: {note}\n")
    };
    all.into_iter().map(told).collect()
}

/// Some names of `all`.
fn names_of(names: &BTreeSet<&str>, all: usize) -> String {
    let named: Vec<&str> = names.iter().take(NAMED).copied().collect();
    match all - named.len() {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

fn line(label: &str, text: &str) -> String {
    format!("    {label:<12}{text}\n")
}

fn count(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn of(some: usize, all: usize, what: &str) -> String {
    format!("{some} of {}", count(all, what))
}
