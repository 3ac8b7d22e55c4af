//! Caps on what holders say of themselves: more counts as the most that there may be, and is refused nobody.

use lessor_proto::message::Band;

/// Lets the bands above the priority `most` count as of that. Gives back the greatest that was above it.
pub(crate) fn cap_priorities(bands: &mut [Band], most: i64) -> Option<i64> {
    let found = bands.iter().map(|band| band.priority).max().filter(|&found| found > most);
    if found.is_some() {
        bands.iter_mut().for_each(|band| band.priority = band.priority.min(most));
    }
    found
}

/// Lets the clients of all bands together count as `most`, each band as its part of them. Gives back the number that they were,
/// if that was more. A band without a client is none, so each keeps one.
pub(crate) fn cap_clients(bands: &mut [Band], most: u64) -> Option<u64> {
    let all: u64 = bands.iter().map(|band| u64::from(band.subclients)).sum();
    if all <= most {
        return None;
    }
    for band in bands {
        let part = u128::from(band.subclients) * u128::from(most) / u128::from(all);
        // It is no more than it was.
        band.subclients = u32::try_from(part).unwrap_or(u32::MAX).max(1);
    }
    Some(all)
}
