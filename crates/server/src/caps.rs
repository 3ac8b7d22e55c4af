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
/// if that was more. A band without a client is none, so each keeps one, and the others are what is shared out.
pub(crate) fn cap_clients(bands: &mut [Band], most: u64) -> Option<u64> {
    let all: u64 = bands.iter().map(|band| u64::from(band.subclients)).sum();
    if all <= most {
        return None;
    }
    let kept = bands.len() as u64;
    let (others, room) = (u128::from(all.saturating_sub(kept)).max(1), u128::from(most.saturating_sub(kept)));
    for band in bands {
        let part = u128::from(band.subclients.saturating_sub(1)) * room / others;
        // It is no more than it was.
        band.subclients = u32::try_from(part).unwrap_or(u32::MAX).saturating_add(1);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The clients that these count as, where so many may.
    fn capped(clients: &[u32], most: u64) -> Vec<u32> {
        let band = |&subclients: &u32| Band { priority: 0, subclients, wants: 1.0 };
        let mut bands: Vec<Band> = clients.iter().map(band).collect();
        cap_clients(&mut bands, most);
        bands.iter().map(|band| band.subclients).collect()
    }

    #[test]
    fn many_small_bands_count_as_no_more_than_may_be() {
        assert_eq!(capped(&[1, 1, 1, 1, 1, 3], 6), [1; 6]);
        assert_eq!(capped(&[1, 1, 3], 4), [1, 1, 2]);
        assert_eq!(capped(&[100, 300], 40), [10, 29]);
        assert_eq!(capped(&[u32::MAX], 3), [3]);
        assert_eq!(capped(&[2, 2], 1), [1, 1], "each keeps one");
        assert_eq!(capped(&[2, 2], 4), [2, 2], "it is no more than may be");
    }
}
