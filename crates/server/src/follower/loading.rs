//! The loading of a revision: from its record to a document that has been checked.

use std::sync::Arc;

use super::{
    CHECKED, CheckedDocument, FollowerAction, FollowerEvent, Refusing, RevisionCheck, TemplateFollower,
};
use crate::election::call::Stored;
use crate::repository::Repository;
use crate::revision::{
    BadRevision, Digest, DraftVerdict, LastGood, RefusedRevision, Revision, RevisionDocument, RevisionHead,
    told, unpack,
};

/// A revision that is being loaded.
#[derive(Clone, Debug)]
pub(super) struct Loading {
    pub(super) target: Target,
    /// As far as it is read.
    pub(super) revision: Revision,
    pub(super) stage: Stage,
}

/// The purpose of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Target {
    /// To be put in force.
    Head(RevisionHead),
    /// To be judged.
    Draft(String),
}

/// The stage at which it is.
#[derive(Clone, Debug)]
pub(super) enum Stage {
    /// Its record is to be read.
    Revision,
    /// Its document is.
    Blob,
    /// That is being checked, under this number.
    Checking { id: u64, text: Arc<str> },
}

// === impl Loading ===

impl Loading {
    pub(super) fn wants_call(&self) -> bool {
        !matches!(self.stage, Stage::Checking { .. })
    }

    pub(super) fn is_checked_as(&self, check: u64) -> bool {
        matches!(self.stage, Stage::Checking { id, .. } if id == check)
    }

    /// Whether it is to put another head in force.
    pub(super) fn is_of_another(&self, head: &RevisionHead) -> bool {
        matches!(&self.target, Target::Head(found) if found != head)
    }

    pub(super) fn is_revision_of(&self, head: &RevisionHead) -> bool {
        matches!((&self.stage, &self.target), (Stage::Revision, Target::Head(found)) if found == head)
    }
}

// === impl TemplateFollower ===

impl TemplateFollower {
    /// A check has come to an end: the repository, or all that is wrong.
    pub fn on_checked(&mut self, id: u64, outcome: Result<Repository, Vec<String>>) {
        let Some(loading) = self.loading.take_if(|loading| loading.is_checked_as(id)) else { return };
        let Loading { target, revision, stage: Stage::Checking { text, .. } } = loading else { return };
        let document = self.document_of(&revision).expect("that was checked").clone();
        match outcome {
            Ok(repository) if repository.version() > 0 => {
                let version = repository.version();
                let why = format!(
                    "{}: version: {version}; wanted none in a document at etcd, where revisions are numbered",
                    document.name
                );
                self.refuse(target, vec![why], false);
            }
            Ok(repository) => {
                self.keep(document.blob, Arc::clone(&text), repository);
                self.finish(target, &revision);
            }
            Err(why) => self.refuse(target, why, false),
        }
    }

    pub(super) fn load(&mut self, head: RevisionHead) {
        let is_under_way = |loading: &Loading| loading.target == Target::Head(head);
        if !self.loading.as_ref().is_some_and(is_under_way) {
            if let Some(Loading { target: Target::Draft(id), revision, .. }) = self.loading.take() {
                self.drafts.put_back(id, &revision);
            }
            let target = Target::Head(head);
            self.loading = Some(Loading { target, revision: Revision::default(), stage: Stage::Revision });
        }
    }

    /// Begins with the next draft, if there is nothing else to load.
    pub(super) fn begin_loading(&mut self) {
        while self.loading.is_none() {
            let Some((id, found)) = self.drafts.next() else { return };
            let key = self.config.keys.draft(&id);
            match found.and_then(|value| Revision::decode(&key, &value)) {
                Ok((revision, _)) => self.look_for_document(Target::Draft(id), revision),
                Err(fault) => self.refuse_as_bad(Target::Draft(id), &fault),
            }
        }
    }

    pub(super) fn on_revision(&mut self, head: RevisionHead, stored: Option<Stored>) {
        let is_wanted = |loading: &mut Loading| loading.is_revision_of(&head);
        if self.loading.take_if(is_wanted).is_none() {
            return;
        }
        let key = self.config.keys.revision(head.number);
        let read = stored.ok_or_else(|| BadRevision::missing(&key, "the revision that the head names"));
        match read.and_then(|stored| Revision::decode_of(&key, &head, &stored.value)) {
            Ok(revision) => self.look_for_document(Target::Head(head), revision),
            Err(fault) => self.refuse_as_bad(Target::Head(head), &fault),
        }
    }

    /// Goes on with a revision that has been read: with the document for this node, which may be here already.
    fn look_for_document(&mut self, target: Target, revision: Revision) {
        let level = self.config.level;
        if revision.needs > level {
            let why = format!(
                "revision {} needs templates of level {}, and this version ({}) reads level {level}",
                revision.number, revision.needs, self.config.binary
            );
            return self.refuse(target, vec![why], false);
        }
        let Some(document) = self.document_of(&revision) else {
            let count = revision.documents.len();
            let why = format!("none of its {count} documents is for node {:?}", self.config.node);
            return self.refuse(target, vec![why], false);
        };
        if self.checked.iter().any(|checked| checked.blob == document.blob) {
            return self.finish(target, &revision);
        }
        self.loading = Some(Loading { target, revision, stage: Stage::Blob });
    }

    pub(super) fn on_blob(&mut self, blob: Digest, stored: Option<Stored>) {
        let is_wanted = |loading: &mut Loading| {
            let document = loading.revision.document_for(&self.config.node);
            matches!(loading.stage, Stage::Blob) && document.is_some_and(|document| document.blob == blob)
        };
        let Some(Loading { target, revision, .. }) = self.loading.take_if(is_wanted) else { return };
        let key = self.config.keys.blob(&blob);
        let document = self.document_of(&revision).expect("it was looked for").clone();
        let read = stored.ok_or_else(|| BadRevision::missing(&key, "a document that the revision names"));
        match read.and_then(|stored| unpack(&key, &document, &stored.value)) {
            Ok(text) => {
                let (id, text) = (self.next_id(), Arc::<str>::from(text));
                let check = RevisionCheck { id, name: document.name, text: Arc::clone(&text) };
                self.out.act(FollowerAction::Check(check));
                self.loading = Some(Loading { target, revision, stage: Stage::Checking { id, text } });
            }
            Err(fault) => self.refuse_as_bad(target, &fault),
        }
    }

    pub(super) fn document_of<'a>(&self, revision: &'a Revision) -> Option<&'a RevisionDocument> {
        revision.document_for(&self.config.node)
    }

    pub(super) fn keep(&mut self, blob: Digest, text: Arc<str>, repository: Repository) {
        self.checked.retain(|checked| checked.blob != blob);
        self.checked.push_front(CheckedDocument { blob, text, repository });
        self.checked.truncate(CHECKED);
    }

    /// Something can be put in force: a head is, and a draft is said to be so.
    fn finish(&mut self, target: Target, revision: &Revision) {
        match target {
            Target::Draft(id) => self.drafts.judge(DraftVerdict { id, faults: Vec::new() }),
            Target::Head(head) => self.put_in_force(head, revision),
        }
    }

    fn put_in_force(&mut self, head: RevisionHead, revision: &Revision) {
        let document = self.document_of(revision).expect("it was looked for").clone();
        let checked = self.checked.iter().find(|checked| checked.blob == document.blob);
        let CheckedDocument { text, repository, .. } = checked.expect("it was kept");
        let repository = repository.clone().at_version(head.number);
        let config = &self.config;
        let last_good = LastGood::new(config.keys.prefix(), &config.node, head, document, text);
        self.heads.put_in_force(head);
        let last_good = Box::new(last_good);
        self.out.act(FollowerAction::PutInForce { repository, last_good });
    }

    fn refuse_as_bad(&mut self, target: Target, fault: &BadRevision) {
        self.refuse(target, vec![fault.to_string()], true);
    }

    pub(super) fn refuse(&mut self, target: Target, why: Vec<String>, is_damaged: bool) {
        let why = told(why);
        match target {
            Target::Draft(id) => self.drafts.judge(DraftVerdict { id, faults: why }),
            Target::Head(head) => {
                let refused = RefusedRevision { number: head.number, why };
                self.note_refusal(Refusing { head: Some(head), refused, is_damaged });
            }
        }
    }

    pub(super) fn note_refusal(&mut self, refusing: Refusing) {
        let refused = refusing.refused.clone();
        if self.heads.refuse(refusing) {
            self.out.tell(FollowerEvent::Refused(refused));
        }
    }
}
