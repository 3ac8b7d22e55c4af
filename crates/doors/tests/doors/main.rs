//! Doors over sockets, with a server that leases what their rules ask for.

mod check;
mod house;
mod service;
mod templates;
