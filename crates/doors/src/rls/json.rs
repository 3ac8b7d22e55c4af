//! The messages of the service as JSON, in the manner of proto3: names in camel case or as they are in the files, numbers of 64
//! bits as text, enums by name, times as `34s`, and what is zero left out.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lessor_envoy_proto::{
    Code, DescriptorStatus, Entry, RateLimitDescriptor, RateLimitOverride, RateLimitRequest,
    RateLimitResponse, RateLimitUnit, Unit,
};
use prost_types::value::Kind;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
#[derive(Default)]
struct RequestJson {
    domain: String,
    descriptors: Vec<DescriptorJson>,
    #[serde(alias = "hits_addend", deserialize_with = "small")]
    hits_addend: u32,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
struct DescriptorJson {
    entries: Vec<EntryJson>,
    limit: Option<LimitJson>,
    #[serde(alias = "hits_addend", deserialize_with = "perhaps_large")]
    hits_addend: Option<u64>,
    #[serde(alias = "is_negative_hits")]
    is_negative_hits: bool,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct EntryJson {
    key: String,
    value: String,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
struct LimitJson {
    #[serde(alias = "requests_per_unit", deserialize_with = "small")]
    requests_per_unit: u32,
    #[serde(deserialize_with = "unit")]
    unit: i32,
    #[serde(alias = "unit_multiplier", deserialize_with = "perhaps_small")]
    unit_multiplier: Option<u32>,
}

/// A number, as it is or as text.
#[derive(Deserialize)]
#[serde(untagged)]
enum Numeral {
    Number(u64),
    Text(String),
}

// === impl Numeral ===

impl Numeral {
    fn value<E: serde::de::Error>(self) -> Result<u64, E> {
        match self {
            Numeral::Number(number) => Ok(number),
            Numeral::Text(text) => text
                .parse()
                .map_err(|_| E::custom(format!("{text:?} is no number; wanted a whole number from 0"))),
        }
    }

    fn small<E: serde::de::Error>(self) -> Result<u32, E> {
        let value = self.value()?;
        u32::try_from(value)
            .map_err(|_| E::custom(format!("{value} is too large; wanted at most {}", u32::MAX)))
    }
}

fn small<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    Numeral::deserialize(from)?.small()
}

fn perhaps_small<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    Option::<Numeral>::deserialize(from)?.map(Numeral::small).transpose()
}

fn perhaps_large<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    Option::<Numeral>::deserialize(from)?.map(Numeral::value).transpose()
}

fn unit<'de, D: Deserializer<'de>>(from: D) -> Result<i32, D::Error> {
    match Numeral::deserialize(from)? {
        Numeral::Number(number) => i32::try_from(number).map_err(serde::de::Error::custom),
        Numeral::Text(name) => RateLimitUnit::from_str_name(&name).map(Into::into).ok_or_else(|| {
            serde::de::Error::custom(format!(
                "unit {name:?} is none; wanted SECOND, MINUTE, HOUR, DAY, MONTH or YEAR"
            ))
        }),
    }
}

/// Reads a request.
///
/// # Errors
/// The fault in it, and its place.
pub fn request(bytes: &[u8]) -> Result<RateLimitRequest, serde_json::Error> {
    let read: RequestJson = serde_json::from_slice(bytes)?;
    let descriptor = |descriptor: DescriptorJson| RateLimitDescriptor {
        entries: descriptor
            .entries
            .into_iter()
            .map(|EntryJson { key, value }| Entry { key, value })
            .collect(),
        limit: descriptor.limit.map(|limit| RateLimitOverride {
            requests_per_unit: limit.requests_per_unit,
            unit: limit.unit,
            unit_multiplier: limit.unit_multiplier,
        }),
        hits_addend: descriptor.hits_addend,
        is_negative_hits: descriptor.is_negative_hits,
    };
    Ok(RateLimitRequest {
        domain: read.domain,
        descriptors: read.descriptors.into_iter().map(descriptor).collect(),
        hits_addend: read.hits_addend,
    })
}

/// A response as text.
#[must_use]
pub fn response(response: &RateLimitResponse) -> String {
    let mut object = Map::new();
    if response.overall_code() != Code::Unknown {
        object.insert("overallCode".into(), response.overall_code().as_str_name().into());
    }
    put(&mut object, "statuses", response.statuses.iter().map(status).collect());
    for (name, headers) in [
        ("responseHeadersToAdd", &response.response_headers_to_add),
        ("requestHeadersToAdd", &response.request_headers_to_add),
    ] {
        put(
            &mut object,
            name,
            headers.iter().map(|header| json!({"key": header.key, "value": header.value})).collect(),
        );
    }
    if !response.raw_body.is_empty() {
        object.insert("rawBody".into(), STANDARD.encode(&response.raw_body).into());
    }
    if let Some(metadata) = &response.dynamic_metadata {
        object.insert("dynamicMetadata".into(), of_struct(metadata));
    }
    Value::Object(object).to_string()
}

/// A message that any JSON object fits in, as that object.
fn of_struct(of: &prost_types::Struct) -> Value {
    Value::Object(of.fields.iter().map(|(name, value)| (name.clone(), of_value(value))).collect())
}

fn of_value(value: &prost_types::Value) -> Value {
    match &value.kind {
        None | Some(Kind::NullValue(_)) => Value::Null,
        Some(Kind::BoolValue(is_true)) => (*is_true).into(),
        Some(Kind::NumberValue(number)) if number.fract() == 0.0 => (*number as i64).into(),
        Some(Kind::NumberValue(number)) => (*number).into(),
        Some(Kind::StringValue(text)) => text.as_str().into(),
        Some(Kind::StructValue(of)) => of_struct(of),
        Some(Kind::ListValue(list)) => list.values.iter().map(of_value).collect(),
    }
}

fn put(object: &mut Map<String, Value>, name: &str, list: Vec<Value>) {
    if !list.is_empty() {
        object.insert(name.to_owned(), Value::Array(list));
    }
}

fn status(status: &DescriptorStatus) -> Value {
    let mut object = Map::new();
    object.insert("code".into(), status.code().as_str_name().into());
    if let Some(limit) = &status.current_limit {
        let mut of = Map::new();
        if !limit.name.is_empty() {
            of.insert("name".into(), limit.name.clone().into());
        }
        if limit.requests_per_unit > 0 {
            of.insert("requestsPerUnit".into(), limit.requests_per_unit.into());
        }
        if limit.unit() != Unit::Unknown {
            of.insert("unit".into(), limit.unit().as_str_name().into());
        }
        if let Some(multiplier) = limit.unit_multiplier {
            of.insert("unitMultiplier".into(), multiplier.into());
        }
        object.insert("currentLimit".into(), Value::Object(of));
    }
    if status.limit_remaining > 0 {
        object.insert("limitRemaining".into(), status.limit_remaining.into());
    }
    if let Some(reset) = &status.duration_until_reset {
        object.insert("durationUntilReset".into(), format!("{}s", reset.seconds).into());
    }
    Value::Object(object)
}
