//! The servers, the clients and the network between them.

use std::time::Duration;

use lessor_client::limiter::{Allowance, Limiter};
use lessor_proto::message::{Down, Up};
use lessor_proto::{Amount, Time};

use super::client::Client;
use super::site::{Holder, Sent, Site, upwards};
use super::traffic::Stretch;
use super::{Report, Run, SAID_AGAIN};
use crate::agenda::Agenda;
use crate::dice::Dice;

/// Something that happens.
#[derive(Debug)]
enum Event {
    Request(usize),
    /// Something is due at a client.
    Client(usize),
    /// Something is due at a server.
    Site(usize),
    /// Something comes from a holder to the server above it.
    Up {
        holder: Holder,
        stream: u64,
        up: Box<Up>,
    },
    /// And the other way round.
    Down {
        holder: Holder,
        stream: u64,
        down: Option<Box<Down>>,
    },
}

/// The place of the root among the servers.
const ROOT: usize = 0;

pub(super) struct World {
    run: Run,
    now: Time,
    end: Time,
    agenda: Agenda<Event>,
    dice: Dice,
    /// Those of the traffic, so that it is the same whatever the network does.
    traffic_dice: Dice,
    /// The root, and the leaves.
    sites: Vec<Site>,
    clients: Vec<Client>,
    stretches: Vec<Stretch>,
    /// Nothing overtakes what was sent before it, up and down, of each holder.
    clear: Vec<[Time; 2]>,
    /// One limiter of all of it.
    one: Limiter,
    /// The sum of what all clients believe they may use, in millionths.
    believed: u128,
    report: Report,
}

// === impl World ===

impl World {
    pub(super) fn new(run: Run, seed: u64) -> World {
        let mut dice = Dice::new(seed);
        let traffic_dice = Dice::new(dice.number());
        let clients: Vec<Client> =
            (0..run.clients).map(|number| Client::new(&run, number, &mut dice)).collect();
        let one = Limiter::new(run.burst);
        one.allow(Time::ZERO, Allowance::forever(Amount::from_units(run.capacity)));
        let end = run.traffic.counts_from() + Duration::from_secs(run.seconds);
        let leaves = (0..run.leaves).map(|number| Site::leaf(&run, number));
        let mut world = World {
            now: Time::ZERO,
            end,
            agenda: Agenda::small(),
            sites: std::iter::once(Site::root(&run)).chain(leaves).collect(),
            stretches: vec![run.traffic.begin(); run.clients],
            clear: vec![[Time::ZERO; 2]; run.clients + run.leaves],
            run,
            dice,
            traffic_dice,
            clients,
            one,
            believed: 0,
            report: Report::default(),
        };
        for client in 0..run.clients {
            // They do not all begin at one moment.
            let at = Time::ZERO + world.dice.time(Duration::ZERO, Duration::from_secs(1));
            world.agenda.put(at, Event::Client(client));
            world.expect_request(client);
        }
        world
    }

    pub(super) fn play(mut self) -> Report {
        while let Some((at, event)) = self.agenda.pop(self.end) {
            self.now = at;
            self.happen(event);
        }
        self.report
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Request(client) => self.request(client),
            Event::Client(client) => {
                self.clients[client].due = None;
                self.attend(client);
            }
            Event::Site(site) => {
                self.sites[site].due = None;
                self.serve(site);
            }
            Event::Up { holder, stream, up } => {
                let site = self.above(holder);
                if !self.sites[site].take_up(self.now, holder, stream, *up) {
                    self.deliver(holder, stream, None);
                }
                self.serve(site);
            }
            Event::Down { holder, stream, down } => self.take_down(holder, stream, down.map(|down| *down)),
        }
    }

    /// The server that a holder reports to.
    fn above(&self, holder: Holder) -> usize {
        match self.run.leaves {
            leaves if leaves > 0 && holder < self.run.clients => 1 + holder % leaves,
            _ => ROOT,
        }
    }

    fn take_down(&mut self, holder: Holder, stream: u64, down: Option<Down>) {
        let site = self.above(holder);
        self.sites[site].ready(self.now, holder, stream);
        if let Some(Down::Grants(grants)) = &down {
            self.report.grants += grants.len() as u64 * u64::from(self.counts());
        }
        match holder.checked_sub(self.run.clients) {
            None => {
                self.clients[holder].take(self.now, stream, down);
                self.attend(holder);
            }
            Some(leaf) => {
                self.sites[leaf + 1].take_down(self.now, stream, down);
                self.serve(leaf + 1);
            }
        }
        self.serve(site);
    }

    fn counts(&self) -> bool {
        self.now >= self.run.traffic.counts_from()
    }

    fn request(&mut self, client: usize) {
        let (is_granted, has_knocked) = self.clients[client].request(self.now);
        let is_granted_by_one = self.one.try_acquire(1, || self.now).is_ok();
        if self.counts() {
            self.report.asked += 1;
            self.report.refused += u64::from(!is_granted);
            self.report.refused_by_one += u64::from(!is_granted_by_one);
        }
        if has_knocked {
            self.attend(client);
        }
        self.expect_request(client);
    }

    fn expect_request(&mut self, client: usize) {
        let (run, dice) = (self.run, &mut self.traffic_dice);
        let stretch = &mut self.stretches[client];
        if let Some(at) = run.traffic.request(&run, client, stretch, (self.now, self.end), dice) {
            self.agenda.put(at, Event::Request(client));
        }
    }

    /// A client does what is due, and says what it has to say.
    fn attend(&mut self, client: usize) {
        let before = self.clients[client].capacity;
        while let Some(action) = self.clients[client].poll(self.now) {
            if let Some(Sent::Up(stream, up)) = upwards(action) {
                self.send(client, stream, up);
            }
        }
        let after = self.clients[client].capacity;
        self.believed += u128::from(after.as_micros());
        self.believed -= u128::from(before.as_micros());
        let capacity = u128::from(Amount::from_units(self.run.capacity).as_micros());
        self.report.over += u64::from(self.believed > capacity);
        let at = self.clients[client].deadline().max(self.now);
        if self.clients[client].due.is_none_or(|due| at < due) && at < Time::MAX {
            self.clients[client].due = Some(at);
            self.agenda.put(at, Event::Client(client));
        }
    }

    fn send(&mut self, holder: Holder, stream: u64, up: Up) {
        let is_report = matches!(up, Up::Report(_)) && self.counts();
        self.report.reports += u64::from(is_report);
        let at = self.arrival(holder, 0);
        self.agenda.put(at, Event::Up { holder, stream, up: Box::new(up) });
    }

    fn deliver(&mut self, holder: Holder, stream: u64, down: Option<Down>) {
        let at = self.arrival(holder, 1);
        self.agenda.put(at, Event::Down { holder, stream, down: down.map(Box::new) });
    }

    fn arrival(&mut self, holder: Holder, way: usize) -> Time {
        let Run { clients, delay, delay_above, lost_in, .. } = self.run;
        let delay = if holder < clients { delay } else { delay_above };
        let is_lost = lost_in > 0 && self.dice.below(lost_in) == 0;
        let again = if is_lost { SAID_AGAIN } else { Duration::ZERO };
        let jitter = if lost_in > 0 { delay / 2 } else { Duration::ZERO };
        let at = self.now + delay + self.dice.time(Duration::ZERO, jitter) + again;
        let clear = &mut self.clear[holder][way];
        *clear = at.max(*clear + Duration::from_nanos(1));
        *clear
    }

    /// A server does what is due.
    fn serve(&mut self, site: usize) {
        for sent in self.sites[site].serve(self.now) {
            match sent {
                Sent::Down(holder, stream, down) => self.deliver(holder, stream, down),
                // Only leaves have somebody above them.
                Sent::Up(stream, up) => self.send(self.run.clients + site - 1, stream, up),
            }
        }
        let due = self.sites[site].due;
        if let Some(at) = self.sites[site].deadline().map(|at| at.max(self.now))
            && due.is_none_or(|due| at < due)
        {
            self.sites[site].due = Some(at);
            self.agenda.put(at, Event::Site(site));
        }
    }
}
