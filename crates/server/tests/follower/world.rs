//! A world of followers and an etcd: whatever they want done is done at once, and time passes when it is told to.

use std::time::Duration;

use lessor_proto::Time;
use lessor_server::election::call::{Call, Failure, LeaseId, Watched};
use lessor_server::follower::{
    FollowerAction, FollowerConfig, FollowerEvent, TaskStanding, TemplateFollower,
};
use lessor_server::overrides::{Override, OverrideAct, Overrides};
use lessor_server::repository::Repository;
use lessor_server::revision::{Revision, RevisionDocument, RevisionKeys, TaskReport, pack};
use lessor_server::shell::source;
use lessor_sim::etcd::Etcd;

/// A check, and what came of it.
type EndedCheck = (u64, Result<Repository, Vec<String>>);

/// A follower, and what is kept for it.
struct Site {
    follower: TemplateFollower,
    repository: Option<Repository>,
    overrides: Overrides,
    /// The number of overrides in force when the first revision came to be.
    overridden_at_first: Option<usize>,
    watch: Option<u64>,
    /// A watch that is to begin later.
    held: Option<Option<(u64, String, u64)>>,
    is_gone: bool,
    fails_checks: bool,
    /// Checks that end later, with what comes of them.
    held_checks: Option<Vec<EndedCheck>>,
    blobs_read: usize,
    calls: usize,
    lease: Option<LeaseId>,
}

pub(crate) struct World {
    pub(crate) etcd: Etcd,
    pub(crate) keys: RevisionKeys,
    pub(crate) now: Time,
    pub(crate) is_away: bool,
    sites: Vec<Site>,
}

/// Templates with one for everything.
pub(crate) fn templates(capacity: u64) -> String {
    format!(
        "resources:\n- identifier_glob: \"*\"\n  capacity: {capacity}\n  safe_capacity: 0\n  algorithm: {{kind: FAIR_SHARE, lease_length: 60, refresh_interval: 5}}\n"
    )
}

/// The same for those nodes.
pub(crate) fn document(nodes: &str, capacity: u64) -> (&str, String) {
    (nodes, templates(capacity))
}

// === impl World ===

impl World {
    pub(crate) fn new(nodes: &[&str]) -> World {
        let keys = RevisionKeys::new("t").unwrap();
        let mut world = World { etcd: Etcd::new(), keys, now: Time::ZERO, is_away: false, sites: Vec::new() };
        nodes.iter().for_each(|node| _ = world.begin(node));
        world
    }

    /// A task begins, and finds what there is.
    pub(crate) fn begin(&mut self, node: &str) -> usize {
        let config = FollowerConfig::new("t", node, self.sites.len() as u64 + 1).unwrap();
        let mut follower = TemplateFollower::new(self.now, config);
        follower.set_standing(TaskStanding { stands: true, ..TaskStanding::default() });
        self.sites.push(Site {
            follower,
            repository: None,
            overrides: Overrides::default(),
            overridden_at_first: None,
            watch: None,
            held: None,
            is_gone: false,
            fails_checks: false,
            held_checks: None,
            blobs_read: 0,
            calls: 0,
            lease: None,
        });
        self.settle();
        self.sites.len() - 1
    }

    /// Puts the documents of a revision and its record there; its text is what a head or a draft names.
    pub(crate) fn prepare(&mut self, number: u64, texts: &[(&str, String)]) -> (Revision, String) {
        self.prepare_with(number, texts, |_| {})
    }

    fn prepare_with(
        &mut self,
        number: u64,
        texts: &[(&str, String)],
        change: impl FnOnce(&mut Revision),
    ) -> (Revision, String) {
        let documents = texts.iter().map(|(nodes, text)| RevisionDocument::new(*nodes, "x.yaml", text));
        let mut revision = Revision {
            number,
            documents: documents.collect(),
            message: "why".to_owned(),
            ..Revision::default()
        };
        change(&mut revision);
        for (document, (_, text)) in revision.documents.iter().zip(texts) {
            let key = self.keys.blob(&document.blob);
            self.etcd.put_bytes(&key, &pack(&key, text).unwrap());
        }
        let key = self.keys.revision(number);
        let text = revision.encode(&key).unwrap();
        self.etcd.put(&key, &text);
        (revision, text)
    }

    /// The head names the revision of that text.
    pub(crate) fn move_head(&mut self, text: &str) {
        let (revision, digest) = Revision::decode("", text.as_bytes()).unwrap();
        self.etcd.put(&self.keys.revision(revision.number), text);
        self.etcd.put(&self.keys.head(), &revision.head(digest).encode());
        self.settle();
    }

    pub(crate) fn push(&mut self, number: u64, texts: &[(&str, String)]) {
        self.push_with(number, texts, |_| {});
    }

    pub(crate) fn push_with(
        &mut self,
        number: u64,
        texts: &[(&str, String)],
        change: impl FnOnce(&mut Revision),
    ) {
        let (_, text) = self.prepare_with(number, texts, change);
        self.move_head(&text);
    }

    /// Another etcd is in the place of the one that was there.
    pub(crate) fn restore(&mut self, copy: Etcd) {
        self.etcd = copy;
        self.etcd.restart(self.now);
        (0..self.sites.len()).for_each(|site| self.end_watch(site));
        self.pass(Duration::from_secs(1));
    }

    /// Nothing more is seen on a watch.
    pub(crate) fn deafen(&mut self, site: usize) {
        if let Some(id) = self.sites[site].watch.take() {
            self.etcd.unwatch(number(site, id));
        }
        self.sites[site].held = None;
    }

    /// The connection of a task breaks.
    pub(crate) fn end_watch(&mut self, site: usize) {
        let ended = || Watched::Ended(Failure::Unavailable("broken off".to_owned()));
        let found = &mut self.sites[site];
        found.watch = None;
        // Whichever it has: numbers are counted up.
        (0..200).for_each(|id| found.follower.on_watched(self.now, id, ended()));
        self.settle();
    }

    /// The next watch of a task begins late.
    pub(crate) fn hold_watch(&mut self, site: usize) {
        self.deafen(site);
        self.sites[site].held = Some(None);
    }

    pub(crate) fn begin_watch(&mut self, site: usize) {
        if let Some(Some((id, prefix, from))) = self.sites[site].held.take() {
            self.etcd.watch_prefix(number(site, id), &prefix, from);
            self.sites[site].watch = Some(id);
        }
        self.settle();
    }

    /// A task finds everything faulty from here on.
    pub(crate) fn fail_checks(&mut self, site: usize) {
        self.sites[site].fails_checks = true;
    }

    /// The checks of a task end later.
    pub(crate) fn hold_checks(&mut self, site: usize) {
        self.sites[site].held_checks = Some(Vec::new());
    }

    /// They end now.
    pub(crate) fn end_checks(&mut self, site: usize) {
        let found = &mut self.sites[site];
        let held = found.held_checks.take().unwrap();
        assert!(!held.is_empty(), "there was something to be checked");
        held.into_iter().for_each(|(id, checked)| found.follower.on_checked(id, checked));
        self.settle();
    }

    /// A task ends in order.
    pub(crate) fn end(&mut self, site: usize) {
        if let Some(call) = self.sites[site].follower.leave() {
            self.etcd.carry_out(self.now, &call).unwrap();
        }
        self.sites[site].is_gone = true;
        self.settle();
    }

    /// The lease of its report ends.
    pub(crate) fn end_lease(&mut self, site: usize) {
        let lease = self.sites[site].lease.unwrap();
        self.etcd.carry_out(self.now, &Call::Revoke { lease }).unwrap();
    }

    /// Time passes, and everybody does what is due.
    pub(crate) fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        for _ in 0..100_000 {
            self.settle();
            let running = self.sites.iter().filter(|site| !site.is_gone);
            let next = running.map(|site| site.follower.next_deadline()).min().unwrap_or(Time::MAX);
            if next > until {
                self.now = until;
                self.etcd.advance(until);
                return self.settle();
            }
            self.now = self.now.max(next);
            self.etcd.advance(self.now);
        }
        panic!("it never comes to rest");
    }

    /// Everybody does what can be done at this moment.
    pub(crate) fn settle(&mut self) {
        for _ in 0..10_000 {
            let mut is_quiet = true;
            for site in 0..self.sites.len() {
                is_quiet &= !self.step(site);
            }
            if is_quiet {
                return;
            }
        }
        panic!("it never comes to rest");
    }

    fn step(&mut self, site: usize) -> bool {
        if self.sites[site].is_gone {
            return false;
        }
        if let Some(id) = self.sites[site].watch {
            let watched = self.etcd.watched(number(site, id));
            if !watched.is_empty() {
                let follower = &mut self.sites[site].follower;
                watched.into_iter().for_each(|watched| follower.on_watched(self.now, id, watched));
                return true;
            }
        }
        let Some(action) = self.sites[site].follower.poll(self.now) else { return false };
        self.act(site, action);
        true
    }

    fn act(&mut self, site: usize, action: FollowerAction) {
        let (now, found) = (self.now, &mut self.sites[site]);
        match action {
            FollowerAction::Call { id, call } => {
                found.calls += 1;
                if let Call::Read { key } = &call {
                    found.blobs_read += usize::from(key.starts_with("t/blob/"));
                }
                let result = match self.is_away {
                    true => Err(Failure::Unavailable("away".to_owned())),
                    false => self.etcd.carry_out(now, &call),
                };
                if let Ok(lessor_server::election::call::Answer::Granted { lease, .. }) = &result {
                    found.lease = Some(*lease);
                }
                found.follower.on_answer(now, id, result);
            }
            FollowerAction::Watch { id, prefix, from_revision } => match &mut found.held {
                Some(held) => *held = Some((id, prefix, from_revision)),
                None => {
                    found.watch = Some(id);
                    self.etcd.watch_prefix(number(site, id), &prefix, from_revision);
                }
            },
            FollowerAction::Unwatch { id } => {
                found.watch.take_if(|watch| *watch == id);
                self.etcd.unwatch(number(site, id));
            }
            FollowerAction::Check(check) => {
                let checked = source::parse(&check.name, &check.text);
                let checked =
                    checked.map_err(|faults| faults.to_string().lines().map(str::to_owned).collect());
                let refused = || Err(vec![format!("{}: unknown field", check.name)]);
                let checked = if found.fails_checks { refused() } else { checked };
                match &mut found.held_checks {
                    Some(held) => held.push((check.id, checked)),
                    None => found.follower.on_checked(check.id, checked),
                }
            }
            FollowerAction::Override(overrides) => {
                assert!(found.overrides != overrides, "nothing has changed");
                found.overrides = overrides;
            }
            FollowerAction::PutInForce { repository, last_good } => {
                found.overridden_at_first.get_or_insert(found.overrides.len());
                assert_eq!(repository.version(), last_good.head.number);
                found.repository = Some(repository);
            }
        }
    }

    pub(crate) fn in_force(&self, site: usize) -> u64 {
        let in_force = self.sites[site].follower.in_force().map_or(0, |head| head.number);
        assert_eq!(in_force, self.sites[site].repository.as_ref().map_or(0, Repository::version));
        in_force
    }

    pub(crate) fn capacity(&self, site: usize) -> u64 {
        let repository = self.sites[site].repository.as_ref().unwrap();
        repository.templates()[0].capacity.as_f64() as u64
    }

    /// The overrides that a task has in force, the oldest first.
    pub(crate) fn overrides(&self, site: usize) -> &Overrides {
        &self.sites[site].overrides
    }

    pub(crate) fn overridden_at_first(&self, site: usize) -> Option<usize> {
        self.sites[site].overridden_at_first
    }

    /// An operator puts an override there.
    pub(crate) fn put_override(&mut self, id: &str, seconds: u64) {
        let ttl = Duration::from_secs(seconds);
        let granted = self.etcd.carry_out(self.now, &Call::GrantLease { ttl });
        let Ok(lessor_server::election::call::Answer::Granted { lease, .. }) = granted else {
            panic!("{granted:?}")
        };
        let act = OverrideAct::Freeze { resource: "db".to_owned() };
        let it = Override { id: id.to_owned(), act, seconds, ..Override::for_reason("why") };
        let (key, value) = (self.keys.override_of(id), it.encode());
        self.etcd.carry_out(self.now, &Call::Put { lease, key, value }).unwrap();
        self.settle();
    }

    pub(crate) fn stands(&self, site: usize) -> bool {
        self.sites[site].follower.stands(self.now)
    }

    pub(crate) fn blobs_read(&self, site: usize) -> usize {
        self.sites[site].blobs_read
    }

    pub(crate) fn calls(&self, site: usize) -> usize {
        self.sites[site].calls
    }

    pub(crate) fn task_key(&self, site: usize) -> String {
        let config = self.sites[site].follower.config();
        self.keys.task(&config.node, config.nonce)
    }

    /// The report that stands at etcd.
    pub(crate) fn report(&self, site: usize) -> TaskReport {
        let key = self.task_key(site);
        let stored = self.etcd.get(&key).unwrap_or_else(|| panic!("no report at {key}"));
        TaskReport::decode(&key, &stored.value).unwrap()
    }

    pub(crate) fn events(&mut self, site: usize) -> Vec<FollowerEvent> {
        std::iter::from_fn(|| self.sites[site].follower.next_event()).collect()
    }
}

fn number(site: usize, id: u64) -> u64 {
    (site as u64) << 32 | id
}
