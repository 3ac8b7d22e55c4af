//! Reads the keys of tokens: a line of 64 hexadecimal digits, and the one before it, if it was changed, on the next.
//!
//! Faults are told without a digit of what is there.

use lessor_yaml::{Faults, Place};

use crate::token::{Key, TokenKeys};

const WANTED: &str = "wanted 64 hexadecimal digits, as `openssl rand -hex 32` gives";
/// Bytes in a key.
const BYTES: usize = 32;

/// The keys in `text`, which is called `name` in faults.
pub(super) fn keys(name: &str, text: &str) -> Result<TokenKeys, Faults> {
    let mut found = Vec::new();
    let mut keys = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        match key(text.trim()) {
            Ok(key) => keys.push(key),
            Err(message) => found.push((at(line), message)),
        }
    }
    match keys.len() {
        0 if found.is_empty() => found.push((at(1), format!("no key in it; {WANTED}"))),
        0..=2 => {}
        count => {
            let message = format!("{count} keys in it; wanted the one in force, and the one before it");
            found.push((at(3), message));
        }
    }
    let mut keys = keys.into_iter();
    match keys.next() {
        Some(current) if found.is_empty() => Ok(TokenKeys { current, previous: keys.next() }),
        _ => Err(Faults::new(name, &hidden(text), found)),
    }
}

fn key(text: &str) -> Result<Key, String> {
    let digits: Vec<u8> = text.chars().filter_map(|digit| digit.to_digit(16)?.try_into().ok()).collect();
    let count = text.chars().count();
    if count != 2 * BYTES || digits.len() != 2 * BYTES {
        return Err(format!("{count} characters, {} of them hexadecimal digits; {WANTED}", digits.len()));
    }
    let mut bytes = [0; BYTES];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        *byte = pair[0] << 4 | pair[1];
    }
    Ok(Key::new(bytes))
}

fn at(line: usize) -> Place {
    Place { line, ..Place::START }
}

/// The same text with nothing in it that is secret.
fn hidden(text: &str) -> String {
    text.chars().map(|c| if c == '\n' { c } else { '*' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF";

    #[test]
    fn the_first_line_is_in_force_and_the_second_was() {
        let other = ONE.replace('0', "f");
        let read = keys("k", &format!("{ONE}\n{other}\n")).unwrap();
        assert_eq!(read, TokenKeys { current: key(ONE).unwrap(), previous: Some(key(&other).unwrap()) });
        assert_eq!(keys("k", ONE).unwrap().previous, None);
    }

    #[test]
    fn what_is_wrong_is_told_without_a_digit_of_it() {
        for (text, wanted) in [
            ("", "no key in it; wanted 64 hexadecimal digits"),
            ("0123456789abcdeX", "16 characters, 15 of them hexadecimal digits; wanted 64"),
            (&format!("{ONE}\n{ONE}\n{ONE}"), "3 keys in it; wanted the one in force, and the one before it"),
            (&format!("{ONE}\n\n"), "0 characters, 0 of them hexadecimal digits"),
        ] {
            let faults = keys("k", text).unwrap_err().to_string();
            assert!(faults.contains(wanted), "{faults}");
            assert!(!faults.contains("0123") && !faults.contains("0011"), "{faults}");
        }
    }
}
