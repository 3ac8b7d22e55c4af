//! Streams: what is sent on one arrives in order, up to a moment after which nothing does.

use lessor_proto::{Epoch, Features, Time};
use lessor_server::node::Peer;

use crate::actor::Sender;

/// All streams of the simulation.
#[derive(Default, Debug)]
pub(crate) struct Streams {
    slots: Vec<Stream>,
    free: Vec<u32>,
}

/// One stream, if it is still there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StreamRef {
    index: u32,
    generation: u32,
}

/// A stream from a holder to a task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    generation: u32,
    pub(crate) holder: Sender,
    /// The id that the holder has for it.
    pub(crate) id: u64,
    pub(crate) task: u32,
    /// The kinds of message that the holder knows.
    pub(crate) features: Features,
    /// The epoch of the task that it is connected to, and how that calls it.
    pub(crate) peer: Option<(Epoch, Peer)>,
    pub(crate) up: StreamWay,
    pub(crate) down: StreamWay,
    /// The holder reads nothing until then.
    pub(crate) stalled: Time,
    pub(crate) holder_open: bool,
    pub(crate) node_open: bool,
}

/// One of the two ways of a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamWay {
    /// Nothing arrives before what was sent before it.
    pub(crate) clear: Time,
    /// The time after which no message arrives.
    pub(crate) cut: Time,
}

// === impl StreamWay ===

impl StreamWay {
    const OPEN: StreamWay = StreamWay { clear: Time::ZERO, cut: Time::MAX };
}

// === impl Streams ===

impl Streams {
    pub(crate) fn open(&mut self, holder: Sender, id: u64, task: u32, features: Features) -> StreamRef {
        let mut stream = Stream {
            generation: 0,
            holder,
            id,
            task,
            features,
            peer: None,
            up: StreamWay::OPEN,
            down: StreamWay::OPEN,
            stalled: Time::ZERO,
            holder_open: true,
            node_open: true,
        };
        match self.free.pop() {
            Some(index) => {
                let slot = &mut self.slots[index as usize];
                stream.generation = slot.generation;
                *slot = stream;
                StreamRef { index, generation: stream.generation }
            }
            None => {
                self.slots.push(stream);
                StreamRef { index: self.slots.len() as u32 - 1, generation: 0 }
            }
        }
    }

    pub(crate) fn get(&self, of: StreamRef) -> Option<&Stream> {
        self.slots.get(of.index as usize).filter(|stream| stream.generation == of.generation)
    }

    pub(crate) fn get_mut(&mut self, of: StreamRef) -> Option<&mut Stream> {
        self.slots.get_mut(of.index as usize).filter(|stream| stream.generation == of.generation)
    }

    /// The holder has no more to do with it.
    pub(crate) fn holder_left(&mut self, of: StreamRef) {
        if let Some(stream) = self.get_mut(of) {
            stream.holder_open = false;
            self.sweep(of);
        }
    }

    /// The node has no more to do with it.
    pub(crate) fn node_left(&mut self, of: StreamRef) {
        if let Some(stream) = self.get_mut(of) {
            stream.node_open = false;
            self.sweep(of);
        }
    }

    /// Those in use by both ends, in the order of their slots.
    pub(crate) fn live(&self) -> impl Iterator<Item = StreamRef> {
        let live = self.slots.iter().enumerate().filter(|(_, stream)| stream.holder_open && stream.node_open);
        live.map(|(index, stream)| StreamRef { index: index as u32, generation: stream.generation })
    }

    fn sweep(&mut self, of: StreamRef) {
        let stream = &mut self.slots[of.index as usize];
        if !stream.holder_open && !stream.node_open {
            stream.generation += 1;
            self.free.push(of.index);
        }
    }
}
