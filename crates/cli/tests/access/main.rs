//! Access, as strangers, holders of tokens and operators find it, over sockets.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::float_cmp, reason = "what is given comes out of the books, which are exact")]

#[path = "../house/mod.rs"]
mod house;

mod calls;
mod clients;
mod commands;
mod gate;
mod pages;
mod streams;
