//! A scalar of a template: one of several words; and what was meant if it is none.

use lessor_algorithms::{Rotate, SharePolicy};
use lessor_yaml::node::{YamlNode, YamlValue};
pub(super) use lessor_yaml::scalar::*;

use crate::repository::{Field, Fraction, Kind, LEGACY_HOLD, Legacy, SmallLeases};

/// Reads the policy of sharing, by Doorman's names or their numbers in its protocol.
pub(super) fn policy(node: &YamlNode) -> Result<SharePolicy, String> {
    const KNOWN: [(&str, &str, SharePolicy); 4] = [
        ("NO_ALGORITHM", "0", SharePolicy::None),
        ("STATIC", "1", SharePolicy::Static),
        ("PROPORTIONAL_SHARE", "2", SharePolicy::ProportionalShare),
        ("FAIR_SHARE", "3", SharePolicy::FairShare),
    ];
    let text = text("kind", node)?;
    let plain = matches!(node.value, YamlValue::Scalar { plain: true, .. });
    let found = KNOWN.iter().find(|(name, number, _)| text == *name || plain && text == *number);
    let names = KNOWN.map(|(name, ..)| name);
    found
        .map(|&(.., policy)| policy)
        .ok_or_else(|| format!("kind {} is not an algorithm; {}", written(node), wanted(text, &names)))
}

/// Reads the kind of a resource.
pub(super) fn kind(node: &YamlNode) -> Result<Kind, String> {
    match text("kind", node)? {
        "rate" => Ok(Kind::Rate),
        "gauge" => Ok(Kind::Gauge),
        text if policy(node).is_ok() => {
            Err(format!("kind {text} belongs under algorithm; wanted rate or gauge here"))
        }
        text => {
            let wanted = wanted(text, &["rate", "gauge"]);
            Err(format!("kind {} is not a kind of resource; {wanted}", written(node)))
        }
    }
}

/// Reads the way in which units are taken in turns.
pub(super) fn rotate(node: &YamlNode) -> Result<Rotate, String> {
    one_of("rotate", node, &[("fair", Rotate::Fair), ("sticky", Rotate::Sticky), ("none", Rotate::None)])
}

/// Reads where the number of workers is said; whether that is in the name.
pub(super) fn workers(node: &YamlNode) -> Result<bool, String> {
    one_of("workers", node, &[("in_name", true), ("capacity", false)])
}

/// Reads the treatment of leases that bring less than a unit in the burst.
pub(super) fn small_leases(node: &YamlNode) -> Result<SmallLeases, String> {
    one_of("small_leases", node, &[("save", SmallLeases::Save), ("request", SmallLeases::Request)])
}

/// Reads the part of all clients that keep to their leases.
pub(super) fn enforce(node: &YamlNode) -> Result<Fraction, String> {
    let words = [("true", Fraction::ALL), ("false", Fraction::NONE)];
    let text = text("enforce", node)?;
    if let Some((_, part)) = words.into_iter().find(|(word, _)| text == *word) {
        return Ok(part);
    }
    let value = number("enforce", node, "true, false, or the part of all clients that do, from 0 to 1")?;
    Fraction::check(Field::Enforce, value).map_err(|problem| problem.to_string())
}

/// Reads the treatment of Doorman's clients; sticky with the usual hold.
pub(super) fn legacy(node: &YamlNode) -> Result<Legacy, String> {
    let sticky = Legacy::Sticky { hold: LEGACY_HOLD };
    one_of("legacy", node, &[("deny", Legacy::Deny), ("expire", Legacy::Expire), ("sticky", sticky)])
}
