//! A notice to a node of its place in the tree: the names above it, and whether its own name is another's too.

use super::refusal::Malformed;
use crate::wire;

/// The notice that a grantor gives a node below it, beside grants.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NodeNotice {
    /// The names of the nodes from the root down to the grantor.
    pub path: Vec<String>,
    /// Another process, which neither precedes nor succeeds this one, says that it has the same name.
    pub name_taken: bool,
}

/// Names in a path: no tree is that deep, and a path that grows without end is cut off here.
const LONGEST_PATH: usize = 64;
/// Bytes in a name: servers may be configured for longer ones than they are by default.
const LONGEST_NAME: usize = 4096;

// === impl NodeNotice ===

impl NodeNotice {
    pub(super) fn from_wire(notice: wire::NodeNotice) -> Result<NodeNotice, Malformed> {
        let malformed = |field: &str, found: String| Malformed { field: format!("notice.{field}"), found };
        let wire::NodeNotice { path, name_taken } = notice;
        if path.len() > LONGEST_PATH {
            return Err(malformed("path", format!("has {} names", path.len())));
        }
        if let Some(name) = path.iter().find(|name| name.is_empty() || name.len() > LONGEST_NAME) {
            return Err(malformed("path", format!("has a name of {} bytes", name.len())));
        }
        Ok(NodeNotice { path, name_taken: name_taken.unwrap_or(false) })
    }

    pub(super) fn to_wire(&self) -> wire::NodeNotice {
        wire::NodeNotice { path: self.path.clone(), name_taken: self.name_taken.then_some(true) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_survives_the_wire_and_an_endless_one_does_not() {
        let path = vec!["root".to_owned(), "europe".to_owned()];
        for notice in [NodeNotice::default(), NodeNotice { path, name_taken: true }] {
            assert_eq!(NodeNotice::from_wire(notice.to_wire()), Ok(notice));
        }
        let said = |path: Vec<String>| {
            let notice = NodeNotice { path, name_taken: false };
            NodeNotice::from_wire(notice.to_wire()).unwrap_err().to_string()
        };
        assert_eq!(said(vec!["a".to_owned(); 65]), "malformed answer: notice.path: has 65 names");
        assert_eq!(said(vec![String::new()]), "malformed answer: notice.path: has a name of 0 bytes");
    }
}
