//! Deadlines of requests: for how long whoever sends one still wants its answer.

use std::time::Duration;

use http::{HeaderName, HeaderValue, Request};

/// The field in which gRPC says it.
const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");
/// Digits that it may have.
const MOST_DIGITS: usize = 8;

/// The deadline of a request that is about to wait. It may be a closure: `|request: &Q| Some(Duration::from_secs(1))`.
pub trait Deadline<Q> {
    /// The time that is left; `None` for a request without a deadline.
    fn left(&self, request: &Q) -> Option<Duration>;

    /// Writes down what is left after the wait, so that whoever is asked knows it. A request that carries no deadline of its
    /// own stays as it is.
    fn set_left(&self, request: &mut Q, left: Duration) {
        let _ = (request, left);
    }
}

/// The deadline of requests that have none.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct NoDeadline;

/// The deadline in the field `grpc-timeout`, as `tonic::Request::set_timeout` sets it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct GrpcTimeout;

// === impl Deadline ===

impl<Q> Deadline<Q> for NoDeadline {
    fn left(&self, _: &Q) -> Option<Duration> {
        None
    }
}

impl<B> Deadline<Request<B>> for GrpcTimeout {
    fn left(&self, request: &Request<B>) -> Option<Duration> {
        parse(request.headers().get(GRPC_TIMEOUT)?.to_str().ok()?)
    }

    fn set_left(&self, request: &mut Request<B>, left: Duration) {
        request.headers_mut().insert(GRPC_TIMEOUT, written(left));
    }
}

impl<Q, F: Fn(&Q) -> Option<Duration>> Deadline<Q> for F {
    fn left(&self, request: &Q) -> Option<Duration> {
        self(request)
    }
}

/// A number of at most eight digits, and its unit.
fn parse(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let is_number = number.len() <= MOST_DIGITS && number.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = number.parse().ok().filter(|_| is_number)?;
    match unit {
        "H" => Some(Duration::from_secs(number * 3_600)),
        "M" => Some(Duration::from_secs(number * 60)),
        "S" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_millis(number)),
        "u" => Some(Duration::from_micros(number)),
        "n" => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

/// In the finest unit in which it has so few digits, rounded down.
fn written(left: Duration) -> HeaderValue {
    let most = 10_u128.pow(MOST_DIGITS as u32);
    let seconds = u128::from(left.as_secs());
    let units = [
        (left.as_nanos(), 'n'),
        (left.as_micros(), 'u'),
        (left.as_millis(), 'm'),
        (seconds, 'S'),
        (seconds / 60, 'M'),
    ];
    let (number, unit) = units.into_iter().find(|&(number, _)| number < most).unwrap_or((most - 1, 'H'));
    HeaderValue::from_str(&format!("{number}{unit}")).unwrap_or(HeaderValue::from_static("0n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_of_grpc_is_a_number_and_its_unit() {
        for (text, left) in [
            ("1H", Some(Duration::from_secs(3_600))),
            ("2M", Some(Duration::from_secs(120))),
            ("3S", Some(Duration::from_secs(3))),
            ("00000004m", Some(Duration::from_millis(4))),
            ("5u", Some(Duration::from_micros(5))),
            ("99999999n", Some(Duration::from_nanos(99_999_999))),
            ("", None),
            ("S", None),
            ("1", None),
            ("-1S", None),
            ("+1S", None),
            ("1.5S", None),
            ("100000000n", None),
            ("1 S", None),
            ("1d", None),
            ("1\u{b5}", None),
        ] {
            assert_eq!(parse(text), left, "{text}");
        }
    }

    #[test]
    fn what_is_left_is_written_as_finely_as_it_can_be() {
        for (left, text) in [
            (Duration::ZERO, "0n"),
            (Duration::from_millis(99), "99000000n"),
            (Duration::from_millis(100), "100000u"),
            (Duration::from_millis(123_456), "123456m"),
            (Duration::from_secs(100_000), "100000S"),
            (Duration::from_secs(100_000_059), "1666667M"),
            (Duration::MAX, "99999999H"),
        ] {
            assert_eq!(written(left), text, "{left:?}");
            assert!(parse(text).is_some_and(|read| read <= left), "{text}");
        }
    }
}
