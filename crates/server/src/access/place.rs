//! The place of a rule, by which messages name it.

use std::fmt;

/// The place of a rule in its document.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RulePlace {
    /// The list that it stands in.
    pub section: Section,
    /// The number of rules before it in that list.
    pub index: usize,
    /// The line of the file; absent: it was not read from one.
    pub line: Option<usize>,
}

/// The lists of rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Section {
    /// For nodes.
    Nodes,
    /// For clients.
    Clients,
    /// For operators.
    Operators,
    /// The scope of a token, which is a rule of its own.
    Token,
}

// === impl RulePlace ===

impl RulePlace {
    pub(super) fn at(section: Section, index: usize) -> RulePlace {
        RulePlace { section, index, line: None }
    }
}

impl fmt::Display for RulePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let section = match self.section {
            Section::Nodes => "nodes",
            Section::Clients => "clients",
            Section::Operators => "operators",
            Section::Token => return f.write_str("the token"),
        };
        write!(f, "{section}[{}]", self.index)?;
        self.line.map_or(Ok(()), |line| write!(f, " on line {line}"))
    }
}
