//! The summary of a run of tiers, as a table for people.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, Table, presets};
use lessor_sim::tiers::{Refused, TiersFigures};

const HEADS: [&str; 8] =
    ["tier", "hits", "refused", "entered", "active", "of it shadowed", "cooldown", "fullest"];

/// The sums, and a row for each tier, the highest first as in the picture.
pub(super) fn text(figures: &TiersFigures) -> String {
    let TiersFigures { requests, asked, granted, refused, .. } = figures;
    let Refused { tiers, hard, global } = *refused;
    let by = [("tiers", tiers), ("hard limit", hard), ("global limit", global)];
    let by: String =
        by.iter().filter(|(_, hits)| *hits > 0).map(|(what, hits)| format!(", {hits} by {what}")).collect();
    let mut text = format!(
        "{requests} requests for {asked} hits: {granted} granted, {} refused{by}\n\
         most granted in any second: {}; longest without a grant though asked: {} s\n",
        refused.sum(),
        figures.most_in_a_second,
        short(figures.longest_without_s),
    );
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY);
    table.set_header(HEADS);
    for index in 1..HEADS.len() {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let several = figures.tiers.iter().any(|tier| tier.policy > 1);
    for tier in figures.tiers.iter().rev() {
        let policy = if several { format!("policy {} ", tier.policy) } else { String::new() };
        table.add_row([
            format!("{policy}tier {}", tier.tier),
            tier.hits.to_string(),
            tier.refused.to_string(),
            tier.entered.to_string(),
            format!("{} s", short(tier.active_s)),
            format!("{} s", short(tier.shadowed_s)),
            format!("{} s", short(tier.cooldown_s)),
            format!("{} of {}", tier.fullest, tier.limit),
        ]);
    }
    writeln!(text, "{table}").expect("a string takes everything");
    text
}

fn short(seconds: f64) -> String {
    let text = format!("{seconds:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
