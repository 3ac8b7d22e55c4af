//! Figures in few places, and bars.

use std::time::Duration;

use lessor_proto::Amount;

/// Eighths of the height of a cell, from none to all.
const EIGHTHS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// An amount in at most six places, of which three tell how much it is.
pub(super) fn figure(amount: f64) -> String {
    if amount >= Amount::MAX.as_f64() {
        return "all".to_owned();
    }
    let (mut scaled, mut letter) = (amount, "");
    for next in ["k", "M", "G", "T", "P"] {
        if scaled.abs() < 9_999.5 {
            break;
        }
        (scaled, letter) = (scaled / 1_000.0, next);
    }
    let places = match scaled.abs() {
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{scaled:.places$}");
    let text = if places > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{letter}")
}

/// The same, or a dash for nothing.
pub(super) fn some(amount: f64) -> String {
    if amount > 0.0 { figure(amount) } else { "-".to_owned() }
}

/// A part of a whole in per cent.
pub(super) fn percent(part: f64) -> String {
    format!("{:.0}%", (part * 100.0).min(9_999.0))
}

/// The cells, out of `width`, that are full for a part of a whole. Something is seen of whatever there is, and only all is all.
pub(super) fn cells(part: f64, width: usize) -> usize {
    let exact = part.clamp(0.0, 1.0) * width as f64;
    match part {
        part if part <= 0.0 => 0,
        part if part >= 1.0 => width,
        _ => (exact.round() as usize).clamp(1, width.saturating_sub(1).max(1)).min(width),
    }
}

/// Parts of a whole, the last ones of them that fit, a cell each.
pub(super) fn spark(parts: impl ExactSizeIterator<Item = f64>, width: usize) -> String {
    let early = parts.len().saturating_sub(width);
    let eighth = |part: f64| match part {
        part if part <= 0.0 => 0,
        part => ((part * 8.0).round() as usize).clamp(1, 8),
    };
    parts.skip(early).map(|part| EIGHTHS[eighth(part)]).collect()
}

/// The time of a day, in UTC.
pub(super) fn clock_time(since_epoch: Duration) -> String {
    let seconds = since_epoch.as_secs() % 86_400;
    format!("{:02}:{:02}:{:02} UTC", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

/// Whole seconds, as people say them.
pub(super) fn length(duration: Duration) -> String {
    humantime::format_duration(Duration::from_secs(duration.as_secs())).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        for (amount, text) in [
            (0.0, "0"),
            (0.333_333, "0.33"),
            (6.1, "6.1"),
            (14.25, "14.2"),
            (851.0, "851"),
            (9_999.0, "9999"),
            (12_345.0, "12.3k"),
            (1_500_000.0, "1500k"),
            (12_000_000.0, "12M"),
            (5e12, "5000G"),
        ] {
            assert_eq!(figure(amount), text);
            assert!(text.len() <= 6);
        }
        assert_eq!(figure(Amount::MAX.as_f64()), "all");
        assert_eq!((some(0.0), some(2.5)), ("-".to_owned(), "2.5".to_owned()));
        assert_eq!((percent(0.731), percent(1e9)), ("73%".to_owned(), "9999%".to_owned()));
    }

    #[test]
    fn a_bar_shows_something_of_whatever_there_is_and_all_only_of_all() {
        assert_eq!([0.0, 0.001, 0.5, 0.999, 1.0, 7.0].map(|part| cells(part, 10)), [0, 1, 5, 9, 10, 10]);
        assert_eq!((cells(0.5, 1), cells(0.5, 0)), (1, 0));
        assert_eq!(spark([0.0, 0.01, 0.5, 1.0, 3.0].into_iter(), 4), "▁▄██");
    }

    #[test]
    fn times_are_those_of_a_day() {
        assert_eq!(clock_time(Duration::from_secs(86_400 * 3 + 3_600 * 7 + 65)), "07:01:05 UTC");
        assert_eq!(length(Duration::from_millis(61_900)), "1m 1s");
    }
}
