//! Tiers and patterns of arrivals as they are written on a command line.

use std::fmt::Write as _;
use std::str::FromStr;
use std::time::Duration;

use lessor_algorithms::tiers::{Invalid, Tier, TierPolicy, Window, Windows};

use super::arrival::{Pattern, Shape};

/// The tiers of one policy, in ascending order: `5/1s, 50/5s:5s:15s`.
///
/// A tier is its limit and its window, then its active time (that of the window without it), then its cooldown (none without
/// it), then `skippable` and how its window is counted: `exact`, `sliding/K`, `fixed` or `bucket`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tiers(pub Vec<Tier>);

/// A text that is no tier.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "found {found:?}, wanted {wanted}; a tier is LIMIT/WINDOW[:ACTIVE[:COOLDOWN]][:skippable][:COUNT], as in 50/5s:5s:15s \
     or 5000/5m:5m:23h:sliding/60"
)]
pub struct BadTier {
    /// The part that is wrong.
    pub found: String,
    /// A description of what should stand there.
    pub wanted: &'static str,
}

/// A text that is no pattern.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "found {found:?}, wanted {wanted}; a pattern is 5/s, poisson 300/min, burst 60@3s or every 15s: 50, with when it comes \
     behind it, as in 5/s@10s..20s or 5/s on 2s off 8s"
)]
pub struct BadPattern {
    /// The part that is wrong.
    pub found: String,
    /// A description of what should stand there.
    pub wanted: &'static str,
}

const NUMBER: &str = "a whole number from 1 to 4294967295";
const TIME: &str = "a time as in 3s, 500ms or 1h30m";
const LONGER: &str = "a time longer than 0s";
const RATE: &str = "a number and a time as in 5/s";
const TIERS: &str = "a limit and a window as in 5/1s";
const COUNT: &str = "sliding/K with K slices from 1 to 65535";

/// A policy as it is written: `5/1s, 50/5s:5s:15s, hard 20`.
#[must_use]
pub fn shown(policy: &TierPolicy) -> String {
    let mut parts: Vec<String> = policy.tiers().iter().map(shown_tier).collect();
    parts.extend(policy.hard_limit().map(|hard| format!("hard {hard}")));
    parts.extend(policy.global_limit().map(|global| format!("global {global}")));
    if policy.windows() == Windows::Reset {
        parts.push("windows reset".to_owned());
    }
    if policy.tiers().is_empty() { "closed".to_owned() } else { parts.join(", ") }
}

fn shown_tier(tier: &Tier) -> String {
    let mut text = format!("{}/{}", tier.limit, short(tier.window));
    if tier.active != tier.window || !tier.cooldown.is_zero() {
        append(&mut text, &short(tier.active));
    }
    if !tier.cooldown.is_zero() {
        append(&mut text, &short(tier.cooldown));
    }
    if tier.is_skippable {
        append(&mut text, "skippable");
    }
    match tier.kind {
        Window::Exact => {}
        Window::Sliding { slices } => append(&mut text, &format!("sliding/{slices}")),
        Window::Fixed => append(&mut text, "fixed"),
        Window::Bucket => append(&mut text, "bucket"),
    }
    text
}

fn append(text: &mut String, part: &str) {
    write!(text, ":{part}").expect("a string takes everything");
}

/// A time without spaces: `23h55m`.
pub(super) fn short(time: Duration) -> String {
    humantime::format_duration(time).to_string().replace(' ', "")
}

// === impl Tiers ===

impl Tiers {
    /// The policy of these tiers, with at most `hard` hits a second by one domain and `global` by all.
    ///
    /// # Errors
    /// As [`TierPolicy::new`].
    pub fn policy(self, hard: Option<u32>, global: Option<u32>) -> Result<TierPolicy, Invalid> {
        TierPolicy::new(self.0, hard, global)
    }
}

impl FromStr for Tiers {
    type Err = BadTier;

    fn from_str(text: &str) -> Result<Tiers, BadTier> {
        text.split(',').map(|tier| read_tier(tier.trim())).collect::<Result<_, _>>().map(Tiers)
    }
}

fn read_tier(text: &str) -> Result<Tier, BadTier> {
    let bad = |found: &str, wanted| BadTier { found: found.to_owned(), wanted };
    let mut parts = text.split(':').map(str::trim);
    let first = parts.next().unwrap_or_default();
    let (limit, window) = first.split_once('/').ok_or_else(|| bad(first, TIERS))?;
    let limit = number(limit).ok_or_else(|| bad(limit, NUMBER))?;
    let window = time(window).filter(|time| !time.is_zero()).ok_or_else(|| bad(window, LONGER))?;
    let mut tier = Tier {
        limit,
        window,
        active: window,
        cooldown: Duration::ZERO,
        is_skippable: false,
        kind: Window::Exact,
    };
    let mut times = 0;
    for part in parts {
        match part {
            "skippable" => tier.is_skippable = true,
            "exact" => tier.kind = Window::Exact,
            "fixed" => tier.kind = Window::Fixed,
            "bucket" => tier.kind = Window::Bucket,
            _ if part.starts_with("sliding") => {
                let slices = part.strip_prefix("sliding/").and_then(|slices| slices.parse().ok());
                let slices = slices.filter(|slices| *slices > 0).ok_or_else(|| bad(part, COUNT))?;
                tier.kind = Window::Sliding { slices };
            }
            _ => {
                let found = time(part).ok_or_else(|| bad(part, TIME))?;
                match times {
                    0 => tier.active = found,
                    1 => tier.cooldown = found,
                    _ => return Err(bad(part, "no third time: active time and cooldown stand there")),
                }
                times += 1;
            }
        }
    }
    Ok(tier)
}

// === impl Pattern ===

impl FromStr for Pattern {
    type Err = BadPattern;

    fn from_str(text: &str) -> Result<Pattern, BadPattern> {
        // What stands behind it may come in either order.
        let (begin, on_off) =
            text.split_once(" on ").map_or((text, None), |(begin, rest)| (begin, Some(rest)));
        let (on_off, late) = match on_off.and_then(|rest| rest.split_once('@')) {
            Some((on_off, when)) => (Some(on_off), Some(when)),
            None => (on_off, None),
        };
        let (what, when) = begin.split_once('@').map_or((begin, late), |(what, when)| (what, Some(when)));
        let shape = read_shape(what.trim())?;
        let (from, until) = read_when(when.unwrap_or("..").trim(), matches!(shape, Shape::Burst(_)))?;
        Ok(Pattern { shape, from, until, on_off: on_off.map(read_on_off).transpose()? })
    }
}

fn read_shape(text: &str) -> Result<Shape, BadPattern> {
    if let Some(count) = text.strip_prefix("burst ") {
        return Ok(Shape::Burst(number(count).ok_or_else(|| wrong(count, NUMBER))?));
    }
    if let Some(rest) = text.strip_prefix("every ") {
        let (every, count) =
            rest.split_once(':').ok_or_else(|| wrong(text, "every TIME: NUMBER as in every 15s: 50"))?;
        let count = number(count).ok_or_else(|| wrong(count, NUMBER))?;
        return Ok(Shape::Bursts(count, positive(every)?));
    }
    match text.strip_prefix("poisson ") {
        Some(rate) => read_rate(rate).map(|(count, time)| Shape::Poisson(count, time)),
        None => read_rate(text).map(|(count, time)| Shape::Steady(count, time)),
    }
}

/// `5/s`, `300/min`, `5/2s`.
fn read_rate(text: &str) -> Result<(u32, Duration), BadPattern> {
    let (count, unit) = text.split_once('/').ok_or_else(|| wrong(text, RATE))?;
    let count = number(count).ok_or_else(|| wrong(count, NUMBER))?;
    let unit = unit.trim();
    let begins_with_number = unit.starts_with(|first: char| first.is_ascii_digit());
    let time = if begins_with_number { time(unit) } else { time(&format!("1{unit}")) };
    match time.filter(|time| !time.is_zero()) {
        Some(time) => Ok((count, time)),
        None => Err(wrong(text, RATE)),
    }
}

/// `2s off 8s`.
fn read_on_off(text: &str) -> Result<(Duration, Duration), BadPattern> {
    let (on, off) = text.split_once(" off ").ok_or_else(|| wrong(text, "TIME off TIME as in 2s off 8s"))?;
    Ok((positive(on)?, positive(off)?))
}

/// `3s..20s`, `3s..`, `..20s`; of a burst, `3s`.
fn read_when(text: &str, is_burst: bool) -> Result<(Duration, Option<Duration>), BadPattern> {
    let read = |text: &str| time(text).ok_or_else(|| wrong(text, TIME));
    let Some((from, until)) = text.split_once("..") else {
        let wanted = "from when until when, as in 10s..20s, 10s.. or ..20s";
        return if is_burst { Ok((read(text)?, None)) } else { Err(wrong(text, wanted)) };
    };
    if is_burst && text != ".." {
        return Err(wrong(text, "one time, as in burst 60@3s"));
    }
    let from = if from.is_empty() { Duration::ZERO } else { read(from)? };
    let until = if until.is_empty() { None } else { Some(read(until)?) };
    match until {
        Some(until) if until <= from => Err(wrong(text, "an end behind the beginning")),
        _ => Ok((from, until)),
    }
}

// === what is read ===

fn wrong(found: &str, wanted: &'static str) -> BadPattern {
    BadPattern { found: found.trim().to_owned(), wanted }
}

fn number(text: &str) -> Option<u32> {
    text.trim().parse().ok().filter(|number| *number > 0)
}

fn time(text: &str) -> Option<Duration> {
    humantime::parse_duration(text.trim()).ok()
}

fn positive(text: &str) -> Result<Duration, BadPattern> {
    time(text).filter(|time| !time.is_zero()).ok_or_else(|| wrong(text, LONGER))
}

#[cfg(test)]
mod tests;
