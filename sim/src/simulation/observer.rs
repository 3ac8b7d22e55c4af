//! Observers of a simulation: who hears of every change of what clients believe.

use lessor_proto::{Amount, Time};

/// A client believes something else from here on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct News {
    /// The client.
    pub client: u32,
    /// The resource.
    pub resource: u16,
    /// The amount that it may use.
    pub amount: Amount,
    /// The amount that all clients together may use, in millionths.
    pub total: u128,
}

/// An observer that wants to hear of every change of what clients believe.
pub trait Observer {
    /// It is `now`, and this has changed.
    fn hear(&mut self, now: Time, news: News);
}

/// Nobody listens.
impl Observer for () {
    fn hear(&mut self, _: Time, _: News) {}
}
