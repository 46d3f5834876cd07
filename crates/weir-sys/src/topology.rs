//! CPUs, caches and memory nodes of the machine.
//!
//! In: `/sys/devices/system/{cpu,node}`. Out: plain lists. Not here: what the process may use of
//! them ([`crate::cgroup`], [`crate::pin`]).

use std::sync::OnceLock;

use crate::cpulist::CpuList;
use crate::memory::kib;
use crate::tree::Tree;
use weir_units::Bytes;

const CPUS: &str = "sys/devices/system/cpu";
const NODES: &str = "sys/devices/system/node";

/// The machine's CPUs, caches and memory nodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Topology {
    /// CPUs that are online, ascending.
    pub cpus: Vec<Cpu>,
    /// Caches, each once, smallest level first.
    pub caches: Vec<Cache>,
    /// NUMA nodes; empty where the kernel knows none.
    pub nodes: Vec<Node>,
}

/// One logical CPU.
#[derive(Clone, Debug, PartialEq)]
pub struct Cpu {
    /// The kernel's number.
    pub id: u32,
    /// The socket.
    pub package: Option<u32>,
    /// The core within its package.
    pub core: Option<u32>,
    /// CPUs that share its core, itself included.
    pub siblings: CpuList,
    /// The NUMA node.
    pub node: Option<u32>,
}

/// One cache.
#[derive(Clone, Debug, PartialEq)]
pub struct Cache {
    /// 1 is nearest to the core.
    pub level: u32,
    /// `Data`, `Instruction` or `Unified`.
    pub kind: String,
    /// Its size.
    pub size: Bytes,
    /// CPUs that share it.
    pub cpus: CpuList,
}

/// One NUMA node.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The kernel's number.
    pub id: u32,
    /// Its CPUs; empty for a node of memory alone.
    pub cpus: CpuList,
    /// All its memory.
    pub memory: Option<Bytes>,
    /// Its unused memory.
    pub free: Option<Bytes>,
    /// Distances to all nodes in the order of their numbers; 10 is near.
    pub distances: Vec<u32>,
}

impl Topology {
    /// The topology of this machine, read once: it takes hundreds of files.
    pub fn of_this_machine() -> &'static Self {
        static READ: OnceLock<Topology> = OnceLock::new();
        READ.get_or_init(|| Self::read(&Tree::real()))
    }

    /// Reads the topology of the machine behind `tree`.
    pub fn read(tree: &Tree) -> Self {
        let nodes = nodes(tree);
        let online = list(tree, &format!("{CPUS}/online")).unwrap_or_default();
        let cpus = online.as_slice().iter();
        Self {
            cpus: cpus.map(|&id| cpu(tree, id, &nodes)).collect(),
            caches: caches(tree, &online),
            nodes,
        }
    }

    /// Numbers of the CPUs that are online.
    pub fn online(&self) -> CpuList {
        self.cpus.iter().map(|cpu| cpu.id).collect()
    }

    /// Number of sockets.
    pub fn package_count(&self) -> usize {
        let packages: CpuList = self.cpus.iter().filter_map(|cpu| cpu.package).collect();
        packages.len()
    }

    /// Number of physical cores.
    pub fn core_count(&self) -> usize {
        let first = |cpu: &&Cpu| cpu.siblings.as_slice().first().is_none_or(|&s| s == cpu.id);
        self.cpus.iter().filter(first).count()
    }

    /// The node of a CPU.
    pub fn node_of(&self, cpu: u32) -> Option<u32> {
        self.cpus.iter().find(|c| c.id == cpu)?.node
    }

    /// The size of the largest cache of the last level.
    pub fn last_level_cache(&self) -> Option<Bytes> {
        let level = self.caches.iter().map(|cache| cache.level).max()?;
        let last = self.caches.iter().filter(|cache| cache.level == level);
        last.map(|cache| cache.size).max()
    }
}

fn list(tree: &Tree, entry: &str) -> Option<CpuList> {
    tree.text(entry)?.parse().ok()
}

fn cpu(tree: &Tree, id: u32, nodes: &[Node]) -> Cpu {
    let at = format!("{CPUS}/cpu{id}/topology");
    let siblings = list(tree, &format!("{at}/thread_siblings_list"));
    Cpu {
        id,
        package: tree.number(format!("{at}/physical_package_id")),
        core: tree.number(format!("{at}/core_id")),
        siblings: siblings.unwrap_or_else(|| [id].into_iter().collect()),
        node: nodes.iter().find(|n| n.cpus.contains(id)).map(|n| n.id),
    }
}

fn caches(tree: &Tree, online: &CpuList) -> Vec<Cache> {
    let mut found: Vec<(u32, Cache)> = Vec::new();
    for &cpu in online.as_slice() {
        let at = format!("{CPUS}/cpu{cpu}/cache");
        for index in tree.numbered(&at, "index") {
            // A shared cache is listed once per sharer, and once is enough to read it.
            if found
                .iter()
                .any(|(i, cache)| *i == index && cache.cpus.contains(cpu))
            {
                continue;
            }
            let at = format!("{at}/index{index}");
            let cache = || {
                Some(Cache {
                    level: tree.number(format!("{at}/level"))?,
                    kind: tree.word(format!("{at}/type"))?,
                    size: size(&tree.word(format!("{at}/size"))?)?,
                    cpus: list(tree, &format!("{at}/shared_cpu_list"))?,
                })
            };
            found.extend(cache().map(|cache| (index, cache)));
        }
    }
    let mut caches: Vec<Cache> = found.into_iter().map(|(_, cache)| cache).collect();
    caches.sort_by_key(|cache| cache.level);
    caches
}

/// Cache sizes are written as `32K` (some firmware: `16M`).
fn size(text: &str) -> Option<Bytes> {
    let (number, unit) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 1 << 10),
        b'M' => (&text[..text.len() - 1], 1 << 20),
        _ => (text, 1),
    };
    number.parse::<u64>().ok()?.checked_mul(unit).map(Bytes)
}

fn nodes(tree: &Tree) -> Vec<Node> {
    let numbers = tree.numbered(NODES, "node").into_iter();
    let node = |id| {
        let at = format!("{NODES}/node{id}");
        let memory = tree.text(format!("{at}/meminfo")).unwrap_or_default();
        // `Node 0 MemTotal:  32768 kB`
        let field = |name| {
            let rest = memory.lines().find_map(|line| line.split_once(name));
            rest.and_then(|(_, rest)| kib(rest))
        };
        let distances = tree.text(format!("{at}/distance")).unwrap_or_default();
        Node {
            id,
            cpus: list(tree, &format!("{at}/cpulist")).unwrap_or_default(),
            memory: field("MemTotal:"),
            free: field("MemFree:"),
            distances: distances
                .split_whitespace()
                .filter_map(|word| word.parse().ok())
                .collect(),
        }
    };
    numbers.map(node).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::fake::FakeTree;

    /// Two sockets, two cores each, two threads per core; siblings lie four apart.
    fn two_sockets() -> FakeTree {
        let fake = FakeTree::with(&[
            ("sys/devices/system/cpu/online", "0-7\n"),
            ("sys/devices/system/node/node0/cpulist", "0-1,4-5\n"),
            ("sys/devices/system/node/node1/cpulist", "2-3,6-7\n"),
            ("sys/devices/system/node/node0/distance", "10 21\n"),
            (
                "sys/devices/system/node/node0/meminfo",
                "Node 0 MemTotal:        1024 kB\nNode 0 MemFree:    512 kB\n",
            ),
        ]);
        for cpu in 0..8 {
            let at = format!("sys/devices/system/cpu/cpu{cpu}");
            let core = cpu % 4;
            let siblings = format!("{core},{}\n", core + 4);
            fake.write(&format!("{at}/topology/thread_siblings_list"), &siblings);
            fake.write(
                &format!("{at}/topology/physical_package_id"),
                &(core / 2).to_string(),
            );
            fake.write(&format!("{at}/topology/core_id"), &(core % 2).to_string());
            let shared = if core < 2 { "0-1,4-5" } else { "2-3,6-7" };
            for (index, level, size, cpus) in
                [(0, "1", "32K", siblings.as_str()), (3, "3", "16M", shared)]
            {
                let at = format!("{at}/cache/index{index}");
                fake.write(&format!("{at}/level"), level);
                fake.write(&format!("{at}/type"), "Unified");
                fake.write(&format!("{at}/size"), size);
                fake.write(&format!("{at}/shared_cpu_list"), cpus);
            }
        }
        fake
    }

    #[test]
    fn packages_cores_siblings_and_nodes_are_counted_once() {
        let fake = two_sockets();
        let topology = Topology::read(&fake.tree());
        assert_eq!(topology.online().to_string(), "0-7");
        assert_eq!(topology.package_count(), 2);
        assert_eq!(topology.core_count(), 4);
        assert_eq!(topology.cpus[5].siblings.as_slice(), [1, 5]);
        assert_eq!(topology.node_of(6), Some(1));
        assert_eq!(topology.nodes[0].distances, [10, 21]);
        assert_eq!(topology.nodes[0].memory, Some(Bytes(1 << 20)));
        assert_eq!(topology.nodes[0].free, Some(Bytes(512 << 10)));
        assert_eq!(topology.nodes[1].memory, None);
    }

    #[test]
    fn a_shared_cache_is_listed_once_and_the_last_level_is_found() {
        let fake = two_sockets();
        let topology = Topology::read(&fake.tree());
        assert_eq!(topology.caches.len(), 4 + 2);
        assert_eq!(topology.last_level_cache(), Some(Bytes(16 << 20)));
    }

    #[test]
    fn a_machine_without_sysfs_has_no_topology() {
        let fake = FakeTree::new();
        assert_eq!(Topology::read(&fake.tree()), Topology::default());
    }

    #[test]
    fn this_machine_has_a_cpu() {
        assert!(!Topology::of_this_machine().cpus.is_empty());
    }
}
