//! Facts about the machine that a result was measured on.
//!
//! In: `uname`, `/proc/cpuinfo`, `/etc/os-release`, `/sys`. Out: facts to be stored beside the
//! numbers. Not here: devices ([`crate::device`]) and the clock ([`crate::clock`]).

use crate::memory::MemoryFacts;
use crate::topology::Topology;
use crate::tree::Tree;
use weir_units::Bytes;

/// A machine.
#[derive(Clone, Debug, PartialEq)]
pub struct DetectedHost {
    /// Its name.
    pub hostname: String,
    /// The kernel's release.
    pub kernel: String,
    /// The instruction set.
    pub architecture: String,
    /// The distribution's name and version.
    pub os: Option<String>,
    /// The CPU's name.
    pub cpu_model: Option<String>,
    /// Logical CPUs online.
    pub cpus: usize,
    /// Physical cores.
    pub cores: usize,
    /// Sockets.
    pub packages: usize,
    /// NUMA nodes.
    pub numa_nodes: usize,
    /// The largest cache of the last level.
    pub last_level_cache: Option<Bytes>,
    /// All memory.
    pub memory: Option<Bytes>,
    /// The frequency governors in force, each once; empty if the kernel does not scale.
    pub governors: Vec<String>,
    /// CPUs may clock above their base frequency.
    pub boost: Option<bool>,
    /// The hypervisor that runs the machine, if it is a virtual one.
    pub hypervisor: Option<String>,
    /// The kernel's clock source.
    pub clocksource: Option<String>,
    /// Tasks that were running or ready to, on the mean over the last minute.
    pub load_average: Option<f64>,
}

impl DetectedHost {
    /// Reads the facts of this machine, with the kernel's files below `tree`.
    pub fn read(tree: &Tree, topology: &Topology) -> Self {
        let system = rustix::system::uname();
        let words = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
        let cpuinfo = tree.cpuinfo();
        Self {
            hostname: words(system.nodename()),
            kernel: words(system.release()),
            architecture: words(system.machine()),
            os: os_name(tree),
            cpu_model: cpuinfo_field(&cpuinfo, "model name").map(ToOwned::to_owned),
            cpus: topology.cpus.len(),
            cores: topology.core_count(),
            packages: topology.package_count(),
            numa_nodes: topology.nodes.len(),
            last_level_cache: topology.last_level_cache(),
            memory: MemoryFacts::read(tree).total,
            governors: governors(tree),
            boost: boost(tree),
            hypervisor: hypervisor(tree, &cpuinfo),
            clocksource: tree
                .word("sys/devices/system/clocksource/clocksource0/current_clocksource"),
            load_average: load_average(tree),
        }
    }
}

/// `0.12 0.10 0.09 2/345 6789`: over one, five and fifteen minutes.
fn load_average(tree: &Tree) -> Option<f64> {
    let text = tree.text("proc/loadavg")?;
    text.split_whitespace().next()?.parse().ok()
}

fn cpuinfo_field<'a>(cpuinfo: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = fields.find(|(key, _)| key.trim() == name)?;
    Some(value.trim())
}

fn os_name(tree: &Tree) -> Option<String> {
    let text = tree
        .text("etc/os-release")
        .or_else(|| tree.text("usr/lib/os-release"))?;
    let name = text
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches(['"', '\'']).to_owned())
}

fn governors(tree: &Tree) -> Vec<String> {
    let top = "sys/devices/system/cpu/cpufreq";
    let policies = tree
        .names(top)
        .into_iter()
        .filter(|name| name.starts_with("policy"));
    let mut governors: Vec<String> = policies
        .filter_map(|policy| tree.word(format!("{top}/{policy}/scaling_governor")))
        .collect();
    governors.sort();
    governors.dedup();
    governors
}

fn boost(tree: &Tree) -> Option<bool> {
    let top = "sys/devices/system/cpu";
    let boost = tree
        .number(format!("{top}/cpufreq/boost"))
        .map(|on: u8| on != 0);
    boost.or_else(|| {
        tree.number(format!("{top}/intel_pstate/no_turbo"))
            .map(|off: u8| off == 0)
    })
}

fn hypervisor(tree: &Tree, cpuinfo: &str) -> Option<String> {
    let flags = cpuinfo_field(cpuinfo, "flags").unwrap_or_default();
    let virtual_cpu = flags.split_whitespace().any(|flag| flag == "hypervisor");
    let kind = tree.word("sys/hypervisor/type");
    if !virtual_cpu && kind.is_none() {
        return None;
    }
    let product = tree.word("sys/class/dmi/id/sys_vendor");
    Some(kind.or(product).unwrap_or_else(|| "unnamed".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::fake::FakeTree;

    #[test]
    fn facts_are_read_from_the_kernels_files() {
        let fake = FakeTree::with(&[
            (
                "proc/cpuinfo",
                "model name\t: Some CPU @ 3 GHz\nflags\t\t: fpu hypervisor\n",
            ),
            ("proc/meminfo", "MemTotal: 1024 kB\n"),
            ("etc/os-release", "NAME=x\nPRETTY_NAME=\"Some OS 12\"\n"),
            ("sys/class/dmi/id/sys_vendor", "QEMU\n"),
            (
                "sys/devices/system/cpu/cpufreq/policy0/scaling_governor",
                "powersave\n",
            ),
            (
                "sys/devices/system/cpu/cpufreq/policy1/scaling_governor",
                "powersave\n",
            ),
            ("sys/devices/system/cpu/intel_pstate/no_turbo", "1\n"),
            ("proc/loadavg", "0.25 0.50 0.75 2/345 6789\n"),
            (
                "sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq",
                "2500000\n",
            ),
        ]);
        let tree = fake.tree();
        let facts = DetectedHost::read(&tree, &Topology::read(&tree));
        assert_eq!(facts.cpu_model.as_deref(), Some("Some CPU @ 3 GHz"));
        assert_eq!(facts.os.as_deref(), Some("Some OS 12"));
        assert_eq!(facts.hypervisor.as_deref(), Some("QEMU"));
        assert_eq!(facts.governors, ["powersave"]);
        assert_eq!(facts.boost, Some(false));
        assert_eq!(facts.memory, Some(Bytes(1 << 20)));
        assert_eq!(facts.load_average, Some(0.25));
    }

    #[test]
    fn what_the_machine_does_not_tell_is_absent() {
        let fake = FakeTree::new();
        let facts = DetectedHost::read(&fake.tree(), &Topology::default());
        assert!(!facts.hostname.is_empty() && !facts.kernel.is_empty());
        assert_eq!(
            (facts.cpu_model, facts.hypervisor, facts.boost),
            (None, None, None)
        );
        assert!(facts.governors.is_empty());
    }
}
