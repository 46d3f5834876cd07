//! Ranks that were in the table of a group when a run began. One that leaves meanwhile is still called: its calls
//! fail, and those to the others are measured.
//!
//! In: groups as their tables say. Out: the same with the ranks that have left. Not here: the table
//! (`group_table`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weir_schema::{Failure, RpcWorkload};

use crate::group::RpcGroup;

/// Groups by the directory of their table and their name.
type ByTable = BTreeMap<(PathBuf, String), RpcGroup>;

/// Groups as they were when the run began, by their tables.
#[derive(Clone, Debug, Default)]
pub struct KnownGroups(Arc<Mutex<ByTable>>);

impl KnownGroups {
    /// A run begins: this is its group, whoever was in it before.
    pub fn learn(&self, group: &RpcGroup) {
        if let Some(directory) = &group.directory {
            let key = (directory.clone(), group.name.clone());
            self.all().insert(key, group.clone());
        }
    }

    /// A job's group as its table is now, with all ranks that were ever seen in it.
    ///
    /// # Errors
    /// It cannot be read, and never could be.
    pub fn with_left(&self, work: &RpcWorkload, directory: &Path) -> Result<RpcGroup, Failure> {
        let found = RpcGroup::of(work, directory);
        let Some(table) = work.table.as_ref().filter(|_| work.targets.is_empty()) else {
            return found;
        };
        let key = (directory.join(table), work.group.clone());
        let mut all = self.all();
        let known = match (found, all.remove(&key)) {
            (Ok(now), known) => {
                let known = known.into_iter().flat_map(|known| known.members);
                let members = known.chain(now.members).collect();
                RpcGroup { members, ..now }
            }
            (Err(_), Some(known)) => known,
            (Err(failure), None) => return Err(failure),
        };
        all.insert(key, known.clone());
        Ok(known)
    }

    fn all(&self) -> MutexGuard<'_, ByTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::table::GroupTable;

    #[test]
    fn ranks_that_leave_stay_and_those_that_come_back_are_where_they_are_now() {
        let name = format!("weir-known-groups-{}", std::process::id());
        let place = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&place).unwrap();
        let work = RpcWorkload {
            group: "g".to_owned(),
            table: Some(place.display().to_string()),
            ..RpcWorkload::default()
        };
        let known = KnownGroups::default();
        let write = |ranks: &[(u32, u16)]| {
            let at = |port: u16| format!("tcp://127.0.0.1:{port}").parse().unwrap();
            let group = RpcGroup::at("g", ranks.iter().map(|&(rank, port)| (rank, at(port))));
            let table = GroupTable {
                members: group.members,
                said_size: None,
            };
            let file = GroupTable::path(&place, "g");
            std::fs::write(file, table.text("g", false)).unwrap();
        };
        let ports = || {
            let group = known.with_left(&work, Path::new("")).unwrap();
            let address = |(rank, member): (&u32, &crate::group::table::GroupMember)| {
                (*rank, member.addresses[0].place.clone())
            };
            group.members.iter().map(address).collect::<Vec<_>>()
        };
        let all = |ports: &[(u32, u16)]| -> Vec<(u32, String)> {
            let text = |&(rank, port): &(u32, u16)| (rank, format!("127.0.0.1:{port}"));
            ports.iter().map(text).collect()
        };
        assert!(known.with_left(&work, Path::new("")).is_err());
        write(&[(0, 10), (1, 11)]);
        assert_eq!(ports(), all(&[(0, 10), (1, 11)]));
        write(&[(0, 10)]);
        assert_eq!(ports(), all(&[(0, 10), (1, 11)]));
        write(&[(0, 20), (2, 12)]);
        assert_eq!(ports(), all(&[(0, 20), (1, 11), (2, 12)]));
        // The next run begins with what is there.
        known.learn(&RpcGroup::of(&work, Path::new("")).unwrap());
        assert_eq!(ports(), all(&[(0, 20), (2, 12)]));
        std::fs::remove_file(GroupTable::path(&place, "g")).unwrap();
        assert_eq!(ports(), all(&[(0, 20), (2, 12)]));
        std::fs::remove_dir(place).unwrap();
    }
}
