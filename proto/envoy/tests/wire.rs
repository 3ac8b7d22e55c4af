//! The bytes on the wire, written by hand from the numbers that Envoy has, against the messages that are made of our files.

use lessor_envoy_proto::{
    Code, DescriptorStatus, Entry, HeaderValue, RateLimit, RateLimitDescriptor, RateLimitOverride,
    RateLimitRequest, RateLimitResponse, RateLimitUnit, Unit,
};
use prost::Message;

/// A field whose value is a number.
fn number(field: u8, value: u64) -> Vec<u8> {
    let mut bytes = vec![field << 3];
    let mut rest = value;
    while rest > 0x7f {
        bytes.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
    bytes
}

/// A field whose value has a length.
fn block(field: u8, value: impl AsRef<[u8]>) -> Vec<u8> {
    let value = value.as_ref();
    let length = u8::try_from(value.len()).expect("a short value");
    assert!(length < 0x80, "a length of one byte");
    [&[field << 3 | 2, length], value].concat()
}

#[test]
fn a_request_is_read_from_the_bytes_that_envoy_sends() {
    let entry = |key: &str, value: &str| block(1, [block(1, key), block(2, value)].concat());
    let brought = [number(1, 60), number(2, 2), block(3, number(1, 30))].concat();
    let first = [entry("user", "u"), entry("path", "/x"), block(2, brought)].concat();
    let second = [entry("k", ""), block(3, number(1, 1 << 63)), number(4, 1)].concat();
    let bytes = [block(1, "edge"), block(2, first), block(2, second), number(3, 7)].concat();
    let of = |key: &str, value: &str| Entry { key: key.to_owned(), value: value.to_owned() };
    let brought = RateLimitOverride {
        requests_per_unit: 60,
        unit: RateLimitUnit::Minute.into(),
        unit_multiplier: Some(30),
    };
    let wanted = RateLimitRequest {
        domain: "edge".to_owned(),
        descriptors: vec![
            RateLimitDescriptor {
                entries: vec![of("user", "u"), of("path", "/x")],
                limit: Some(brought),
                ..RateLimitDescriptor::default()
            },
            RateLimitDescriptor {
                entries: vec![of("k", "")],
                hits_addend: Some(1 << 63),
                is_negative_hits: true,
                ..RateLimitDescriptor::default()
            },
        ],
        hits_addend: 7,
    };
    assert_eq!(RateLimitRequest::decode(&*bytes).expect("a message"), wanted);
}

#[test]
fn a_response_is_written_as_the_bytes_that_envoy_reads() {
    let status = DescriptorStatus {
        code: Code::OverLimit.into(),
        current_limit: Some(RateLimit {
            name: "n".to_owned(),
            requests_per_unit: 5,
            unit: Unit::Week.into(),
            unit_multiplier: Some(2),
        }),
        limit_remaining: 9,
        duration_until_reset: Some(prost_types::Duration { seconds: 3, nanos: 0 }),
    };
    let header =
        |key: &str| HeaderValue { key: key.to_owned(), value: "1".to_owned(), raw_value: Vec::new() };
    let response = RateLimitResponse {
        overall_code: Code::OverLimit.into(),
        statuses: vec![status],
        response_headers_to_add: vec![header("a")],
        request_headers_to_add: vec![header("b")],
        raw_body: b"{}".to_vec(),
        dynamic_metadata: None,
    };
    let limit = [number(1, 5), number(2, 7), block(3, "n"), block(4, number(1, 2))].concat();
    let status = [number(1, 2), block(2, limit), number(3, 9), block(4, number(1, 3))].concat();
    let header = |key: &str| [block(1, key), block(2, "1")].concat();
    let bytes =
        [number(1, 2), block(2, status), block(3, header("a")), block(4, header("b")), block(5, "{}")]
            .concat();
    // Fields may stand in any order: it is what is read from the bytes that counts, and nothing else is there.
    assert_eq!(RateLimitResponse::decode(&*bytes).expect("a message"), response);
    assert_eq!(response.encode_to_vec().len(), bytes.len());
}
