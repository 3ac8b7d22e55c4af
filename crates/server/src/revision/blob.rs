//! Documents as they stand at etcd: compressed, under the digest of their text.

use std::io::{Read, Write};

use flate2::read::GzDecoder;
use flate2::{Compression, GzBuilder};

use super::digest::Digest;
use super::fault::BadRevision;
use super::{MOST_BYTES, RevisionDocument};

/// The most bytes of a document as it stands there: etcd takes one and a half million in a request.
pub const MOST_BLOB_BYTES: usize = 1 << 20;

/// The bytes that stand at `key` for a document of that text.
///
/// # Errors
/// When they are too many.
pub fn pack(key: &str, text: &str) -> Result<Vec<u8>, BadRevision> {
    // The same text gives the same bytes, whenever and by whomever.
    let mut encoder = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    let packed = encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish());
    let packed = packed.expect("memory takes what is written");
    match packed.len() {
        0..=MOST_BLOB_BYTES => Ok(packed),
        bytes => Err(BadRevision::new(
            key,
            format!("a document of {bytes} bytes, compressed"),
            format!("at most {MOST_BLOB_BYTES}: fewer templates, or several documents"),
        )),
    }
}

/// The text of `document`, which stands at `key` as `bytes`.
///
/// # Errors
/// When it is another, damaged, or too large.
pub fn unpack(key: &str, document: &RevisionDocument, bytes: &[u8]) -> Result<String, BadRevision> {
    let wanted = || format!("the document {:?} of {} bytes, compressed", document.name, document.bytes);
    let limit = document.bytes.min(MOST_BYTES);
    let mut text = Vec::new();
    // What claims to be small may be endless.
    let read = GzDecoder::new(bytes).take(limit + 1).read_to_end(&mut text);
    read.map_err(|fault| BadRevision::new(key, format!("{fault}"), wanted()))?;
    if text.len() as u64 > limit {
        return Err(BadRevision::new(key, format!("more than {limit} bytes, unpacked"), wanted()));
    }
    let digest = Digest::of_bytes(&text);
    if digest != document.blob {
        let found = format!("a text with digest {digest}");
        return Err(BadRevision::new(key, found, format!("{}, as the revision says", document.blob)));
    }
    String::from_utf8(text).map_err(|fault| {
        let at = fault.utf8_error().valid_up_to();
        BadRevision::new(key, format!("byte {at} is not UTF-8"), "text")
    })
}
