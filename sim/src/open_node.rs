//! The node of a leader with its books laid open: they are read once, and again when something may have changed them.

use std::cell::OnceCell;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use lessor_proto::ResourceId;
use lessor_server::node::{Books, Node};

/// A node, and the books that were read since anybody could change it.
#[derive(Debug)]
pub(crate) struct OpenNode {
    node: Node,
    /// By the number of the resource. The children stand in the order of their names.
    books: Vec<OnceCell<Option<Arc<Books>>>>,
}

// === impl OpenNode ===

impl OpenNode {
    /// A node whose books of so many resources may be read.
    pub(crate) fn new(node: Node, resources: usize) -> OpenNode {
        OpenNode { node, books: vec![OnceCell::new(); resources] }
    }

    /// The books of the resource `id`, whose number is `index`.
    pub(crate) fn read(&self, index: u16, id: &ResourceId) -> Option<Arc<Books>> {
        let read = || {
            let mut books = self.node.charges(id)?;
            books.children.sort_by(|one, other| one.holder.cmp(&other.holder));
            Some(Arc::new(books))
        };
        self.books[usize::from(index)].get_or_init(read).clone()
    }

    /// Forgets what was read: the books of all large nodes together take much room.
    pub(crate) fn forget_books(&mut self) {
        for books in &mut self.books {
            books.take();
        }
    }
}

impl Deref for OpenNode {
    type Target = Node;

    fn deref(&self) -> &Node {
        &self.node
    }
}

impl DerefMut for OpenNode {
    fn deref_mut(&mut self) -> &mut Node {
        self.forget_books();
        &mut self.node
    }
}
