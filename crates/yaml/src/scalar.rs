//! A scalar of the file: a number, a text, one of several words; and what was meant if it is none.

use std::time::Duration;

use crate::node::{YamlNode, YamlValue};

/// Every whole number up to it is a number of its own when it is read.
pub const LAST: f64 = 9_007_199_254_740_991.0;
/// The number of characters of a value that are repeated in a message.
const SHOWN: usize = 60;

/// A number. Doorman's YAML library lets `1_000` and `0x10` stand for numbers, so they do here.
///
/// # Errors
/// What was found, and what is wanted.
pub fn number(name: &str, node: &YamlNode, wanted: &str) -> Result<f64, String> {
    let YamlValue::Scalar { text, plain } = &node.value else {
        return Err(format!("{name} is {}; wanted {wanted}", shape(node)));
    };
    if !plain {
        let quotes = if parse(text).is_ok() { ", without quotes" } else { "" };
        return Err(format!("{name} {} is text; wanted {wanted}{quotes}", written(node)));
    }
    parse(text).map_err(|fault| format!("{name} {} {fault}; wanted {wanted}", written(node)))
}

/// A whole number, `least` or more.
///
/// # Errors
/// What was found, and what is wanted.
pub fn whole(field: &str, node: &YamlNode, least: f64, wanted: &str) -> Result<f64, String> {
    let value = number(field, node, wanted)?;
    let fits = value.fract() == 0.0 && (least..=LAST).contains(&value);
    fits.then_some(value).ok_or_else(|| format!("{field} {value} is out of bounds; wanted {wanted}"))
}

/// A number of seconds; or a time with its unit, as in `60s`.
///
/// # Errors
/// What was found, and what is wanted.
pub fn seconds(name: &str, node: &YamlNode, wanted: &str) -> Result<f64, String> {
    if let YamlValue::Scalar { text, .. } = &node.value
        && parse(text).is_err()
        && let Ok(time) = humantime::parse_duration(text)
    {
        return Ok(time.as_secs_f64());
    }
    number(name, node, wanted)
}

fn parse(text: &str) -> Result<f64, &'static str> {
    const NOT: &str = "is not a number";
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let magnitude = match digits {
        ".inf" | ".Inf" | ".INF" => f64::INFINITY,
        ".nan" | ".NaN" | ".NAN" if text == digits => f64::NAN,
        _ => match digits.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).map_err(|_| NOT)? as f64,
            None => decimal(digits).ok_or(NOT)?,
        },
    };
    let octal = |digits: &str| digits.len() > 1 && digits.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    if digits.starts_with('0') && octal(digits) {
        return Err("is octal to some readers and decimal to others");
    }
    Ok(if negative { -magnitude } else { magnitude })
}

fn decimal(digits: &str) -> Option<f64> {
    let first = digits.bytes().next()?;
    let known = |b: u8| b.is_ascii_digit() || matches!(b, b'.' | b'_' | b'e' | b'E' | b'+' | b'-');
    if !(first.is_ascii_digit() || first == b'.') || !digits.bytes().all(known) {
        return None;
    }
    digits.replace('_', "").parse().ok()
}

/// A text, which may be written as a number: `description: 5`.
///
/// # Errors
/// What was found, and what is wanted.
pub fn text<'a>(name: &str, node: &'a YamlNode) -> Result<&'a str, String> {
    match &node.value {
        YamlValue::Scalar { text, .. } => Ok(text),
        _ => Err(format!("{name} is {}; wanted text", shape(node))),
    }
}

/// A time with its unit, as in `1h 30m`.
///
/// # Errors
/// What was found, and what is wanted.
pub fn time(name: &str, node: &YamlNode) -> Result<Duration, String> {
    const WANTED: &str = "a time with its unit, as in 500ms, 5s or 1h 30m";
    let text = text(name, node)?;
    humantime::parse_duration(text)
        .map_err(|fault| format!("{name} {} is not a time: {fault}; wanted {WANTED}", written(node)))
}

/// One of the words in `known`.
///
/// # Errors
/// What was found, and what is wanted.
pub fn one_of<T: Copy>(name: &str, node: &YamlNode, known: &[(&str, T)]) -> Result<T, String> {
    let text = text(name, node)?;
    let found = known.iter().find(|(word, _)| *word == text);
    let words: Vec<&str> = known.iter().map(|&(word, _)| word).collect();
    found
        .map(|&(_, value)| value)
        .ok_or_else(|| format!("{name} {} means nothing; {}", written(node), wanted(text, &words)))
}

/// A single value as it stands in the file: in quotes if it is.
#[must_use]
pub fn written(node: &YamlNode) -> String {
    match &node.value {
        YamlValue::Scalar { text, plain: true } => shown(text),
        YamlValue::Scalar { text, plain: false } => format!("{:?}", shown(text)),
        _ => shape(node).to_owned(),
    }
}

/// A hint at the name that was meant by `word`, or else at all that would have been right.
#[must_use]
pub fn wanted(word: &str, known: &[&str]) -> String {
    let distance = |name: &&&str| distance(&bare(word), &bare(name));
    match known.iter().min_by_key(distance).filter(|name| distance(name) <= 2) {
        Some(name) => format!("did you mean {name}?"),
        None => format!("wanted {}", listed(known, "or")),
    }
}

/// `a, b and c`.
#[must_use]
pub fn listed(words: &[&str], last: &str) -> String {
    match words {
        [] => String::new(),
        [word] => (*word).to_owned(),
        [most @ .., word] => format!("{} {last} {word}", most.join(", ")),
    }
}

/// The shape of a node that is not what was wanted.
#[must_use]
pub fn shape(node: &YamlNode) -> &'static str {
    match node.value {
        _ if node.is_null() => "empty",
        YamlValue::Scalar { .. } => "a single value",
        YamlValue::List(_) => "a list",
        YamlValue::Map(_) => "a mapping",
    }
}

/// The beginning of a long text.
#[must_use]
pub fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Without what people confuse, and no longer than names are.
fn bare(word: &str) -> Vec<char> {
    word.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).take(SHOWN).collect()
}

/// The number of characters that have to be put in, taken out or replaced (Levenshtein).
fn distance(from: &[char], to: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_what_yaml_readers_agree_on() {
        for (text, value) in [
            ("500", 500.0),
            ("-3", -3.0),
            ("+0.5", 0.5),
            (".5", 0.5),
            ("60.0", 60.0),
            ("1e3", 1000.0),
            ("1_000", 1000.0),
            ("0x10", 16.0),
            ("0", 0.0),
            ("0.5", 0.5),
            ("-.inf", f64::NEG_INFINITY),
        ] {
            assert_eq!(parse(text), Ok(value), "{text}");
        }
        assert!(parse(".nan").unwrap().is_nan());
        assert_eq!(parse("010"), Err("is octal to some readers and decimal to others"));
        for text in ["", "-", ".", "five", "5s", "inf", "nan", "1:30", "_1", "0x", "--1", "1e", "true"] {
            assert_eq!(parse(text), Err("is not a number"), "{text}");
        }
    }

    #[test]
    fn slips_are_told_from_other_words() {
        let known = ["capacity", "safe_capacity", "kind"];
        assert_eq!(wanted("capcity", &known), "did you mean capacity?");
        assert_eq!(wanted("safeCapacity", &known), "did you mean safe_capacity?");
        assert_eq!(wanted("Safe-Capacity", &known), "did you mean safe_capacity?");
        assert_eq!(wanted("colour", &known), "wanted capacity, safe_capacity or kind");
    }
}
