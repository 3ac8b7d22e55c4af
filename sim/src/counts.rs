//! Counts of what has been sent and done in a simulation.

/// The counts of what has been sent.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Requests of clients.
    pub client_asks: u64,
    /// Requests of nodes.
    pub node_asks: u64,
    /// Releases.
    pub releases: u64,
    /// Streams opened.
    pub streams: u64,
    /// Messages up streams that are no heartbeat.
    pub reports: u64,
    /// Heartbeats.
    pub heartbeats: u64,
    /// Messages down streams that are no answer to a heartbeat.
    pub pushes: u64,
    /// Answers to heartbeats that bring nothing else.
    pub renewals: u64,
    /// Hits that programs were let through with.
    pub hits: u64,
    /// Hits that programs were let through with although their leases refused them.
    pub passed: u64,
    /// Units that were let pass, as a root has heard of them in the end.
    pub passed_heard: u64,
    /// Overrides by which everything of a resource is let pass.
    pub unenforced: u64,
    /// Leases of companions that clients were granted which had none.
    pub companions: u64,
    /// Units that second limits were asked for, as a root has heard of them in the end.
    pub beside_heard: u64,
    /// Operations that programs began under permits.
    pub operations: u64,
    /// Hits of a shared domain that clients granted.
    pub domain_hits: u64,
    /// Those beside which half of the limit was to be known at least.
    pub domain_hits_known: u64,
    /// Hits of a shared domain that clients refused.
    pub domain_refusals: u64,
    /// The hits of others that clients were to know of in the end.
    pub domain_hits_learnt: u64,
    /// Views of the tree that operators were shown.
    pub views: u64,
    /// Nodes that were shown in them.
    pub nodes_shown: u64,
    /// Nodes that were not, as they did not answer or could not be asked.
    pub nodes_unseen: u64,
}

// === impl Counts ===

impl Counts {
    /// The number of messages that holders have sent: requests, and messages up streams.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.client_asks + self.node_asks + self.releases + self.streams + self.reports + self.heartbeats
    }

    /// Requests and messages on streams, both ways.
    #[must_use]
    pub fn messages(&self) -> u64 {
        2 * (self.client_asks + self.node_asks + self.releases + self.streams)
            + self.reports
            + self.heartbeats
            + self.pushes
            + self.renewals
    }
}
