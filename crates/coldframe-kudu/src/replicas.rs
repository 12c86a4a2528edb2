//! Chooses which replica of a tablet is read, and finds the tablets that a table lacks.

use std::collections::{BTreeMap, BTreeSet};

use coldframe_core::Result;
use coldframe_core::io::Folder;

use crate::layout::proto::Partition;
use crate::missing::{Absent, absent, missing_tablet};
use crate::rowset::{Reading, newest_operation};
use crate::tablet::{Tablet, Unreadable};
use crate::wal::{Tail, tail};

/// The complete replicas of a tablet. At least one.
#[derive(Debug)]
pub(crate) struct Replicas(Vec<Tablet>);

impl Replicas {
    /// The best replica, judged by super blocks and Raft groups.
    pub(crate) fn best(&self) -> Option<&Tablet> {
        self.0.first()
    }

    /// How many voters the best replica's Raft group has, and how many of them are here, if these are no majority:
    /// the other servers may have operations that these lack.
    pub(crate) fn minority(&self) -> Option<(usize, usize)> {
        let voters = self.best()?.voters()?;
        let here = self.0.iter().filter(|t| t.voters().is_some()).map(|t| t.server.uuid.as_str());
        let here = here.collect::<BTreeSet<_>>().len();
        (here * 2 <= voters).then_some((voters, here))
    }

    /// The best replica, and the tails of the logs of the other voting replicas. Among replicas with equally
    /// good super blocks and Raft groups, the best replica is the replica whose log has the most committed
    /// operations.
    pub(crate) fn choose(
        mut self,
        folder: &dyn Folder,
        reading: &Reading,
        wal: bool,
    ) -> Result<Option<(Tablet, Vec<Tail>)>> {
        if self.0.len() == 1 || !wal || self.0.iter().all(|t| t.segments.count() == 0) {
            return Ok(self.0.into_iter().next().map(|best| (best, Vec::new())));
        }
        let how = (reading.verify, &reading.limits);
        let tails = self.0.iter().map(|t| tail(t, folder, how));
        let mut tails: Vec<Tail> = tails.collect::<Result<_>>()?;
        let top = self.0.first().map(Tablet::rank);
        let equals = self.0.iter().take_while(|t| Some(t.rank()) == top).count();
        let logged = self.0.iter().take(equals).all(|t| t.segments.count() > 0);
        let mut best = 0;
        for (i, tail) in tails.iter().enumerate().take(equals).filter(|_| logged) {
            let best_progress = tails.get(best).map(|t| (t.committed, t.last()));
            if Some((tail.committed, tail.last())) > best_progress {
                best = i;
            }
        }
        let chosen = self.0.swap_remove(best);
        tails.swap_remove(best);
        // A server that was copied twice still has only one vote.
        let voting = self.0.iter().zip(tails).filter(|(t, _)| t.voters().is_some());
        let mut by_server: BTreeMap<&str, Tail> =
            voting.map(|(t, tail)| (t.server.uuid.as_str(), tail)).collect();
        by_server.remove(chosen.server.uuid.as_str());
        let others = by_server.into_values().collect();
        Ok(Some((chosen, others)))
    }
}

/// The complete replicas of each tablet, best first, ordered by table and partition. If super blocks and Raft groups do
/// not decide, the replica with the newest operation in its delta files is the best: delta files have the
/// insertion of every flushed row.
pub(crate) fn by_tablet(all: Vec<Tablet>, reading: &Reading) -> Vec<Replicas> {
    let mut by_id: BTreeMap<String, Vec<Tablet>> = BTreeMap::new();
    for tablet in all.into_iter().filter(Tablet::ready) {
        by_id.entry(tablet.id.clone()).or_default().push(tablet);
    }
    let mut tablets: Vec<Replicas> = Vec::with_capacity(by_id.len());
    for mut replicas in by_id.into_values() {
        // The sort is stable, so the order of equal replicas stays as it is.
        replicas.sort_by_key(|t| std::cmp::Reverse(t.rank()));
        let top = replicas.first().map(Tablet::rank);
        let equals = replicas.iter().take_while(|t| Some(t.rank()) == top).count();
        if let Some(equals) = replicas.get_mut(..equals).filter(|e| e.len() > 1) {
            equals.sort_by_cached_key(|t| std::cmp::Reverse((newest_operation(t, reading), t.term())));
        }
        tablets.push(Replicas(replicas));
    }
    tablets.sort_by(|a, b| a.best().map(order).cmp(&b.best().map(order)));
    tablets
}

fn order(tablet: &Tablet) -> (&str, &str, &[u8], &[i32], &str) {
    let start = tablet.partition.start.as_deref().unwrap_or_default();
    (&tablet.table, &tablet.table_id, start, &tablet.partition.hash_buckets, &tablet.id)
}

/// An incomplete replica.
pub(crate) struct Incomplete {
    id: String,
    table_id: String,
    partition: Partition,
    why: &'static str,
}

/// The replicas whose data is incomplete.
pub(crate) fn incomplete(all: &[Tablet]) -> Vec<Incomplete> {
    let of = |t: &Tablet| {
        let (id, table_id, partition) = (t.id.clone(), t.table_id.clone(), t.partition.clone());
        t.incomplete().map(|why| Incomplete { id, table_id, partition, why })
    };
    all.iter().filter_map(of).collect()
}

/// The tablets that have only incomplete replicas in the directory, and the partitions without any tablet.
/// Other servers may hold these.
pub(crate) fn missing(tablets: &[&Tablet], incomplete: &[Incomplete]) -> (Vec<Unreadable>, Vec<Absent>) {
    let Some(first) = tablets.first() else { return (Vec::new(), Vec::new()) };
    let whole: BTreeSet<&str> = tablets.iter().map(|t| t.id.as_str()).collect();
    let mut seen = BTreeSet::new();
    let mut known: Vec<&Partition> = tablets.iter().map(|t| &t.partition).collect();
    let mut missing = Vec::new();
    for replica in incomplete.iter().filter(|replica| replica.table_id == first.table_id) {
        if !whole.contains(replica.id.as_str()) && seen.insert(&replica.id) {
            known.push(&replica.partition);
            missing.push(missing_tablet(
                &replica.id,
                &format!("expected a complete replica, found {}", replica.why),
            ));
        }
    }
    (missing, absent(tablets, &known))
}
