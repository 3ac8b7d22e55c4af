//! Which domains have become hot, or not: told to all members, however many there are, from one log.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use lessor_proto::Time;

use super::subscriber::Subscriber;

/// The most changes in the log. A member that has missed more is told all domains that are hot.
const MOST_LOGGED: usize = 16_384;

/// The log of domains that have become hot, or ceased to be, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct HotSet {
    log: VecDeque<(Arc<str>, bool)>,
    /// The number of the first one in the log.
    first: u64,
    /// When members are to be told.
    due: Option<Time>,
}

// === impl HotSet ===

impl HotSet {
    /// A domain has become hot, or not, which members are to be told at `due` at the latest.
    pub(super) fn note(&mut self, name: &Arc<str>, is_hot: bool, due: Time) {
        self.log.push_back((Arc::clone(name), is_hot));
        if self.log.len() > MOST_LOGGED {
            self.log.pop_front();
            self.first += 1;
        }
        self.due = Some(self.due.map_or(due, |at| at.min(due)));
    }

    pub(super) fn due(&self) -> Option<Time> {
        self.due
    }

    /// Whether it is time to tell members, which is so once.
    pub(super) fn is_due(&mut self, now: Time) -> bool {
        self.due.take_if(|due| *due <= now).is_some()
    }

    /// Whether a member has been told of everything.
    pub(super) fn is_known(&self, member: &Subscriber) -> bool {
        member.hot.seen == Some(self.next())
    }

    /// Puts what a member was not told of where it is to be told from.
    pub(super) fn catch_up(&self, member: &mut Subscriber, hot: &BTreeSet<Arc<str>>) {
        match member.hot.seen {
            Some(seen) if seen >= self.first => {
                let missed = usize::try_from(seen - self.first).unwrap_or(usize::MAX);
                member.hot.changes.extend(self.log.range(missed.min(self.log.len())..).cloned());
            }
            _ => {
                member.begins = true;
                member.hot.changes = hot.iter().map(|name| (Arc::clone(name), true)).collect();
            }
        }
        member.hot.seen = Some(self.next());
    }

    fn next(&self) -> u64 {
        self.first + self.log.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use lessor_proto::ClientId;
    use lessor_proto::message::HolderKind;

    use super::super::origin::DeltaOrigin;
    use super::*;

    fn told(member: &mut Subscriber) -> Vec<String> {
        let sign = |(name, is_hot): (Arc<str>, bool)| format!("{}{name}", if is_hot { "+" } else { "-" });
        std::mem::take(&mut member.hot.changes).into_iter().map(sign).collect()
    }

    fn member() -> Subscriber {
        Subscriber::new(
            Time::ZERO,
            DeltaOrigin::Below(HolderKind::Client, ClientId::new("web", 256).unwrap(), 1),
        )
    }

    #[test]
    fn whoever_joins_hears_all_and_then_what_changes() {
        let (mut hot_set, mut member) = (HotSet::default(), member());
        let [a, b]: [Arc<str>; 2] = ["a".into(), "b".into()];
        hot_set.note(&a, true, Time::ZERO);
        hot_set.catch_up(&mut member, &BTreeSet::from([Arc::clone(&a)]));
        assert_eq!((told(&mut member), hot_set.is_known(&member)), (vec!["+a".to_owned()], true));
        hot_set.note(&b, true, Time::ZERO);
        hot_set.note(&a, false, Time::ZERO);
        hot_set.note(&b, false, Time::ZERO);
        assert!(!hot_set.is_known(&member));
        hot_set.catch_up(&mut member, &BTreeSet::new());
        assert_eq!(told(&mut member), ["-a", "-b"]);
    }

    #[test]
    fn whoever_has_missed_too_much_begins_anew() {
        let (mut hot_set, mut member) = (HotSet::default(), member());
        let a: Arc<str> = "a".into();
        hot_set.catch_up(&mut member, &BTreeSet::new());
        (0..MOST_LOGGED).for_each(|_| hot_set.note(&a, true, Time::ZERO));
        member.begins = false;
        hot_set.catch_up(&mut member, &BTreeSet::from([Arc::clone(&a)]));
        assert_eq!((told(&mut member), member.begins), (vec!["+a".to_owned()], false));
        (0..=MOST_LOGGED).for_each(|_| hot_set.note(&a, false, Time::ZERO));
        hot_set.catch_up(&mut member, &BTreeSet::new());
        assert_eq!((told(&mut member), member.begins), (Vec::<String>::new(), true));
    }
}
