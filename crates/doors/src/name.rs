//! Names: of the resource that a rule is, and of the key that the values of a request make in it.
//!
//! A client chooses values, so none of them may write another's name: what has a meaning in names is percent-encoded, and so
//! is `~`, behind which the hash of a name stands that was cut. Values are joined by `,`, which a star of a template matches,
//! or by `/` as domains are; and as they have neither themselves no two lists of values of the same length make one name.
//!
//! ```
//! use lessor_doors::name::{Joint, KeyName};
//!
//! let mut key = KeyName::new(Joint::Comma);
//! key.push(b"10.0.0.7");
//! key.push(b"a/b c");
//! assert_eq!(key.within("rl/edge/remote_address|0:"), "10.0.0.7,a%2Fb%20c");
//! ```

use std::fmt::Write as _;

/// The longest name of a resource in bytes; longer ones are cut, and told apart by a hash.
pub const LONGEST: usize = 200;
/// The bytes of a longer name that are kept.
const KEPT: usize = 160;
/// The longest beginning of names that a rule gives to all of its keys.
const LONGEST_PREFIX: usize = 120;
/// The hexadecimal digits of a hash.
const DIGITS: usize = 16;

/// The name of a key, value by value. It can be used again, and keeps its memory.
#[derive(Clone, Debug)]
pub struct KeyName {
    text: String,
    values: usize,
    joint: Joint,
}

/// The letter between two values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Joint {
    /// Of keys that are resources by themselves.
    Comma,
    /// Of domains, whose policies may be for a part of the name.
    Slash,
}

// === impl KeyName ===

impl KeyName {
    /// One without values.
    #[must_use]
    pub fn new(joint: Joint) -> KeyName {
        KeyName { text: String::new(), values: 0, joint }
    }

    /// Forgets all values, and joins others so from here on.
    pub fn clear(&mut self, joint: Joint) {
        self.text.clear();
        self.values = 0;
        self.joint = joint;
    }

    /// Adds a value.
    pub fn push(&mut self, value: &[u8]) {
        if self.values > 0 {
            self.text.push(match self.joint {
                Joint::Comma => ',',
                Joint::Slash => '/',
            });
        }
        self.values += 1;
        encode(value, &mut self.text);
    }

    /// The key below `prefix`: cut where the name that both make would be too long.
    pub fn within(&mut self, prefix: &str) -> &str {
        if prefix.len() + self.text.len() > LONGEST {
            cut(&mut self.text, KEPT.saturating_sub(prefix.len()));
        }
        &self.text
    }
}

/// Writes `value` behind `text`, so that it can be told from all others and has nothing in it that has a meaning in names.
pub fn encode(value: &[u8], text: &mut String) {
    encode_but(value, text, |byte| matches!(byte, b'%' | b'/' | b'|' | b',' | b'=' | b'~'));
}

/// The same for a part of the name of a rule, which stands in templates too: with nothing in it that a glob takes for something
/// else, nor what joins the levels of a rule.
pub(crate) fn encode_part(value: &[u8], text: &mut String) {
    encode_but(value, text, |byte| {
        matches!(
            byte,
            b'%' | b'/' | b'|' | b',' | b'=' | b'~' | b'.' | b'*' | b'?' | b'[' | b']' | b'\\' | b':' | b'"'
        )
    });
}

/// The beginning of all names of a rule: `resource` and the place of one of its limits.
pub(crate) fn prefix(resource: &str, place: usize) -> Box<str> {
    let mut text = shortened(resource);
    // Writing to a string does not fail.
    let _ = write!(text, "|{place}:");
    text.into()
}

/// The name of a rule, cut where keys would have too little room behind it.
pub(crate) fn shortened(resource: &str) -> String {
    let mut text = resource.to_owned();
    if text.len() > LONGEST_PREFIX {
        cut(&mut text, LONGEST_PREFIX - 1 - DIGITS - 8);
    }
    text
}

fn encode_but(value: &[u8], text: &mut String, has_meaning: impl Fn(u8) -> bool) {
    let is_plain = |byte: &u8| byte.is_ascii_graphic() && !has_meaning(*byte);
    if let Some(plain) = value.iter().all(is_plain).then(|| str::from_utf8(value).ok()).flatten() {
        return text.push_str(plain);
    }
    for chunk in value.utf8_chunks() {
        for letter in chunk.valid().chars() {
            let plain = match u8::try_from(letter) {
                Ok(byte) if byte.is_ascii() => is_plain(&byte),
                _ => !letter.is_control() && !letter.is_whitespace(),
            };
            match plain {
                true => text.push(letter),
                false => letter.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| escape(byte, text)),
            }
        }
        chunk.invalid().iter().for_each(|&byte| escape(byte, text));
    }
}

fn escape(byte: u8, text: &mut String) {
    // Writing to a string does not fail.
    let _ = write!(text, "%{byte:02X}");
}

/// Keeps the first `kept` bytes of `text`, and puts the hash of all of it behind them.
fn cut(text: &mut String, kept: usize) {
    let hash = blake3::hash(text.as_bytes()).to_hex();
    text.truncate(text.floor_char_boundary(kept));
    text.push('~');
    text.push_str(&hash[..DIGITS]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(values: &[&[u8]], prefix: &str) -> String {
        let mut key = KeyName::new(Joint::Slash);
        values.iter().for_each(|value| key.push(value));
        key.within(prefix).to_owned()
    }

    #[test]
    fn what_has_a_meaning_in_names_is_encoded() {
        assert_eq!(key(&[b"acme", b"GET"], ""), "acme/GET");
        assert_eq!(key(&[b"a/b|c,d=e f%2F~"], ""), "a%2Fb%7Cc%2Cd%3De%20f%252F%7E");
        assert_eq!(key(&["größe\u{2003}\u{7f}".as_bytes()], ""), "größe%E2%80%83%7F");
        assert_eq!(key(&[b"\xff\xfe", b"", b""], ""), "%FF%FE//");
        let mut part = String::new();
        encode_part(b"a.b*c?[d]\\e", &mut part);
        assert_eq!(part, "a%2Eb%2Ac%3F%5Bd%5D%5Ce");
    }

    #[test]
    fn a_long_name_is_cut_and_told_apart_and_cannot_be_written_by_a_client() {
        let long = [b'x'; 300];
        let (one, other) = (key(&[&long[..201]], ""), key(&[&long[..202]], ""));
        assert_eq!((one.len(), other.len(), key(&[&long[..200]], "").len()), (177, 177, 200));
        assert_ne!(one, other);
        assert_ne!(key(&[one.as_bytes()], ""), one);
        let prefix = "p".repeat(LONGEST_PREFIX);
        assert!(prefix.len() + key(&[&long], &prefix).len() <= LONGEST);
        assert!(key(&["ä".repeat(300).as_bytes()], &prefix).len() <= LONGEST - prefix.len());
        assert!(super::prefix(&"r".repeat(500), 31).len() <= LONGEST_PREFIX);
    }
}
