//! Windows and limits as they are written: `100/1m`, `50MiB/1s`.

use std::fmt;
use std::time::Duration;

/// The length of a window, and the unit in which Envoy is told of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// The unit.
    pub unit: TimeUnit,
    /// The number of them.
    pub multiplier: u32,
}

/// A unit of time in Envoy's messages.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum TimeUnit {
    /// A second.
    Second,
    /// A minute.
    Minute,
    /// An hour.
    Hour,
    /// A day of 24 hours.
    Day,
    /// Seven days.
    Week,
    /// Thirty days, as the rate limit service has it.
    Month,
    /// 365 days.
    Year,
}

/// The fault of a limit.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{found}; wanted hits and a window, as in 100/1m or 50MiB/1s")]
pub struct BadLimit {
    found: String,
}

/// No window may be longer: a lease has to outlast it, and lasts for a year at most.
pub(super) const LONGEST: Duration = Duration::from_secs(360 * 86_400);

/// The units by their names.
pub(super) const UNITS: [(&str, TimeUnit); 7] = [
    ("second", TimeUnit::Second),
    ("minute", TimeUnit::Minute),
    ("hour", TimeUnit::Hour),
    ("day", TimeUnit::Day),
    ("week", TimeUnit::Week),
    ("month", TimeUnit::Month),
    ("year", TimeUnit::Year),
];

// === impl TimeUnit ===

impl TimeUnit {
    /// The seconds in it.
    #[must_use]
    pub fn seconds(self) -> u32 {
        match self {
            TimeUnit::Second => 1,
            TimeUnit::Minute => 60,
            TimeUnit::Hour => 3_600,
            TimeUnit::Day => 86_400,
            TimeUnit::Week => 7 * 86_400,
            TimeUnit::Month => 30 * 86_400,
            TimeUnit::Year => 365 * 86_400,
        }
    }

    fn name(self) -> &'static str {
        UNITS.iter().find(|(_, unit)| *unit == self).map_or("second", |(name, _)| name)
    }
}

// === impl Window ===

impl Window {
    /// One unit.
    #[must_use]
    pub fn of(unit: TimeUnit) -> Window {
        Window { unit, multiplier: 1 }
    }

    /// The window of that length, in the greatest unit of which it is a multiple, up to a day.
    ///
    /// # Errors
    /// When it is no whole number of seconds, none, or longer than a lease can outlast.
    pub fn new(length: Duration) -> Result<Window, String> {
        const WANTED: &str = "wanted whole seconds, from 1s to 360 days";
        let seconds = u32::try_from(length.as_secs()).unwrap_or(u32::MAX);
        if length.subsec_nanos() > 0 || seconds == 0 || length > LONGEST {
            return Err(format!("window {} is out of bounds; {WANTED}", humantime::format_duration(length)));
        }
        let units = [TimeUnit::Day, TimeUnit::Hour, TimeUnit::Minute, TimeUnit::Second];
        let unit =
            units.into_iter().find(|unit| seconds.is_multiple_of(unit.seconds())).unwrap_or(TimeUnit::Second);
        Ok(Window { unit, multiplier: seconds / unit.seconds() })
    }

    /// The length of it. Of a year only 360 days are kept, as a lease has to outlast them.
    #[must_use]
    pub fn length(self) -> Duration {
        Duration::from_secs(u64::from(self.unit.seconds()) * u64::from(self.multiplier)).min(LONGEST)
    }

    /// The name of a policy with this window that has none.
    pub(super) fn word(self) -> String {
        match self.multiplier {
            1 => self.unit.name().to_owned(),
            multiplier => format!("{multiplier}-{}", self.unit.name()),
        }
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.unit {
            TimeUnit::Second => "s",
            TimeUnit::Minute => "m",
            TimeUnit::Hour => "h",
            unit => unit.name(),
        };
        let plural = if self.multiplier > 1 && unit.len() > 1 { "s" } else { "" };
        write!(f, "{}{unit}{plural}", self.multiplier)
    }
}

/// The hits and the window in `text`.
///
/// # Errors
/// When it is none.
pub(super) fn parse(text: &str) -> Result<(u32, Window), BadLimit> {
    let bad = |found: String| BadLimit { found };
    let (hits, window) = text.split_once('/').ok_or_else(|| bad(format!("limit {text:?} has no window")))?;
    let hits = amount(hits.trim()).map_err(|found| bad(format!("limit {text:?}: {found}")))?;
    let length = humantime::parse_duration(window.trim())
        .map_err(|fault| bad(format!("limit {text:?}: window {window:?} is no time: {fault}")))?;
    Ok((hits, Window::new(length).map_err(|found| bad(format!("limit {text:?}: {found}")))?))
}

/// A number of hits, or of bytes with their unit.
pub(super) fn amount(text: &str) -> Result<u32, String> {
    const UNITS: [(&str, u64); 7] = [
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("B", 1),
    ];
    let unit = UNITS.iter().find_map(|&(unit, bytes)| Some((text.strip_suffix(unit)?, bytes)));
    let (digits, bytes) = unit.unwrap_or((text, 1));
    let digits = digits.trim_end();
    let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    let number = is_number.then(|| digits.parse::<u64>().ok()).flatten();
    let number = number.and_then(|number| number.checked_mul(bytes));
    let number = number.and_then(|number| u32::try_from(number).ok());
    number.ok_or_else(|| format!("{text:?} is no number of hits; wanted a whole number from 0 to 4294967295"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_hits_and_a_window() {
        let read = |text: &str| {
            parse(text).map(|(hits, window)| (hits, window.length().as_secs(), window.to_string()))
        };
        assert_eq!(read("100/1m"), Ok((100, 60, "1m".to_owned())));
        assert_eq!(read("50MiB/1s"), Ok((52_428_800, 1, "1s".to_owned())));
        assert_eq!(read("0 / 90s"), Ok((0, 90, "90s".to_owned())));
        assert_eq!(parse("5/90s").unwrap().1, Window { unit: TimeUnit::Second, multiplier: 90 });
        assert_eq!(parse("5/2days").unwrap().1, Window { unit: TimeUnit::Day, multiplier: 2 });
        for (text, wanted) in [
            ("100", "limit \"100\" has no window"),
            (
                "x/1m",
                "limit \"x/1m\": \"x\" is no number of hits; wanted a whole number from 0 to 4294967295",
            ),
            (
                "-1/1m",
                "limit \"-1/1m\": \"-1\" is no number of hits; wanted a whole number from 0 to 4294967295",
            ),
            (
                "4GiB/1s",
                "limit \"4GiB/1s\": \"4GiB\" is no number of hits; wanted a whole number from 0 to 4294967295",
            ),
            (
                "1/1500ms",
                "limit \"1/1500ms\": window 1s 500ms is out of bounds; wanted whole seconds, from 1s to 360 days",
            ),
            ("1/0s", "limit \"1/0s\": window 0s is out of bounds; wanted whole seconds, from 1s to 360 days"),
        ] {
            let fault = parse(text).unwrap_err().to_string();
            assert_eq!(fault, format!("{wanted}; wanted hits and a window, as in 100/1m or 50MiB/1s"));
        }
    }

    #[test]
    fn months_and_years_are_as_the_rate_limit_service_has_them() {
        assert_eq!(Window::of(TimeUnit::Month).length().as_secs(), 30 * 86_400);
        assert_eq!(Window::of(TimeUnit::Year).length(), LONGEST);
        assert_eq!(Window::of(TimeUnit::Year).to_string(), "1year");
    }
}
