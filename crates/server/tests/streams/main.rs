//! Streams over real sockets on loopback: what a server does with whatever comes up them, and our client at the other end.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::float_cmp, reason = "what is given comes out of the books, which are exact")]

mod burst;
mod clients;
mod domains;
mod house;
mod proxy;
mod raw;
mod readers;
