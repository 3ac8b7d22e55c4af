//! The count of what a message has many of, by its bytes, before it is decoded.
//!
//! A submessage without content takes two bytes on the wire and up to hundreds when it is decoded. What is refused here is
//! far above what is refused after decoding: whoever passes a limit by a little is told so with the place of the fault.

use lessor_proto::message::{Limits, MOST_DOMAINS, MOST_ENTRIES, Refusal};

/// A field that may stand in a message many times, or that holds such fields.
#[derive(Debug)]
pub(super) struct RepeatedField {
    number: u64,
    kind: Option<PartKind>,
    within: &'static [RepeatedField],
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PartKind {
    Resource,
    Band,
    Bucket,
    Domain,
    Entry,
}

const KINDS: [PartKind; 5] =
    [PartKind::Resource, PartKind::Band, PartKind::Bucket, PartKind::Domain, PartKind::Entry];
/// The factor by which a message may pass the limits that are looked at after decoding.
const SLACK: usize = 4;
/// The bytes on the wire that any part has at least: its number, and its length.
const LEAST_BYTES: usize = 2;
/// The bytes on the wire that a priority band, or a bucket of one, has at least on the average.
const BAND_BYTES: usize = 8;
const BUCKET_BYTES: usize = 4;

const fn part(number: u64, kind: PartKind, within: &'static [RepeatedField]) -> RepeatedField {
    RepeatedField { number, kind: Some(kind), within }
}

const fn single(number: u64, within: &'static [RepeatedField]) -> RepeatedField {
    RepeatedField { number, kind: None, within }
}

const BANDS: &[RepeatedField] = &[part(3, PartKind::Band, &[part(100, PartKind::Bucket, &[])])];
/// The resources of a request of a client, or the names in a release.
const RESOURCES: &[RepeatedField] = &[part(2, PartKind::Resource, &[])];
const NODE_RESOURCES: &[RepeatedField] = &[part(2, PartKind::Resource, BANDS)];
const UP: &[RepeatedField] = &[
    single(2, &[part(3, PartKind::Resource, &[]), part(4, PartKind::Resource, BANDS)]),
    single(3, RESOURCES),
    single(5, &[part(5, PartKind::Domain, &[part(2, PartKind::Entry, &[])])]),
];

/// The parts of the messages that are sent to the method at `path`; absent where that is none of the capacity service.
pub(super) fn parts(path: &str) -> Option<&'static [RepeatedField]> {
    match path.strip_prefix("/doorman.Capacity/")? {
        "GetCapacity" | "ReleaseCapacity" => Some(RESOURCES),
        "GetServerCapacity" => Some(NODE_RESOURCES),
        "Session" => Some(UP),
        "Discovery" => Some(&[]),
        _ => None,
    }
}

/// The bytes of a message in which there cannot be too much of anything, as nearly all have fewer.
pub(super) fn harmless(limits: &Limits) -> usize {
    let least = KINDS.into_iter().map(|kind| kind.limit(0, limits)).min();
    least.unwrap_or(0).saturating_mul(LEAST_BYTES)
}

/// Refuses a message that would take much more memory than the limits allow. One that is malformed is looked at up to the
/// fault, which is as far as it is decoded.
///
/// # Errors
/// When there is far too much of something.
pub(super) fn check(message: &[u8], parts: &[RepeatedField], limits: &Limits) -> Result<(), Refusal> {
    let mut counts = [0; KINDS.len()];
    count(message, parts, &mut counts);
    for (kind, count) in KINDS.into_iter().zip(counts) {
        let limit = kind.limit(message.len(), limits);
        if count > limit {
            return Err(Refusal::Exhausted { what: kind.name().to_owned(), count, limit });
        }
    }
    Ok(())
}

fn count(mut bytes: &[u8], parts: &[RepeatedField], counts: &mut [usize; KINDS.len()]) -> Option<()> {
    while !bytes.is_empty() && !parts.is_empty() {
        let key = varint(&mut bytes)?;
        let length = match key & 7 {
            0 => {
                varint(&mut bytes)?;
                continue;
            }
            1 => 8,
            2 => usize::try_from(varint(&mut bytes)?).ok()?,
            5 => 4,
            // The fields of a group count as if they stood outside of it.
            3 | 4 => continue,
            _ => return None,
        };
        let (field, rest) = bytes.split_at_checked(length)?;
        bytes = rest;
        if key & 7 == 2
            && let Some(part) = parts.iter().find(|part| part.number == key >> 3)
        {
            if let Some(kind) = part.kind {
                counts[kind as usize] += 1;
            }
            count(field, part.within, counts)?;
        }
    }
    Some(())
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..70).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

// === impl PartKind ===

impl PartKind {
    fn limit(self, bytes: usize, limits: &Limits) -> usize {
        match self {
            PartKind::Resource => limits.resources_per_request.saturating_mul(SLACK),
            PartKind::Band => limits.bands_per_resource.saturating_mul(SLACK).max(bytes / BAND_BYTES),
            PartKind::Bucket => limits.buckets_per_resource.saturating_mul(SLACK).max(bytes / BUCKET_BYTES),
            PartKind::Domain => MOST_DOMAINS * SLACK,
            PartKind::Entry => MOST_ENTRIES * SLACK,
        }
    }

    fn name(self) -> &'static str {
        match self {
            PartKind::Resource => "resources in one request",
            PartKind::Band => "priorities in one request",
            PartKind::Bucket => "buckets in one request",
            PartKind::Domain => "domains in one message",
            PartKind::Entry => "entries of domains in one message",
        }
    }
}
