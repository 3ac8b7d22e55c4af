//! `lessor promote`: the second limit that is tried beside a resource becomes the one in force, in the next revision.

use anyhow::{Context, bail};
use clap::Args;
use lessor_client::ResourceId;
use lessor_server::revision::RevisionDocument;
use lessor_server::shell::source::{self, DocumentText};

use super::change::{newest, replaced};
use super::files;
use super::proposal::{Proposal, ProposalFlags};
use crate::office::OfficeFlags;

/// Pushes the second limit of a template as the one in force, as `lessor set` does: in each document in which the resource follows
/// a template with `beside`, `capacity` becomes that of `beside`, which goes; comments and everything else stay as they are
#[derive(Debug, Args)]
pub(crate) struct Promote {
    /// The resource, or the glob of its template as it stands there
    resource: String,
    /// The document in which alone it is promoted, by the nodes that this is for; absent: every one that has it
    #[arg(long = "for", value_name = "GLOB")]
    nodes: Option<String>,
    #[command(flatten)]
    flags: ProposalFlags,
    #[command(flatten)]
    office: OfficeFlags,
}

/// The field of the second limit.
const BESIDE: &str = "beside";
/// The field of its capacity.
const TRIED: &str = "beside.capacity";

// === impl Promote ===

impl Promote {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let place = self.office.open()?;
        let newest = newest(&place).await?;
        let mut texts = place.texts_of(newest).await?;
        self.promote(&mut texts)?;
        files::check(&texts)?;
        let proposal = Proposal {
            base: Some(newest),
            ..Proposal::new(&place, &self.flags, self.office.author(), texts)
        };
        proposal.push().await
    }

    fn promote(&self, texts: &mut [DocumentText]) -> anyhow::Result<()> {
        let mut count = 0;
        for (document, text) in texts {
            let is_wanted = self.nodes.as_ref().is_none_or(|nodes| *nodes == document.nodes);
            let Some(glob) = tried_by(text, &self.resource).filter(|_| is_wanted) else { continue };
            *text = promoted(text, &glob)?;
            *document = RevisionDocument::new(&document.nodes, &document.name, text);
            count += 1;
        }
        match count {
            0 => bail!("no second limit is tried beside {:?}; wanted a template with beside", self.resource),
            _ => Ok(()),
        }
    }
}

/// The glob of the template that a resource follows, or whose glob that is, if a second limit is tried by it.
fn tried_by(text: &str, resource: &str) -> Option<String> {
    let repository = source::parse("", text).ok()?;
    let exact = repository.templates().iter().find(|template| template.glob.as_str() == resource);
    let followed = || repository.find(&ResourceId::new(resource, usize::MAX).ok()?);
    let template = exact.cloned().or_else(followed)?;
    template.beside.map(|_| template.glob.to_string())
}

/// The text with the capacity that is tried in the place of that in force.
fn promoted(text: &str, glob: &str) -> anyhow::Result<String> {
    let outline = source::outline(text);
    let tried = outline.iter().find(|it| it.template.as_deref() == Some(glob) && it.field == TRIED);
    let tried = tried.with_context(|| format!("template {glob:?} has no {TRIED}"))?;
    let changed = replaced(text, glob, "capacity", &text[tried.range.clone()])?;
    let by_hand =
        || format!("{BESIDE} of template {glob:?} cannot be taken out; wanted the file, changed and pushed");
    source::without(&changed, glob, BESIDE).with_context(by_hand)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, wanted: &str) {
        assert_eq!(tried_by(text, "db/orders").as_deref(), Some("db/*"), "{text}");
        assert_eq!(promoted(text, "db/*").unwrap(), wanted);
        assert_eq!(tried_by(wanted, "db/orders"), None);
    }

    #[test]
    fn the_capacity_that_was_tried_is_the_one_in_force_and_comments_stay() {
        let algorithm = "  algorithm: {kind: FAIR_SHARE, lease_length: 60, refresh_interval: 5}\n";
        let ours = "# ours\nresources:\n- identifier_glob: db/* # main\n";
        let block = format!(
            "{ours}  capacity: 500 # of 600\n  beside: # since May\n    # less\n    capacity: 400 # tried\n  # how\n{algorithm}"
        );
        check(&block, &format!("{ours}  capacity: 400 # of 600\n  # how\n{algorithm}"));
        let flow = format!("{ours}  capacity: 500 # of 600\n{algorithm}  beside: {{capacity: 4e2}}");
        check(&flow, &format!("{ours}  capacity: 4e2 # of 600\n{algorithm}"));
        let inner = "{kind: FAIR_SHARE, lease_length: 60, refresh_interval: 5}";
        for (before, after) in [("beside: {capacity: 400}, ", ""), ("", ", beside: {capacity: 400}")] {
            let text = format!(
                "resources: [{{identifier_glob: db/*, {before}capacity: 500, algorithm: {inner}{after}}}]\n"
            );
            let wanted =
                format!("resources: [{{identifier_glob: db/*, capacity: 400, algorithm: {inner}}}]\n");
            check(&text, &wanted);
        }
    }

    #[test]
    fn a_template_without_a_second_limit_has_nothing_to_promote() {
        let text = "resources:\n- {identifier_glob: db, capacity: 5, algorithm: {kind: FAIR_SHARE, lease_length: 60, refresh_interval: 5}}\n";
        assert_eq!((tried_by(text, "db"), tried_by(text, "other"), tried_by("{", "db")), (None, None, None));
    }
}
