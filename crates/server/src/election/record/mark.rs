//! The value of the key of a mark.

use lessor_client::internals::holding::Proof;
use lessor_proto::message::Order;
use lessor_proto::{Amount, Epoch};

use super::fault::{BadRecord, bad};
use super::words::{after, if_there, number};
use crate::election::call::Stored;
use crate::repository::Kind;

/// The most that may be out of a resource.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(in crate::election) struct Mark {
    pub(in crate::election) amount: Amount,
    /// Absent where whoever wrote it did not say.
    pub(in crate::election) kind: Option<Kind>,
    pub(in crate::election) rest: Option<Rest>,
    pub(in crate::election) proof: Option<Proof>,
}

/// The part of a mark that was left from before the leader of an epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::election) struct Rest {
    pub(in crate::election) amount: Amount,
    pub(in crate::election) epoch: Epoch,
}

const MARK: &str = "1 millionths _ [kind rate|gauge] [rest _ in_epoch _] [of_epoch _ of_seq _ token _] (numbers for _, of the token hex or \"-\")";

// === impl Mark ===

impl Mark {
    pub(in crate::election) fn encode(&self) -> String {
        let mut value = format!("1 millionths {}", self.amount.as_micros());
        match self.kind {
            Some(Kind::Rate) => value += " kind rate",
            Some(Kind::Gauge) => value += " kind gauge",
            None => {}
        }
        if let Some(Rest { amount, epoch }) = self.rest {
            value += &format!(" rest {} in_epoch {epoch}", amount.as_micros());
        }
        if let Some(Proof { order, token }) = &self.proof {
            value += &format!(" of_epoch {} of_seq {} token ", order.epoch, order.seq);
            match token.is_empty() {
                true => value.push('-'),
                false => value.extend(token.iter().map(|byte| format!("{byte:02x}"))),
            }
        }
        value
    }

    pub(super) fn decode(stored: &Stored) -> Result<Mark, BadRecord> {
        let read = || {
            let mut words = std::str::from_utf8(&stored.value).ok()?.split_whitespace();
            (words.next()? == "1").then_some(())?;
            let amount = Amount::from_micros(number(&mut words, "millionths")?);
            let mut kind = None;
            if words.clone().next() == Some("kind") {
                kind = Some(match after(&mut words, "kind")? {
                    "rate" => Kind::Rate,
                    "gauge" => Kind::Gauge,
                    _ => return None,
                });
            }
            let mut rest = None;
            if let Some(left) = if_there(&mut words, "rest")? {
                let epoch = Epoch(number(&mut words, "in_epoch")?);
                rest = Some(Rest { amount: Amount::from_micros(left), epoch });
            }
            if words.clone().next().is_none() {
                return Some(Mark { amount, kind, rest, proof: None });
            }
            let order =
                Order { epoch: Epoch(number(&mut words, "of_epoch")?), seq: number(&mut words, "of_seq")? };
            let token = bytes(after(&mut words, "token")?)?.into();
            let proof = Some(Proof { order, token });
            words.next().is_none().then_some(Mark { amount, kind, rest, proof })
        };
        read().ok_or_else(|| bad(stored, MARK))
    }
}

/// The bytes of hexadecimal digits; a dash stands for none.
fn bytes(digits: &str) -> Option<Vec<u8>> {
    if digits == "-" {
        return Some(Vec::new());
    }
    let byte = |pair: &[u8]| {
        let text = std::str::from_utf8(pair).ok().filter(|_| pair.len() == 2)?;
        u8::from_str_radix(text, 16).ok()
    };
    digits.as_bytes().chunks(2).map(byte).collect()
}
