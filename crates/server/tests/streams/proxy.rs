//! A way to a server that can be cut.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// Passes bytes on in both directions.
pub(crate) struct Proxy {
    address: SocketAddr,
    connections: Arc<Mutex<JoinSet<()>>>,
    door: JoinHandle<()>,
}

// === impl Proxy ===

impl Proxy {
    pub(crate) async fn to(server: SocketAddr) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(Mutex::new(JoinSet::new()));
        let open = Arc::clone(&connections);
        let door = tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                open.lock().unwrap().spawn(async move {
                    let Ok(mut far) = TcpStream::connect(server).await else { return };
                    // However it ends, it has ended.
                    let _ = copy_bidirectional(&mut near, &mut far).await;
                });
            }
        });
        Proxy { address, connections, door }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Cuts every connection; others may be opened.
    pub(crate) fn cut(&self) {
        self.connections.lock().unwrap().abort_all();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.door.abort();
    }
}
