//! Calls over HTTP, from the request that was read to the answer that is written.

use std::time::Duration;

use lessor_client::internals::clock;

use super::figures::DoorKind;
use super::in_force::InForce;
use super::peer::{ConnectedPeer, PeerAddress};
use super::{Asked, Doors};
use crate::check::{self, ProgramAnswer, ProgramRequest, Settlement, WebAnswer};
use crate::claim::{Ask, Leases, Overall};
use crate::grant::GrantedHits;
use crate::malformed::Malformed;
use crate::rules::RuleSet;
use crate::web::WebRequest;

/// The field with which a proxy passes on how it can settle a request.
const GRANT: &str = "x-lessor-grant";
/// The field that says why nothing is leased, where that is the asking peer's own doing.
const REASON: &str = "x-lessor-reason";

// === impl Doors ===

impl Doors {
    /// Answers the check of a proxy.
    pub(super) async fn check(
        &self,
        rules: &InForce,
        set: &RuleSet,
        request: &WebRequest<'_>,
        peer: PeerAddress,
    ) -> Result<WebAnswer, Malformed> {
        let call = check::call(set, request, 1)?;
        let asked = Asked { door: DoorKind::Check, timeout: request.timeout()?, peer };
        let (answer, greedy) = self.decide(rules, &call, asked).await;
        let mut written = check::answer(&call, &answer);
        let grant = check::grant(&call, &answer, clock::now, &self.grants.key);
        written.fields.extend(grant.map(|grant| (GRANT, grant)));
        written.fields.extend(greedy.map(|greedy| (REASON, greedy.to_string())));
        Ok(written)
    }

    /// Answers the call of a program: with all hits that it names or, where it takes fewer, as many as there are.
    pub(super) async fn program(
        &self,
        rules: &InForce,
        set: &RuleSet,
        request: &ProgramRequest,
        peer: &ConnectedPeer,
    ) -> Result<(u16, ProgramAnswer), Malformed> {
        let mut hits = request.hits;
        let mut call = request.call(set, hits, peer.shown())?;
        let asked = Asked { door: DoorKind::Program, timeout: None, peer: peer.address };
        let (mut answer, _) = self.decide(rules, &call, asked).await;
        let fewer = request.min.filter(|&min| min < hits && !request.look && !call.claims.is_empty());
        if let (Overall::Refused, Some(min)) = (answer.overall, fewer) {
            let left =
                call.claims.iter().map(|claim| rules.at_hand(claim.limit, &claim.key)).min().unwrap_or(0);
            hits = u64::from(left).min(hits).max(min).max(1);
            call = request.call(set, hits, peer.shown())?;
            let asked = Asked { timeout: Some(Duration::ZERO), ..asked };
            answer = self.decide(rules, &call, asked).await.0;
        }
        let grant = check::grant(&call, &answer, clock::now, &self.grants.key);
        let granted = if request.look { 0 } else { hits };
        Ok(check::program_answer(&call, &answer, granted, grant))
    }

    /// Settles a grant. Returns whether it is one that can be.
    pub(super) fn settle(&self, settlement: &Settlement) -> bool {
        let now = clock::now();
        let Some((grant, seal)) = self.grants.key.open(&settlement.grant, now) else { return false };
        if !self.grants.is_first(seal, now) {
            return false;
        }
        let rules = self.in_force.load_full();
        let cost = u32::try_from(settlement.cost).unwrap_or(u32::MAX);
        for GrantedHits { limit, key, hits } in &grant.hits {
            // Of rules that are no longer in force nothing is known.
            let Some(limit) = rules.marked(*limit) else { continue };
            let ask = |hits| Ask { limit, key, hits, is_confirmed: false };
            match cost.checked_sub(*hits) {
                Some(0) => {}
                Some(more) => rules.charge(&ask(more.min(limit.units))),
                // A hit that does not count any more gives nothing back: its unit is free, and another's would be.
                None if now.since(grant.made) >= limit.window.length() => {}
                None => rules.give_back(&ask(*hits - cost)),
            }
        }
        true
    }
}
