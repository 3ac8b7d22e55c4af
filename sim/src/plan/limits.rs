//! The limits of servers, and whether they go by rules of access.

/// The limits of the servers of a simulation on who may hold what, and whether they go by rules of access.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LimitPlan {
    /// The most holders of one resource at one node; absent: as many as a server takes by itself.
    pub clients: Option<usize>,
    /// The same of all its resources together.
    pub holdings: Option<usize>,
    /// The most resources that one stream may hold.
    pub of_stream: Option<usize>,
    /// Whether servers go by rules of access, which let everybody hold everything at first.
    pub access: bool,
}
