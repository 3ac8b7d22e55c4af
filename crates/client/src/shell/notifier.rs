//! Wakers by which the mind sends commands to the driver.

use std::sync::Arc;
use std::task::{Wake, Waker};

use lessor_proto::ResourceId;
use tokio::sync::mpsc;

use super::command::Command;

/// Sends the driver a command about one opening of a resource each time that it is woken. It does not keep the driver alive.
#[derive(Debug)]
pub(super) struct Notifier {
    commands: mpsc::WeakUnboundedSender<Command>,
    resource: ResourceId,
    generation: u64,
    command: fn(ResourceId, u64) -> Command,
}

// === impl Notifier ===

impl Notifier {
    /// A waker that sends `command`, made of the resource and its generation.
    pub(super) fn waker(
        commands: &mpsc::UnboundedSender<Command>,
        resource: &ResourceId,
        generation: u64,
        command: fn(ResourceId, u64) -> Command,
    ) -> Waker {
        let (commands, resource) = (commands.downgrade(), resource.clone());
        Waker::from(Arc::new(Notifier { commands, resource, generation, command }))
    }
}

impl Wake for Notifier {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(commands) = self.commands.upgrade() {
            // A closed client asks for nothing.
            let _ = commands.send((self.command)(self.resource.clone(), self.generation));
        }
    }
}
