//! Limits on the uses in any window: what programs use of them, and what the driver of a client says about that.

use std::time::Duration;

use lessor_client::internals::mutation::HolderRules;
use lessor_proto::Time;

use super::Simulation;
use super::holder::bands;
use crate::actor::Actor;
use crate::holding::Stance;
use crate::program::Program;
use crate::program::window::WindowUses;

// === impl Simulation ===

impl Simulation {
    /// The program behind a holding of such a limit.
    pub(super) fn window_program(&self, hold: u32, window: Duration) -> Program {
        let local = self.local(Actor::Client(self.population.holdings[hold as usize].client));
        Program::Uses(WindowUses::new(local, window, self.rules.drift, self.holder_rules()))
    }

    /// A program makes some uses, each for itself, until one is refused. Then its driver looks at once. What was made is judged.
    pub(super) fn use_window(&mut self, hold: u32, most: u64) {
        let (client, resource) = (
            self.population.holdings[hold as usize].client,
            self.population.holdings[hold as usize].resource,
        );
        let local = self.local(Actor::Client(client));
        let mut made = 0;
        if let Some(uses) = self.population.programs.get_mut(hold).and_then(Program::uses) {
            while made < most && uses.make(self.now, local) {
                made += 1;
            }
        }
        self.progress.counts.hits += made;
        if made > 0 {
            self.consult(|oracle, facts| oracle.watch_window(facts, resource, made));
        }
        self.note_use(hold);
        if made < most {
            self.population.clients[client as usize].next_look = local;
            self.drive_client(client);
        }
    }

    /// Nobody makes uses any more: what is wanted is stated from here on.
    pub(super) fn rest_window(&mut self, hold: u32) {
        let client = self.population.holdings[hold as usize].client;
        if self.population.programs.get_mut(hold).and_then(Program::uses).is_some() {
            self.population.clients[client as usize].next_look = self.local(Actor::Client(client));
            self.drive_client(client);
        }
    }

    /// The driver of a client says what is wanted of windows, as long as programs make uses: those that are spent or missing, and
    /// those to be kept at hand.
    pub(super) fn look_at_windows(&mut self, client: u32, now: Time) {
        let faulty = self.faulty();
        for hold in self.population.clients[client as usize].holds.clone() {
            let holding = &self.population.holdings[hold as usize];
            let Some(uses) = self.population.programs.get_mut(hold).and_then(Program::uses) else { continue };
            let want = uses.want(now, holding.demand.priority);
            let said = if faulty { want.bands } else { bands(holding) };
            let found = &mut self.population.clients[client as usize];
            found.next_look = found.next_look.min(want.next_look);
            if holding.stance == Stance::Kept
                && let Some(session) = found.mind.session()
            {
                session.set_bands(now, &self.resources[usize::from(holding.resource)].id, said);
            }
        }
    }

    /// The rules that holders go by.
    #[cfg(feature = "mutations")]
    fn holder_rules(&self) -> HolderRules {
        self.rules.mutation.map(crate::mutation::Mutation::client).unwrap_or_default()
    }

    /// The rules that holders go by: all of them.
    #[cfg(not(feature = "mutations"))]
    #[expect(clippy::unused_self, reason = "the same call with the feature and without")]
    fn holder_rules(&self) -> HolderRules {
        HolderRules::default()
    }
}
