//! Memory of the machine and of this process.
//!
//! In: `/proc/meminfo`, `/proc/self/status` and the huge page pools. Out: sizes. Not here: memory
//! of one node ([`crate::topology`]) and limits ([`crate::cgroup`], [`crate::limits`]).

use crate::tree::Tree;
use weir_units::Bytes;

/// The machine's memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryFacts {
    /// All of it.
    pub total: Option<Bytes>,
    /// Unused.
    pub free: Option<Bytes>,
    /// Memory to be had without swapping: a file smaller than this may come from the page cache.
    pub available: Option<Bytes>,
    /// Held by the page cache.
    pub cached: Option<Bytes>,
    /// Pools of huge pages, smallest page first.
    pub huge_pages: Vec<HugePagePool>,
}

/// A pool of huge pages of one size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HugePagePool {
    /// The size of a page.
    pub page: Bytes,
    /// Pages in the pool.
    pub total: u64,
    /// Pages nobody holds.
    pub free: u64,
}

impl MemoryFacts {
    /// Reads the memory of the machine behind `tree`.
    pub fn read(tree: &Tree) -> Self {
        let info = tree.text("proc/meminfo").unwrap_or_default();
        let field = |name| info.lines().find_map(|line| kib(line.strip_prefix(name)?));
        Self {
            total: field("MemTotal:"),
            free: field("MemFree:"),
            available: field("MemAvailable:"),
            cached: field("Cached:"),
            huge_pages: huge_pages(tree),
        }
    }
}

fn huge_pages(tree: &Tree) -> Vec<HugePagePool> {
    let top = "sys/kernel/mm/hugepages";
    let pool = |name: String| {
        let kib: u64 = name
            .strip_prefix("hugepages-")?
            .strip_suffix("kB")?
            .parse()
            .ok()?;
        Some(HugePagePool {
            page: Bytes(kib << 10),
            total: tree.number(format!("{top}/{name}/nr_hugepages"))?,
            free: tree.number(format!("{top}/{name}/free_hugepages"))?,
        })
    };
    let mut pools: Vec<_> = tree.names(top).into_iter().filter_map(pool).collect();
    pools.sort_by_key(|pool| pool.page);
    pools
}

/// The most memory this process ever had resident.
pub fn peak_resident(tree: &Tree) -> Option<Bytes> {
    let status = tree.text("proc/self/status")?;
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    kib(peak)
}

/// Reads `   1024 kB`, the kernel's way to write sizes.
pub(crate) fn kib(text: &str) -> Option<Bytes> {
    let number: u64 = text.trim().strip_suffix("kB")?.trim().parse().ok()?;
    number.checked_mul(1024).map(Bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::fake::FakeTree;

    #[test]
    fn memory_and_huge_page_pools_are_read() {
        let fake = FakeTree::with(&[
            (
                "proc/meminfo",
                "MemTotal:       24684092 kB\nMemFree:         100 kB\nMemAvailable:    200 kB\nSwapCached: 9 kB\nCached: 50 kB\n",
            ),
            (
                "sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages",
                "1\n",
            ),
            (
                "sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages",
                "0\n",
            ),
            (
                "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
                "8\n",
            ),
            (
                "sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages",
                "5\n",
            ),
        ]);
        let memory = MemoryFacts::read(&fake.tree());
        assert_eq!(memory.total, Some(Bytes(24_684_092 << 10)));
        assert_eq!(memory.available, Some(Bytes(200 << 10)));
        assert_eq!(memory.cached, Some(Bytes(50 << 10)));
        let pools: Vec<_> = memory
            .huge_pages
            .iter()
            .map(|p| (p.page.0, p.total, p.free))
            .collect();
        assert_eq!(pools, [(2 << 20, 8, 5), (1 << 30, 1, 0)]);
    }

    #[test]
    fn this_process_has_a_peak_of_resident_memory() {
        assert!(peak_resident(&Tree::real()).unwrap().0 > 0);
    }
}
