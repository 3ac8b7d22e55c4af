//! Units that were asked for while everything was let pass, until a report has said them. Each is said once.

use lessor_proto::message::Unenforced;

use super::Holding;

/// Such units of one holding.
#[derive(Clone, Debug, Default)]
pub(super) struct UnsaidUnits {
    /// The units as they were counted last.
    counted: Unenforced,
    /// Those of them that no report has said.
    unsaid: Unenforced,
    /// The number of silent holders below, as the last report said it.
    said_silent: u32,
}

// === impl UnsaidUnits ===

impl UnsaidUnits {
    fn count(&mut self, counted: Unenforced) {
        let unsaid = self.unsaid.with(counted.since(self.counted));
        self.unsaid = Unenforced { silent: counted.silent, ..unsaid };
        self.counted = counted;
    }

    fn is_news(&self) -> bool {
        self.unsaid.asked > 0 || self.unsaid.silent != self.said_silent
    }

    fn take(&mut self) -> Unenforced {
        let said = self.unsaid;
        self.unsaid = Unenforced { silent: said.silent, ..Unenforced::default() };
        self.said_silent = said.silent;
        said
    }
}

// === impl Holding ===

impl Holding {
    /// The units that were asked for so far while everything was let pass.
    pub(crate) fn count_units(&mut self, counted: Unenforced) {
        self.reporting.unsaid.get_or_insert_default().count(counted);
    }

    /// Goes on counting where another holding of the resource has ended.
    pub(crate) fn count_on(&mut self, before: &mut Holding) {
        self.reporting.unsaid = before.reporting.unsaid.take();
    }

    /// Whether these are the units that were counted last.
    pub(crate) fn has_counted(&self, counted: Unenforced) -> bool {
        self.reporting.unsaid.as_ref().map_or(Unenforced::default(), |unsaid| unsaid.counted) == counted
    }

    /// Whether there are such units that were not said, or the grantor does not know that they are counted.
    pub(crate) fn has_units_to_say(&self) -> bool {
        let is_news = self.reporting.unsaid.as_ref().is_some_and(|unsaid| unsaid.is_news());
        is_news || self.terms.unenforced && !self.reporting.says_units
    }

    /// Whether units were let pass that no report has said.
    pub(crate) fn has_passed_unsaid(&self) -> bool {
        self.reporting.unsaid.as_ref().is_some_and(|unsaid| unsaid.unsaid.asked > 0)
    }

    /// The units that a report says: absent where there is nothing to say, and the lease is kept to.
    pub(super) fn say_units(&mut self) -> Option<Unenforced> {
        let has_some = self.has_units_to_say() || self.terms.unenforced;
        self.reporting.says_units = self.terms.unenforced;
        let said = self.reporting.unsaid.as_mut().map(|unsaid| unsaid.take()).unwrap_or_default();
        (has_some || !said.is_none()).then_some(said)
    }
}
