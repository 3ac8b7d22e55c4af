//! Metadata of an answer, for what stands behind the rate limit filter in Envoy: its access log, its routes, its other filters.
//!
//! Envoy has it under `envoy.filters.http.ratelimit`, and here it is all below `lessor`.

use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value};

use crate::answer::{Fields, seconds};

/// The metadata of an answer: the limit that is nearest to being reached, what is left of it, and which limits refuse.
pub(super) fn metadata(fields: &Fields<'_>) -> Option<Struct> {
    let nearest = fields.nearest()?;
    let (limit, standing) = (nearest.claim.limit, nearest.answered.standing);
    let violated = fields.violated().iter().map(|name| text(name)).collect();
    let mut said = vec![
        ("policy", text(&nearest.name)),
        ("kind", text(limit.kind.word())),
        ("limit", number(limit.units.into())),
        ("window", number(limit.window.length().as_secs())),
        ("remaining", number(standing.remaining.into())),
        ("reset", number(seconds(standing.reset))),
        ("violated", value(Kind::ListValue(ListValue { values: violated }))),
    ];
    said.extend(fields.retry_after().map(|after| ("retry_after", number(after))));
    Some(object([("lessor", value(Kind::StructValue(object(said))))]))
}

fn object(fields: impl IntoIterator<Item = (&'static str, Value)>) -> Struct {
    Struct { fields: fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect() }
}

fn text(text: &str) -> Value {
    value(Kind::StringValue(text.to_owned()))
}

fn number(number: u64) -> Value {
    value(Kind::NumberValue(number as f64))
}

fn value(kind: Kind) -> Value {
    Value { kind: Some(kind) }
}
