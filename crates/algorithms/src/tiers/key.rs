//! Names of domains that are configured in parts.

use std::collections::BTreeMap;

/// The value that is configured for a name: under the name itself, or else under the longest of its beginnings
/// that end before a `/`. Also returns that beginning.
///
/// ```
/// use std::collections::BTreeMap;
/// use lessor_algorithms::tiers::configured;
///
/// let configured_names = BTreeMap::from([("rate_limit".to_owned(), 1), ("rate_limit/10".to_owned(), 2)]);
/// assert_eq!(configured(&configured_names, "rate_limit/192.168.11.3"), Some(("rate_limit", &1)));
/// assert_eq!(configured(&configured_names, "rate_limit/10/7"), Some(("rate_limit/10", &2)));
/// assert_eq!(configured(&configured_names, "rate_limits"), None);
/// ```
#[must_use]
pub fn configured<'a, T>(names: &'a BTreeMap<String, T>, name: &str) -> Option<(&'a str, &'a T)> {
    let mut beginnings = std::iter::successors(Some(name), |name| Some(name.rsplit_once('/')?.0));
    beginnings.find_map(|name| names.get_key_value(name)).map(|(name, value)| (name.as_str(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(configured_names: &[&str], name: &str, expected: Option<&str>) {
        let names = configured_names.iter().map(|&name| (name.to_owned(), ())).collect();
        assert_eq!(
            configured(&names, name).map(|(name, ())| name),
            expected,
            "{name} of {configured_names:?}"
        );
    }

    #[test]
    fn the_most_specific_beginning_decides() {
        let names = ["rate_limit", "rate_limit/a", "rate_limit/a/b/c"];
        check(&names, "rate_limit", Some("rate_limit"));
        check(&names, "rate_limit/192.168.11.3", Some("rate_limit"));
        check(&names, "rate_limit/a", Some("rate_limit/a"));
        check(&names, "rate_limit/a/b", Some("rate_limit/a"));
        check(&names, "rate_limit/a/b/c", Some("rate_limit/a/b/c"));
        check(&names, "rate_limit/a/b/c/d/e", Some("rate_limit/a/b/c"));
        check(&names, "rate_limit/ab", Some("rate_limit"));
    }

    #[test]
    fn only_whole_parts_are_beginnings() {
        check(&["rate"], "rate_limit", None);
        check(&["rate"], "rate/limit", Some("rate"));
        check(&["rate/"], "rate/limit", None);
        check(&["rate/"], "rate//limit", Some("rate/"));
        check(&[""], "/limit", Some(""));
        check(&[""], "limit", None);
        check(&[], "limit", None);
    }
}
