//! The value of the key that says at which etcd the record was written.

use super::fault::{BadRecord, bad};
use super::words::number;
use crate::election::call::Stored;
use crate::record::EtcdCluster;

const CLUSTER: &str = "1 id _ term _ (numbers for _)";

// === impl EtcdCluster ===

impl EtcdCluster {
    pub(in crate::election) fn encode(&self) -> String {
        format!("1 id {} term {}", self.id, self.term)
    }

    pub(super) fn decode(stored: &Stored) -> Result<EtcdCluster, BadRecord> {
        let read = || {
            let mut words = std::str::from_utf8(&stored.value).ok()?.split_whitespace();
            (words.next()? == "1").then_some(())?;
            let (id, term) = (number(&mut words, "id")?, number(&mut words, "term")?);
            words.next().is_none().then_some(EtcdCluster { id, term })
        };
        read().ok_or_else(|| bad(stored, CLUSTER))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::RecordKeys;
    use super::*;
    use crate::record::Record;

    fn stored(key: &str, value: &str) -> Stored {
        Stored { key: key.into(), value: value.into(), create_revision: 1, mod_revision: 5, lease: None }
    }

    const HEADER: &str = "1 epoch 7 write 2 longest_lease_ns 60 authority_ns 4 closed no config_version 3";

    proptest! {
        #[test]
        fn what_is_written_is_read(id: u64, term: u64) {
            let cluster = EtcdCluster { id, term };
            prop_assert_eq!(EtcdCluster::decode(&stored("k", &cluster.encode())).unwrap(), cluster);
        }
    }

    #[test]
    fn a_record_says_where_it_was_written_or_does_not() {
        let keys = RecordKeys::new("lessor", "root");
        let header = stored(&keys.epoch, HEADER);
        let read = |stored: &[Stored]| Record::decode(&keys, stored).map(|(record, _)| record.written_at);
        assert_eq!(read(std::slice::from_ref(&header)), Ok(None), "an earlier version does not");
        let with = |value| [header.clone(), stored("lessor/root/cluster", value)];
        assert_eq!(read(&with("1 id 9 term 3")), Ok(Some(EtcdCluster { id: 9, term: 3 })));
        let bad = read(&with("1 id nine")).unwrap_err().to_string();
        assert_eq!(
            bad,
            "key \"lessor/root/cluster\" holds \"1 id nine\", and not 1 id _ term _ (numbers for _)"
        );
        let later = read(&with("2 id 9")).unwrap_err().to_string();
        assert!(later.contains("which a later version has written: form 2"), "{later}");
    }
}
