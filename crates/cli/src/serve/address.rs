//! Addresses in the flags of a server: its own, and those of others.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use hyper::http::uri::Authority;

use crate::http::is_whole;

/// An address to listen at. A name may have several; the first one is bound.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    let mut addresses = text.to_socket_addrs().map_err(|error| format!("{error}; wanted HOST:PORT"))?;
    addresses.next().ok_or_else(|| "it has no address".to_owned())
}

/// The address of another server. Its name need not have one yet.
pub(super) fn server(text: &str) -> Result<Arc<str>, String> {
    match text.parse::<Authority>() {
        Ok(authority) if is_whole(&authority) => Ok(text.into()),
        _ => Err("wanted HOST:PORT".to_owned()),
    }
}
