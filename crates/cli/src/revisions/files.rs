//! The documents of a push: files, each for some nodes, checked as servers check them.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use lessor_server::repository::Repository;
use lessor_server::revision::RevisionDocument;
use lessor_server::shell::source::{self, DocumentText};

/// A file, and the nodes that it is for.
#[derive(Clone, Debug)]
pub(crate) struct ForNodes {
    nodes: String,
    file: PathBuf,
}

// === impl ForNodes ===

impl ForNodes {
    /// `GLOB=FILE`.
    pub(crate) fn parse(text: &str) -> Result<ForNodes, String> {
        match text.split_once('=') {
            Some((nodes, file)) if !nodes.is_empty() && !file.is_empty() => {
                Ok(ForNodes { nodes: nodes.to_owned(), file: file.into() })
            }
            _ => Err("wanted GLOB=FILE, as paris=leaf.yaml or '*=leaf.yaml'".to_owned()),
        }
    }

    /// A file for all nodes.
    pub(crate) fn all(file: PathBuf) -> ForNodes {
        ForNodes { nodes: "*".to_owned(), file }
    }

    /// The text of the file.
    pub(crate) fn read(&self) -> anyhow::Result<DocumentText> {
        let name = self.file.file_name().unwrap_or(self.file.as_os_str()).to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&self.file)
            .with_context(|| format!("cannot read {}", self.file.display()))?;
        Ok((RevisionDocument::new(&self.nodes, name, &text), text))
    }
}

/// Says all that is wrong with some documents that are to be pushed.
pub(super) fn check(texts: &[DocumentText]) -> anyhow::Result<()> {
    match faults_of(texts, check_version) {
        0 => Ok(()),
        1 => bail!("1 fault; nothing was pushed"),
        count => bail!("{count} faults; nothing was pushed"),
    }
}

/// Says all that is wrong with some documents, and what `other` finds in those that can be read. Returns the number of faults.
pub(crate) fn faults_of(
    texts: &[DocumentText],
    other: impl Fn(&RevisionDocument, &Repository) -> usize,
) -> usize {
    let mut count = 0;
    for (document, text) in texts {
        match source::parse(&document.name, text) {
            Ok(repository) => count += other(document, &repository),
            Err(faults) => {
                eprintln!("{faults}");
                count += faults.count();
            }
        }
    }
    count
}

fn check_version(document: &RevisionDocument, repository: &Repository) -> usize {
    let version = repository.version();
    if version == 0 {
        return 0;
    }
    eprintln!(
        "{}: version: {version}; wanted none: revisions at etcd are numbered; take the line out",
        document.name
    );
    1
}

/// Writes a file that is not there yet.
pub(super) fn write_new(path: &Path, text: &str) -> anyhow::Result<()> {
    use std::io::Write;
    let mut file =
        std::fs::File::create_new(path).with_context(|| format!("cannot write {}", path.display()))?;
    file.write_all(text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))
}
