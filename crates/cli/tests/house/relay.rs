//! A way to a server that leads nowhere at first: connections are taken, and nothing is said on them.

use std::net::SocketAddr;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::House;

/// An address that is known before the server behind it is started.
pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    target: watch::Sender<Option<SocketAddr>>,
    task: JoinHandle<()>,
}

// === impl Relay ===

impl Relay {
    pub(crate) async fn start() -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let target = watch::Sender::new(None);
        let follows = target.subscribe();
        let task = tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                tokio::spawn(pass(near, follows.clone()));
            }
        });
        Relay { address, target, task }
    }

    /// Connections go there from here on; those that go elsewhere are broken.
    pub(crate) fn lead_to(&self, house: &House) {
        self.target.send_replace(Some(house.address()));
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pass(mut near: TcpStream, mut target: watch::Receiver<Option<SocketAddr>>) {
    // An error means that the test is over.
    let Ok(to) = target.wait_for(Option::is_some).await.map(|to| to.expect("it is some")) else { return };
    let Ok(mut far) = TcpStream::connect(to).await else { return };
    tokio::select! {
        _ = copy_bidirectional(&mut near, &mut far) => {}
        _ = target.changed() => {}
    }
}
