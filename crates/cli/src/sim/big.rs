//! `lessor sim town`: very many clients below three levels of servers, to see how fast that goes.

use anyhow::ensure;
use lessor_client::shell::clock;
use lessor_sim::big::BigTown;
use lessor_sim::plan::Way;
use lessor_sim::scenario::Mode;
use serde_json::json;

/// Runs the town and prints how it went. The sum of what clients believe is looked at after every event.
pub(super) fn run(
    seed: u64,
    clients: Option<usize>,
    minutes: Option<u64>,
    mode: Mode,
    json: bool,
) -> anyhow::Result<()> {
    let way = match mode {
        Mode::Stream => Way::Stream,
        Mode::Poll => Way::Poll,
        Mode::Doorman => anyhow::bail!("--mode doorman means nothing for town; wanted stream or poll"),
    };
    let usual = BigTown::default();
    let town = BigTown {
        clients: clients.unwrap_or(usual.clients),
        minutes: minutes.unwrap_or(usual.minutes),
        way,
        ..usual
    };
    ensure!(town.clients > 0, "--clients: found 0, wanted at least 1");
    ensure!(town.minutes > 0, "--minutes: found 0, wanted at least 1");
    let begun = clock::now();
    let report = town.run(seed)?;
    let wall_s = clock::now().since(begun).as_secs_f64();
    if json {
        let line = json!({
            "scenario": "town",
            "seed": seed,
            "mode": mode.name(),
            "clients": town.clients,
            "simulated_s": 60 * town.minutes,
            "events": report.events,
            "messages": report.counts.messages(),
            "used_in_the_end": report.believed,
            "trace_hash": format!("{:016x}", report.hash),
            "wall_s": wall_s,
        });
        println!("{line}");
        return Ok(());
    }
    let places: usize = 1 + town
        .fan_out
        .iter()
        .scan(1, |all, n| {
            *all *= n;
            Some(*all)
        })
        .sum::<usize>();
    println!(
        "{} clients below {places} servers in {} levels, {} simulated minutes, {mode}",
        town.clients,
        town.fan_out.len() + 1,
        town.minutes
    );
    println!(
        "{} events and {} messages in {wall_s:.1} s: {:.0} events a second",
        report.events,
        report.counts.messages(),
        report.events as f64 / wall_s
    );
    println!(
        "never more than the capacity; in the end {:.2} % of what there is to have",
        100.0 * report.believed
    );
    Ok(())
}
