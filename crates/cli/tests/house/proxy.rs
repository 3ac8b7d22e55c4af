//! A way to etcd that can be frozen: connections stay open, and what is sent arrives when it thaws, or never.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The way.
pub(crate) struct Proxy {
    address: SocketAddr,
    frozen: watch::Sender<bool>,
    task: JoinHandle<()>,
}

// === impl Proxy ===

impl Proxy {
    pub(crate) async fn start(target: SocketAddr) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let frozen = watch::Sender::new(false);
        let follows = frozen.clone();
        let task = tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let Ok(far) = TcpStream::connect(target).await else { continue };
                let (near, far) = (near.into_split(), far.into_split());
                tokio::spawn(pass(near.0, far.1, follows.subscribe()));
                tokio::spawn(pass(far.0, near.1, follows.subscribe()));
            }
        });
        Proxy { address, frozen, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Lets nothing pass any more.
    pub(crate) fn freeze(&self) {
        self.frozen.send_replace(true);
    }

    /// Lets pass what has come meanwhile, and everything after it.
    pub(crate) fn thaw(&self) {
        self.frozen.send_replace(false);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut frozen: watch::Receiver<bool>) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        // An error means that the test is over.
        if frozen.wait_for(|&frozen| !frozen).await.is_err() || to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}
