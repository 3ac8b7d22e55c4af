//! TLS over sockets of loopback: who is let in, who is believed, and what is replaced while a server runs.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod handshakes;
mod house;
mod load;
mod pki;
mod redirects;
