//! The cursor of a list: where in its order the rows before have ended, as text that nobody needs to read.

use std::cmp::Ordering;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use crate::problem::ApiProblem;

/// A value by which rows are ordered.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Key {
    Number(f64),
    Text(String),
    Truth(bool),
    /// It comes last in either direction.
    Absent,
}

/// The keys of a row: those of the order, and its id.
pub(crate) type Keys = Vec<Key>;

// === impl Key ===

impl Key {
    /// Their order, the other way round if that is asked for.
    pub(crate) fn compare(&self, other: &Key, is_descending: bool) -> Ordering {
        let order = match (self, other) {
            (Key::Absent, Key::Absent) => return Ordering::Equal,
            (Key::Absent, _) => return Ordering::Greater,
            (_, Key::Absent) => return Ordering::Less,
            (Key::Number(one), Key::Number(other)) => one.total_cmp(other),
            (Key::Text(one), Key::Text(other)) => one.cmp(other),
            (Key::Truth(one), Key::Truth(other)) => one.cmp(other),
            // Of one column they are of one kind; of a cursor that was made up they may be of any.
            (one, other) => one.rank().cmp(&other.rank()),
        };
        if is_descending { order.reverse() } else { order }
    }

    fn rank(&self) -> u8 {
        match self {
            Key::Truth(_) => 0,
            Key::Number(_) => 1,
            Key::Text(_) => 2,
            Key::Absent => 3,
        }
    }
}

/// The text of a cursor behind the row with these keys.
pub(crate) fn encode(keys: &[Key]) -> String {
    let values = keys.iter().map(|key| match key {
        Key::Number(number) => Value::from(*number),
        Key::Text(text) => Value::from(text.as_str()),
        Key::Truth(truth) => Value::from(*truth),
        Key::Absent => Value::Null,
    });
    URL_SAFE_NO_PAD.encode(Value::Array(values.collect()).to_string())
}

/// The keys in the text of a cursor, of which there are to be so many.
pub(crate) fn decode(text: &str, count: usize) -> Result<Keys, ApiProblem> {
    let bad = || {
        let wanted = "what `next` of an answer with the same sort said";
        ApiProblem::invalid("after", text, wanted)
    };
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| bad())?;
    let values: Vec<Value> = serde_json::from_slice(&bytes).map_err(|_| bad())?;
    if values.len() != count {
        return Err(bad());
    }
    let keys = values.into_iter().map(|value| match value {
        Value::Null => Some(Key::Absent),
        Value::Bool(truth) => Some(Key::Truth(truth)),
        Value::Number(number) => number.as_f64().map(Key::Number),
        Value::String(text) => Some(Key::Text(text)),
        Value::Array(_) | Value::Object(_) => None,
    });
    keys.collect::<Option<Keys>>().ok_or_else(bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_comes_back_as_it_was() {
        let keys = vec![Key::Number(1.5), Key::Absent, Key::Truth(true), Key::Text("<ä>".to_owned())];
        let text = encode(&keys);
        assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)), "{text}");
        assert_eq!(decode(&text, 4), Ok(keys));
        for bad in ["", "x", "W10", &text] {
            let fault = decode(bad, 3).expect_err(bad);
            assert!(
                fault.error.starts_with(&format!("after: found {bad:?}; wanted what `next`")),
                "{fault:?}"
            );
        }
    }

    #[test]
    fn what_is_absent_comes_last_in_either_direction() {
        for is_descending in [false, true] {
            assert_eq!(Key::Absent.compare(&Key::Number(1.0), is_descending), Ordering::Greater);
            assert_eq!(Key::Number(1.0).compare(&Key::Absent, is_descending), Ordering::Less);
        }
        assert_eq!(Key::Number(1.0).compare(&Key::Number(2.0), true), Ordering::Greater);
    }
}
