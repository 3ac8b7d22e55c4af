//! The text format 0.0.4 of Prometheus, for those who do not read OpenMetrics: the same lines, and another way to announce
//! them.

/// The type of the content.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// `text`, which is OpenMetrics, in that format: a counter is announced with all of its name, and nothing says that it is the
/// end.
pub(super) fn from_open_metrics(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    // The help comes before the type that says what it is called.
    let mut help = None;
    for line in text.lines() {
        let announced = line.strip_prefix("# ").map(|rest| rest.split(' ').collect::<Vec<&str>>());
        match announced.as_deref() {
            Some(["EOF"] | ["UNIT", ..]) => {}
            Some(["HELP", name, ..]) => help = Some(&line["# HELP ".len() + name.len()..]),
            Some(["TYPE", name, kind]) => {
                let name = if *kind == "counter" { format!("{name}_total") } else { (*name).to_owned() };
                if let Some(help) = help.take() {
                    // The library ends each help with a full stop.
                    plain.push_str(&format!("# HELP {name}{}\n", help.strip_suffix('.').unwrap_or(help)));
                }
                plain.push_str(&format!("# TYPE {name} {kind}\n"));
            }
            _ => {
                plain.push_str(line);
                plain.push('\n');
            }
        }
    }
    plain
}

/// Whether somebody who accepts `types` is to be given OpenMetrics.
pub(super) fn prefers_open_metrics(types: &str) -> bool {
    types.split(',').any(|one| {
        let mut parts = one.split(';').map(str::trim);
        let is_it =
            parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case("application/openmetrics-text"));
        let weight = parts.find_map(|part| part.strip_prefix("q="));
        is_it && weight.is_none_or(|weight| weight.parse::<f64>().is_ok_and(|weight| weight > 0.0))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_announced_by_their_whole_name() {
        let open = "# HELP lessor_asks Requests for capacity.\n# TYPE lessor_asks counter\nlessor_asks_total 2\n\
            # HELP lessor_leads Leads.\n# TYPE lessor_leads gauge\n# UNIT lessor_leads none\nlessor_leads 1.0\n# EOF\n";
        let plain = "# HELP lessor_asks_total Requests for capacity\n# TYPE lessor_asks_total counter\n\
            lessor_asks_total 2\n# HELP lessor_leads Leads\n# TYPE lessor_leads gauge\nlessor_leads 1.0\n";
        assert_eq!(from_open_metrics(open), plain);
    }

    #[test]
    fn who_does_not_ask_for_open_metrics_is_given_the_old_format() {
        let prometheus = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
            text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        for types in [prometheus, "text/plain, application/openmetrics-text; q=0.1"] {
            assert!(prefers_open_metrics(types), "{types}");
        }
        for types in ["", "*/*", "text/plain;version=0.0.4", "application/openmetrics-text;q=0", "text/html"]
        {
            assert!(!prefers_open_metrics(types), "{types}");
        }
    }
}
