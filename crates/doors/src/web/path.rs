//! Paths as rules see them, and what is percent-encoded in requests.

use std::borrow::Cow;

/// A path as rules see it: decoded once, without empty parts and dots, so that `/api/../api/x` is no way round.
pub(super) fn normalised(path: &str) -> Cow<'_, str> {
    match is_normal(path) {
        true => Cow::Borrowed(path),
        false => Cow::Owned(rewritten(path)),
    }
}

fn rewritten(path: &str) -> String {
    let path = decoded(path, false);
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let mut normal = String::with_capacity(path.len() + 1);
    for part in &parts {
        normal.push('/');
        normal.push_str(part);
    }
    let ends_open = path.ends_with('/') || path.ends_with("/.") || path.ends_with("/..");
    if parts.is_empty() || ends_open {
        normal.push('/');
    }
    normal
}

/// Whether a path is so already, as nearly all are.
fn is_normal(path: &str) -> bool {
    let Some(rest) = path.strip_prefix('/') else { return false };
    let (parts, last) = rest.rsplit_once('/').map_or((None, rest), |(parts, last)| (Some(parts), last));
    let is_dots = |part: &str| matches!(part, "." | "..");
    let is_odd = |part: &str| part.is_empty() || is_dots(part);
    !path.contains('%') && !is_dots(last) && !parts.is_some_and(|parts| parts.split('/').any(is_odd))
}

/// A text with what is percent-encoded decoded; what is not well encoded stays as it is.
pub(super) fn decoded(text: &str, is_query: bool) -> String {
    let digit =
        |byte: Option<&u8>| byte.and_then(|byte| (*byte as char).to_digit(16)).map(|digit| digit as u8);
    let bytes = text.as_bytes();
    let mut read = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let pair = digit(bytes.get(at + 1)).zip(digit(bytes.get(at + 2)));
        match (byte, pair) {
            (b'%', Some((high, low))) => {
                read.push(high << 4 | low);
                at += 3;
                continue;
            }
            (b'+', _) if is_query => read.push(b' '),
            (byte, _) => read.push(byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&read).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn paths_are_decoded_once_and_there_is_no_way_round() {
        for (path, wanted) in [
            ("/api/x", "/api/x"),
            ("//api///x/", "/api/x/"),
            ("/api/../admin/./x", "/admin/x"),
            ("/%2e%2e/%61pi/%2E/x", "/api/x"),
            ("/a%252e%252e/b", "/a%2e%2e/b"),
            ("/api%2fx", "/api/x"),
            ("/../../..", "/"),
            ("", "/"),
            ("/a/..", "/"),
            ("/100%", "/100%"),
            ("/%ff", "/\u{fffd}"),
        ] {
            assert_eq!(normalised(path), wanted, "{path}");
        }
    }

    proptest! {
        #[test]
        fn what_is_taken_for_a_normal_path_is_one(path in "[/.%2ea]{0,9}") {
            prop_assert_eq!(is_normal(&path), matches!(normalised(&path), Cow::Borrowed(_)));
            prop_assert_eq!(&*normalised(&path), rewritten(&path));
        }
    }
}
