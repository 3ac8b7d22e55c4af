//! Bearer tokens: identities without certificates, sealed by whoever has the key.
//!
//! A token is `lessor1.` and base64 of a [`wire::Passport`] with its seal behind it: BLAKE3 under a key that is derived from
//! the one in the file, so that a lease's token is never taken for one of these. Anybody can read it, and nobody can change it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use lessor_proto::message::HolderKind;
use lessor_proto::wire;
use lessor_proto::{ClientId, ResourceId};
use prost::Message as _;

use super::denial::Denial;
use super::pattern::NamePattern;
use super::place::{RulePlace, Section};
use super::rights::{Allowance, Rights};
use super::role::Role;
use super::rule::{resource_fits, role_fits};
use crate::repository::Glob;
use crate::token::{Key, TokenKeys};

/// The beginning of every token, by which it is known when it turns up where it should not.
pub const PREFIX: &str = "lessor1.";
/// The most bytes that a token has.
pub const MOST_BYTES: usize = 8 << 10;
/// Bytes of the seal.
const SEAL: usize = 32;
/// The use of the keys that are derived for these seals.
const CONTEXT: &str = "lessor 2026-11-24 bearer tokens";

/// The content of a bearer token.
#[derive(Clone, PartialEq, Debug)]
pub struct Passport {
    /// The identity of whoever bears it.
    pub identity: String,
    /// The date at which it was made, in seconds since 1970.
    pub made: u64,
    /// The date at which it ends, in seconds since 1970.
    pub ends: u64,
    /// The ids under which its bearer may hold leases as a client; absent: it may not.
    pub client_id: Option<NamePattern>,
    /// The names that its bearer may have as a node; absent: it may not be one.
    pub node: Option<NamePattern>,
    /// The resources that it is for; absent: all.
    pub resources: Option<Vec<Glob>>,
    /// The roles of its bearer as an operator.
    pub roles: Vec<Role>,
}

/// The seal's key.
struct SealKey([u8; 32]);

// === impl Passport ===

impl Passport {
    /// The token that says this, sealed with the key in force.
    #[must_use]
    pub fn seal(&self, keys: &TokenKeys) -> String {
        let mut bytes = self.to_wire().encode_to_vec();
        let seal = SealKey::of(&keys.current).seal(&bytes);
        bytes.extend_from_slice(&seal);
        format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes))
    }

    /// The content of `token`, if one of the keys has sealed it and it has not ended at the date `now`, in seconds since
    /// 1970.
    ///
    /// # Errors
    /// When it is malformed, sealed by somebody else, or over.
    pub fn open(token: &str, keys: &TokenKeys, now: u64) -> Result<Passport, Denial> {
        let (content, seal) = taken_apart(token)?;
        let mut keys = std::iter::once(&keys.current).chain(&keys.previous);
        let fits = |key: &Key| constant_time_eq::constant_time_eq_32(&SealKey::of(key).seal(&content), &seal);
        if !keys.any(fits) {
            return Err(Denial::token(
                "the token's seal does not fit; wanted one made with the key of --auth-key",
            ));
        }
        let passport = Passport::from_bytes(&content)?;
        if now >= passport.ends {
            let (identity, ends) = (&passport.identity, passport.ends);
            return Err(Denial::token(format!(
                "the token of {identity:?} ended at {ends}, and now is {now}, in seconds since 1970"
            )));
        }
        Ok(passport)
    }

    /// The content of `token`, whoever has sealed it: for people to look at, and for nothing else.
    ///
    /// # Errors
    /// When it is malformed.
    pub fn read(token: &str) -> Result<Passport, Denial> {
        Passport::from_bytes(&taken_apart(token)?.0)
    }

    /// The rights of its bearer as `holder`.
    pub(super) fn rights(&self, kind: HolderKind, holder: &ClientId) -> Result<Rights, Denial> {
        let place = RulePlace::at(Section::Token, 0);
        let pattern = match kind {
            HolderKind::Client => self.client_id.as_ref(),
            HolderKind::Node => self.node.as_ref(),
        };
        match pattern {
            Some(pattern) if pattern.fits(&self.identity, holder.as_str()) => {}
            Some(pattern) => {
                return Err(Denial::holder(place, &self.identity, holder, &pattern.to_string()));
            }
            None => return Err(Denial::holder(place, &self.identity, holder, "an operator, and no holder")),
        }
        Ok(match kind {
            HolderKind::Client => {
                let resources = self.resources.as_ref().map(|globs| globs.as_slice().into());
                Rights::of_client(place, &self.identity, resources, Allowance::default())
            }
            HolderKind::Node => Rights::of_node(place, &self.identity, None, None),
        })
    }

    pub(super) fn operator(&self, role: Role, resource: Option<&ResourceId>) -> Result<(), Denial> {
        let place = RulePlace::at(Section::Token, 0);
        role_fits(place, &self.identity, &self.roles, role)?;
        resource_fits(place, &self.identity, self.resources.as_deref(), resource)
    }

    fn to_wire(&self) -> wire::Passport {
        let globs = self.resources.iter().flatten();
        wire::Passport {
            identity: Some(self.identity.clone()),
            made: Some(self.made),
            ends: Some(self.ends),
            client_id: self.client_id.as_ref().map(ToString::to_string),
            node: self.node.as_ref().map(ToString::to_string),
            resource: globs.map(ToString::to_string).collect(),
            role: self.roles.iter().map(ToString::to_string).collect(),
        }
    }

    fn from_bytes(content: &[u8]) -> Result<Passport, Denial> {
        let bad = |fault: &dyn std::fmt::Display| Denial::token(format!("the token is malformed: {fault}"));
        let said = wire::Passport::decode(content).map_err(|error| bad(&error))?;
        let pattern = |text: Option<String>| {
            text.map(|text| NamePattern::new(&text)).transpose().map_err(|fault| bad(&fault))
        };
        let globs: Result<Vec<_>, _> = said.resource.iter().map(|text| Glob::new(text)).collect();
        let globs = globs.map_err(|fault| bad(&fault))?;
        let role =
            |name: &String| Role::named(name).ok_or_else(|| bad(&format!("there is no role {name:?}")));
        Ok(Passport {
            identity: said
                .identity
                .filter(|text| !text.is_empty())
                .ok_or_else(|| bad(&"it has no identity"))?,
            made: said.made.unwrap_or(0),
            ends: said.ends.unwrap_or(0),
            client_id: pattern(said.client_id)?,
            node: pattern(said.node)?,
            resources: (!globs.is_empty()).then_some(globs),
            roles: said.role.iter().map(role).collect::<Result<_, _>>()?,
        })
    }
}

/// The content of a token, and its seal.
fn taken_apart(token: &str) -> Result<(Vec<u8>, [u8; SEAL]), Denial> {
    let bad =
        |found: &str| Denial::token(format!("the token {found}; wanted one as `lessor token new` prints it"));
    if token.len() > MOST_BYTES {
        return Err(bad(&format!("has {} bytes, more than {MOST_BYTES}", token.len())));
    }
    let text = token.strip_prefix(PREFIX).ok_or_else(|| bad("does not begin with lessor1."))?;
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| bad("is not base64"))?;
    let (content, seal) = bytes.split_last_chunk::<SEAL>().ok_or_else(|| bad("is cut off"))?;
    Ok((content.to_vec(), *seal))
}

// === impl SealKey ===

impl SealKey {
    fn of(key: &Key) -> SealKey {
        SealKey(key.derived(CONTEXT))
    }

    fn seal(&self, content: &[u8]) -> [u8; SEAL] {
        *blake3::keyed_hash(&self.0, content).as_bytes()
    }
}
