//! `lessor rollback` and `lessor set`: the next revision from what is there already.

use anyhow::{Context, bail};
use clap::Args;
use lessor_server::revision::RevisionDocument;
use lessor_server::shell::source::{self, DocumentText};

use super::files;
use super::proposal::{Proposal, ProposalFlags};
use crate::office::{Office, OfficeFlags};

/// Pushes the content of an earlier revision as the next one, as `lessor push` does
#[derive(Debug, Args)]
pub(crate) struct Rollback {
    /// The number of the revision whose content is wanted
    number: u64,
    #[command(flatten)]
    flags: ProposalFlags,
    #[command(flatten)]
    office: OfficeFlags,
}

/// Changes single fields of a template and pushes that, as `lessor push` does; comments and everything else stay as they are
#[derive(Debug, Args)]
pub(crate) struct Set {
    /// The glob of the template, as it stands there
    glob: String,
    /// A field that is there, and its value, as capacity=300 or algorithm.lease_length=60
    #[arg(required = true, value_name = "FIELD=VALUE", value_parser = assignment)]
    fields: Vec<(String, String)>,
    /// The document in which it is changed, by the nodes that this is for; needed where several have the template
    #[arg(long = "for", value_name = "GLOB")]
    nodes: Option<String>,
    #[command(flatten)]
    flags: ProposalFlags,
    #[command(flatten)]
    office: OfficeFlags,
}

fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((field, value)) if !field.is_empty() && !value.is_empty() && !value.contains('\n') => {
            Ok((field.to_owned(), value.to_owned()))
        }
        _ => Err("wanted FIELD=VALUE, as capacity=300".to_owned()),
    }
}

// === impl Rollback ===

impl Rollback {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let place = self.office.open()?;
        let texts = place.texts_of(self.number).await?;
        files::check(&texts)?;
        let proposal = Proposal {
            rollback_of: Some(self.number),
            ..Proposal::new(&place, &self.flags, self.office.author(), texts)
        };
        proposal.push().await
    }
}

// === impl Set ===

impl Set {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let place = self.office.open()?;
        let newest = newest(&place).await?;
        let mut texts = place.texts_of(newest).await?;
        let found = self.find(&texts)?;
        let (document, text) = &mut texts[found];
        for (field, value) in &self.fields {
            *text = replaced(text, &self.glob, field, value)?;
        }
        *document = RevisionDocument::new(&document.nodes, &document.name, text);
        files::check(&texts)?;
        let proposal = Proposal {
            base: Some(newest),
            ..Proposal::new(&place, &self.flags, self.office.author(), texts)
        };
        proposal.push().await
    }

    /// The document that has the template.
    fn find(&self, texts: &[DocumentText]) -> anyhow::Result<usize> {
        let has_it = |text: &str| {
            source::outline(text).iter().any(|field| field.template.as_deref() == Some(&self.glob))
        };
        let is_wanted =
            |document: &RevisionDocument| self.nodes.as_ref().is_none_or(|nodes| *nodes == document.nodes);
        let found: Vec<usize> =
            (0..texts.len()).filter(|&index| is_wanted(&texts[index].0) && has_it(&texts[index].1)).collect();
        let nodes =
            || found.iter().map(|&index| texts[index].0.nodes.as_str()).collect::<Vec<_>>().join(", ");
        match found[..] {
            [] => bail!("no document has a template {:?}", self.glob),
            [index] => Ok(index),
            _ => bail!(
                "the documents for {} have a template {:?}; wanted --for GLOB with one of them",
                nodes(),
                self.glob
            ),
        }
    }
}

/// The number of the newest revision.
pub(super) async fn newest(place: &Office) -> anyhow::Result<u64> {
    let newest = Some(place.newest().await?).filter(|&newest| newest > 0);
    newest.context("nothing has been pushed yet")
}

/// The text with another scalar in the place of one.
pub(super) fn replaced(text: &str, glob: &str, field: &str, value: &str) -> anyhow::Result<String> {
    let outline = source::outline(text);
    let mut found = outline.iter().filter(|it| it.template.as_deref() == Some(glob) && it.field == field);
    let range = match (found.next(), found.next()) {
        (Some(found), None) => found.range.clone(),
        (Some(_), Some(_)) => bail!("template {glob:?} has {field} twice"),
        (None, _) => {
            let fields = outline.iter().filter(|it| it.template.as_deref() == Some(glob));
            let fields: Vec<&str> = fields.map(|it| it.field.as_str()).collect();
            bail!("template {glob:?} has no {field}; it has {}", fields.join(", "))
        }
    };
    let others = outline.iter().filter(|it| it.range == range && it.template.as_deref() != Some(glob));
    let others: Vec<String> =
        others.map(|it| format!("{} {}", it.template.as_deref().unwrap_or_default(), it.field)).collect();
    if !others.is_empty() {
        bail!(
            "{field} of template {glob:?} is an alias, and stands there for {} as well; wanted the file, changed and pushed",
            others.join(", ").trim()
        );
    }
    let mut changed = text.to_owned();
    changed.replace_range(range, value);
    let is_that = |it: &source::OutlinedField| {
        it.template.as_deref() == Some(glob)
            && it.field == field
            && it.value == value.trim_matches(['"', '\''])
    };
    let after = source::outline(&changed);
    match after.len() == outline.len() && after.iter().any(is_that) {
        true => Ok(changed),
        false => bail!("{field}={value}: that is not one value in YAML; wanted one, in quotes if need be"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# ours\nresources:\n- identifier_glob: db # main\n  capacity: 5 # of 10\n  algorithm: {kind: FAIR_SHARE, lease_length: 60}\n";

    #[test]
    fn one_value_is_replaced_and_comments_stay() {
        let changed = replaced(TEXT, "db", "capacity", "300").unwrap();
        assert_eq!(changed, TEXT.replace("capacity: 5 #", "capacity: 300 #"));
        let changed = replaced(TEXT, "db", "algorithm.lease_length", "30").unwrap();
        assert_eq!(changed, TEXT.replace("60}", "30}"));
    }

    #[test]
    fn what_stands_for_others_as_well_is_refused() {
        let text = "x-a: &a {lease_length: 60}\nresources:\n- {identifier_glob: b, algorithm: *a}\n- {identifier_glob: c, algorithm: *a}\n";
        let fault = replaced(text, "b", "algorithm.lease_length", "30").unwrap_err().to_string();
        assert!(
            fault.contains("stands there for x-a.lease_length, c algorithm.lease_length as well"),
            "{fault}"
        );
    }

    #[test]
    fn what_is_not_there_or_no_value_is_refused() {
        let fault = |field, value| replaced(TEXT, "db", field, value).unwrap_err().to_string();
        let told = "template \"db\" has no capcity; it has identifier_glob, capacity, algorithm.kind, algorithm.lease_length";
        assert_eq!(fault("capcity", "1"), told);
        assert!(fault("capacity", "a: b").ends_with("wanted one, in quotes if need be"));
        assert!(fault("capacity", "1 # 2").contains("that is not one value"));
    }
}
