//! Answers of an admin port, for people.

use std::fmt::Write as _;
use std::time::Duration;

use comfy_table::{CellAlignment, Table, presets};
use serde_json::Value;

/// The text of something that may be absent.
fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A number of seconds, as people say it.
fn time(seconds: &Value) -> String {
    let seconds = seconds.as_f64().unwrap_or(0.0).max(0.0);
    let whole = Duration::from_secs(seconds.ceil().min(1e9) as u64);
    humantime::format_duration(whole).to_string()
}

pub(super) fn reload(answer: &Value) -> String {
    list(&answer["read"]).iter().fold(String::new(), |mut shown, file| {
        let version =
            file["version"].as_u64().map_or(String::new(), |version| format!(", version {version}"));
        let _ = writeln!(shown, "{} in force{version}: {}", text(&file["what"]), text(&file["file"]));
        shown
    })
}

pub(super) fn resign(answer: &Value) -> String {
    let again = time(&answer["stands_again_after_seconds"]);
    match answer["leader"].as_str() {
        Some(leader) => format!("{leader} leads; this task stands for election again in {again}\n"),
        None => format!("nobody else leads yet; this task stands for election again in {again}\n"),
    }
}

pub(super) fn recalled(answer: &Value) -> String {
    let (holder, resource) = (text(&answer["holder"]), text(&answer["resource"]));
    let mut shown =
        format!("{holder} gets nothing of {resource} for {}\n", time(&answer["held_back_seconds"]));
    for lease in list(&answer["leases"]) {
        let (charged, ends) = (&lease["charged"], time(&lease["ends_in_seconds"]));
        let _ = match (lease["charged"].as_f64() > Some(0.0), lease["told"].as_bool()) {
            (false, _) => writeln!(shown, "  a {} that had nothing", text(&lease["kind"])),
            (true, Some(true)) => writeln!(
                shown,
                "  a {} that was told so; {charged} stay charged until it acknowledges that, for {ends} at the most",
                text(&lease["kind"])
            ),
            (true, _) => writeln!(
                shown,
                "  a {} without a stream, told so when it asks again; {charged} stay charged for {ends} at the most",
                text(&lease["kind"])
            ),
        };
    }
    shown.push_str("this leader knows of it, and no later one\n");
    shown
}

pub(super) fn lifted(answer: &Value) -> String {
    format!("{} may have of {} what is due to it\n", text(&answer["holder"]), text(&answer["resource"]))
}

pub(super) fn recalls(answer: &Value) -> String {
    let recalls = list(&answer["recalls"]);
    if recalls.is_empty() {
        return "no recall is in force\n".to_owned();
    }
    let mut table = table(&["resource", "holder", "for"], &[2]);
    for recall in recalls {
        table.add_row([
            text(&recall["resource"]),
            text(&recall["holder"]),
            &time(&recall["ends_in_seconds"]),
        ]);
    }
    format!("{table}\n")
}

pub(super) fn log(answer: &Value) -> String {
    let filter = text(&answer["filter"]);
    match answer["former"].as_str() {
        Some(former) => format!("{filter}, for {}; then {former}\n", time(&answer["ends_in_seconds"])),
        None => format!("{filter}\n"),
    }
}

pub(super) fn connections(answer: &Value) -> String {
    let rows = list(&answer["connections"]);
    let mut table = table(&["port", "from", "identity", "streams", "since", "for"], &[3, 5]);
    for row in rows {
        let from = match row["uid"].as_u64() {
            Some(uid) => {
                let pid = row["pid"].as_u64().map_or(String::new(), |pid| format!(" pid {pid}"));
                format!("uid {uid}{pid}")
            }
            None => text(&row["address"]).to_owned(),
        };
        let identity = match row["token_identity"].as_str() {
            Some(bearer) => format!("{}, by token {bearer}", text(&row["identity"])),
            None => text(&row["identity"]).to_owned(),
        };
        let (streams, age) = (row["streams"].to_string(), time(&row["open_seconds"]));
        table.add_row([
            text(&row["port"]).to_owned(),
            from,
            identity,
            streams,
            text(&row["since"]).to_owned(),
            age,
        ]);
    }
    let mut shown = format!("{table}\n");
    let in_all = answer["in_all"].as_u64().unwrap_or(0) as usize;
    if rows.len() < in_all {
        let _ = writeln!(shown, "… and {} more", in_all - rows.len());
    }
    shown
}

pub(super) fn access(answer: &Value) -> String {
    let mut shown = String::new();
    if answer["in_force"] == true {
        let rules = &answer["rules"];
        let _ = writeln!(
            shown,
            "version {}, default: {}; {} rules for nodes, {} for clients, {} for operators",
            answer["version"],
            text(&answer["default"]),
            rules["nodes"],
            rules["clients"],
            rules["operators"]
        );
    } else {
        shown.push_str("no rules of access: everybody may everything\n");
    }
    for (what, counts) in [("denied", &answer["denied"]), ("would have been denied", &answer["audited"])] {
        let counted: Vec<String> = counts
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(_, count)| count.as_u64() > Some(0))
            .map(|(why, count)| format!("{count} {why}"))
            .collect();
        let counted = if counted.is_empty() { "nothing".to_owned() } else { counted.join(", ") };
        let _ = writeln!(shown, "{what}: {counted}");
    }
    shown
}

pub(super) fn whoami(answer: &Value) -> String {
    let way = match (answer["by_token"] == true, answer["uid"].as_u64()) {
        (true, _) => ", by its token".to_owned(),
        (false, Some(uid)) => format!(", as uid {uid} at a socket"),
        (false, None) => format!(", from {}", text(&answer["address"])),
    };
    let roles: Vec<&str> = list(&answer["roles"]).iter().map(text).collect();
    let may = if roles.is_empty() { "nothing else".to_owned() } else { roles.join(", ") };
    let why = match (answer["rules"] == true, answer["enforced"] == true) {
        (true, true) => "",
        (true, false) => " (default: audit: what the rules do not allow is only noted)",
        (false, _) => " (there are no rules of access)",
    };
    format!("{}{way}\nmay: {may}{why}\n", text(&answer["identity"]))
}

fn table(header: &[&str], numbers: &[usize]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY);
    table.set_header(header.iter().copied());
    for &index in numbers {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}
