//! Limits of the process's control groups, and counts of how often they held it back.
//!
//! In: `/proc/self/cgroup` and the controllers' files, version 1 or 2 or both mounted together.
//! Out: the tightest limit of each kind along the way up, and counters to be read twice. Not
//! here: warnings.

use crate::cpulist::CpuList;
use crate::mounts::{DevId, Mount, mounts};
use crate::tree::Tree;
use std::path::{Path, PathBuf};
use weir_units::{Bytes, Nanos};

/// Limits that bind the process; `None` is unlimited.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CgroupLimits {
    /// CPU time per time: 1.5 is one and a half CPUs.
    pub cpus: Option<f64>,
    /// CPUs it may run on.
    pub cpuset: Option<CpuList>,
    /// Memory nodes it may use.
    pub memory_nodes: Option<CpuList>,
    /// Memory.
    pub memory: Option<Bytes>,
    /// Limits per device.
    pub io: Vec<IoLimit>,
}

/// A limit on one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoLimit {
    /// The device.
    pub dev: DevId,
    /// The limited one of the four rates.
    pub kind: IoLimitKind,
    /// Bytes or operations per second.
    pub per_second: u64,
}

/// The quantity that an [`IoLimit`] limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoLimitKind {
    /// Bytes read per second.
    ReadBytes,
    /// Bytes written per second.
    WriteBytes,
    /// Reads per second.
    Reads,
    /// Writes per second.
    Writes,
}

/// Counters that rise when the groups hold the process back; read before and after a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throttling {
    /// Periods in which the CPU quota ran out.
    pub cpu_periods: Option<u64>,
    /// Time spent waiting for quota, over all CPUs.
    pub cpu_time: Option<Nanos>,
    /// Time in which every task of the group waited for I/O (version 2 only). It counts slow
    /// devices as well as throttling, so it says something only where a limit is set.
    pub io_stalled: Option<Nanos>,
}

/// Reads the limits of this process.
pub fn limits(tree: &Tree) -> CgroupLimits {
    let mut limits = CgroupLimits::default();
    for group in groups(tree) {
        let read = |file: &str| tree.word(group.join(file));
        if let Some(cpus) = cpu_quota(&read) {
            limits.cpus = Some(limits.cpus.map_or(cpus, |tightest| tightest.min(cpus)));
        }
        let memory = read("memory.max").or_else(|| read("memory.limit_in_bytes"));
        if let Some(memory) = memory.as_deref().and_then(memory_limit) {
            limits.memory = Some(
                limits
                    .memory
                    .map_or(memory, |tightest| tightest.min(memory)),
            );
        }
        // Groups come innermost first, and a child's effective set is within its parent's.
        let list = |v2: &str, v1: &str| read(v2).or_else(|| read(v1))?.parse().ok();
        let cpus = || list("cpuset.cpus.effective", "cpuset.effective_cpus");
        limits.cpuset = limits.cpuset.or_else(cpus);
        let nodes = || list("cpuset.mems.effective", "cpuset.effective_mems");
        limits.memory_nodes = limits.memory_nodes.or_else(nodes);
        limits.io.extend(io_limits(&read));
    }
    limits
}

/// Reads the counters of this process's groups.
pub fn throttling(tree: &Tree) -> Throttling {
    let mut found = Throttling::default();
    for group in groups(tree) {
        let stat = tree.text(group.join("cpu.stat")).unwrap_or_default();
        let field = |name: &str| {
            let line = stat.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|value| value.trim().parse::<u64>().ok())
        };
        // Each group counts what its own quota did. The sum rises whenever one of them rises.
        if let Some(periods) = field("nr_throttled ") {
            found.cpu_periods = Some(found.cpu_periods.unwrap_or(0) + periods);
        }
        let micros = field("throttled_usec ").map(|us| us.saturating_mul(1_000));
        if let Some(nanos) = micros.or_else(|| field("throttled_time ")) {
            let before = found.cpu_time.map_or(0, |time| time.0);
            found.cpu_time = Some(Nanos(before.saturating_add(nanos)));
        }
        // Groups come innermost first; those further out count their other children too.
        if found.io_stalled.is_none() {
            found.io_stalled = io_stalled(tree, &group);
        }
    }
    found
}

/// `full avg10=0.00 avg60=0.00 avg300=0.00 total=12345`, in microseconds.
fn io_stalled(tree: &Tree, group: &Path) -> Option<Nanos> {
    let pressure = tree.text(group.join("io.pressure"))?;
    let full = pressure.lines().find(|line| line.starts_with("full"))?;
    let micros: u64 = full.rsplit_once("total=")?.1.parse().ok()?;
    Some(Nanos(micros.saturating_mul(1_000)))
}

/// Directories of the process's groups in every mounted hierarchy, innermost first.
fn groups(tree: &Tree) -> Vec<PathBuf> {
    let memberships = tree.text("proc/self/cgroup").unwrap_or_default();
    let mounts = mounts(tree);
    let mut groups = Vec::new();
    for line in memberships.lines() {
        // `4:memory:/path` in version 1, `0::/path` in version 2
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
            continue;
        };
        if let Some(mount) = mounts.iter().find(|mount| carries(mount, controllers)) {
            let inside = Path::new(path)
                .strip_prefix(&mount.root)
                .unwrap_or(Path::new(""));
            // A group outside this namespace (`/../x`) shows only the mount's own top.
            let outside = path.starts_with("/..");
            let inside = if outside { Path::new("") } else { inside };
            groups.extend(inside.ancestors().map(|up| mount.point.join(up)));
        }
    }
    groups
}

/// True if a mount shows the hierarchy of these controllers.
fn carries(mount: &Mount, controllers: &str) -> bool {
    match mount.fs_type.as_str() {
        "cgroup2" => controllers.is_empty(),
        "cgroup" => {
            let mut wanted = controllers.split(',').filter(|c| !c.is_empty());
            wanted.any(|wanted| mount.options.split(',').any(|option| option == wanted))
        }
        _ => false,
    }
}

/// Version 2: `max 100000` or `150000 100000`; version 1: two files, -1 for none.
#[expect(clippy::cast_precision_loss, reason = "a ratio of microseconds")]
fn cpu_quota(read: &impl Fn(&str) -> Option<String>) -> Option<f64> {
    let (quota, period) = match read("cpu.max") {
        Some(both) => {
            let (quota, period) = both.split_once(' ')?;
            (quota.to_owned(), period.to_owned())
        }
        None => (read("cpu.cfs_quota_us")?, read("cpu.cfs_period_us")?),
    };
    let quota: u64 = quota.parse().ok()?;
    let period: u64 = period.parse().ok().filter(|&period| period > 0)?;
    Some(quota as f64 / period as f64)
}

/// Version 2 writes `max` for none, version 1 a number near the largest.
fn memory_limit(text: &str) -> Option<Bytes> {
    let limit: u64 = text.parse().ok()?;
    (limit < 1 << 60).then_some(Bytes(limit))
}

fn io_limits(read: &impl Fn(&str) -> Option<String>) -> Vec<IoLimit> {
    use IoLimitKind::{ReadBytes, Reads, WriteBytes, Writes};
    let mut limits = Vec::new();
    let mut add = |dev: &str, kind, value: &str| {
        if let (Ok(dev), Ok(per_second)) = (dev.parse(), value.parse()) {
            limits.push(IoLimit {
                dev,
                kind,
                per_second,
            });
        }
    };
    // `8:16 rbps=2097152 wiops=max`
    for line in read("io.max").unwrap_or_default().lines() {
        let mut words = line.split_whitespace();
        let dev = words.next().unwrap_or_default();
        for (name, value) in words.filter_map(|word| word.split_once('=')) {
            match name {
                "rbps" => add(dev, ReadBytes, value),
                "wbps" => add(dev, WriteBytes, value),
                "riops" => add(dev, Reads, value),
                "wiops" => add(dev, Writes, value),
                _ => {}
            }
        }
    }
    for (file, kind) in [
        ("blkio.throttle.read_bps_device", ReadBytes),
        ("blkio.throttle.write_bps_device", WriteBytes),
        ("blkio.throttle.read_iops_device", Reads),
        ("blkio.throttle.write_iops_device", Writes),
    ] {
        for line in read(file).unwrap_or_default().lines() {
            if let Some((dev, value)) = line.split_once(' ') {
                add(dev, kind, value);
            }
        }
    }
    limits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::fake::FakeTree;

    #[test]
    fn version_2_limits_are_the_tightest_on_the_way_up() {
        let fake = FakeTree::with(&[
            ("proc/self/cgroup", "0::/a/b\n"),
            (
                "proc/self/mountinfo",
                "30 20 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            ),
            ("sys/fs/cgroup/a/cpu.max", "150000 100000\n"),
            ("sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
            ("sys/fs/cgroup/a/memory.max", "1048576\n"),
            ("sys/fs/cgroup/a/b/memory.max", "2097152\n"),
            ("sys/fs/cgroup/cpuset.cpus.effective", "0-7\n"),
            ("sys/fs/cgroup/a/b/cpuset.cpus.effective", "2-3\n"),
            (
                "sys/fs/cgroup/a/b/io.max",
                "8:16 rbps=2097152 wbps=max riops=max wiops=120\n",
            ),
            (
                "sys/fs/cgroup/a/b/cpu.stat",
                "usage_usec 5\nnr_throttled 7\nthrottled_usec 12\n",
            ),
            (
                "sys/fs/cgroup/a/b/io.pressure",
                "some avg10=0.00 total=9\nfull avg10=0.00 total=4\n",
            ),
        ]);
        let limits = limits(&fake.tree());
        assert_eq!(limits.cpus, Some(1.5));
        assert_eq!(limits.memory, Some(Bytes(1 << 20)));
        assert_eq!(limits.cpuset.unwrap().to_string(), "2-3");
        let io: Vec<_> = limits
            .io
            .iter()
            .map(|l| (l.dev.to_string(), l.kind, l.per_second))
            .collect();
        assert_eq!(
            io,
            [
                ("8:16".to_owned(), IoLimitKind::ReadBytes, 2_097_152),
                ("8:16".to_owned(), IoLimitKind::Writes, 120)
            ]
        );
        let throttled = Throttling {
            cpu_periods: Some(7),
            cpu_time: Some(Nanos(12_000)),
            io_stalled: Some(Nanos(4_000)),
        };
        assert_eq!(throttling(&fake.tree()), throttled);
    }

    #[test]
    fn version_1_limits_are_read_from_each_controllers_mount() {
        let fake = FakeTree::with(&[
            (
                "proc/self/cgroup",
                "3:cpu,cpuacct:/box\n2:memory:/docker/x\n1:blkio:/\n0::/\n",
            ),
            (
                "proc/self/mountinfo",
                "1 0 0:1 / /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
                 2 0 0:2 /docker/x /cg/memory rw - cgroup cgroup rw,memory\n\
                 3 0 0:3 / /cg/blkio rw - cgroup cgroup rw,blkio\n",
            ),
            ("cg/cpu/box/cpu.cfs_quota_us", "50000\n"),
            ("cg/cpu/box/cpu.cfs_period_us", "100000\n"),
            ("cg/cpu/cpu.cfs_quota_us", "-1\n"),
            ("cg/cpu/cpu.cfs_period_us", "100000\n"),
            (
                "cg/cpu/box/cpu.stat",
                "nr_periods 3\nnr_throttled 2\nthrottled_time 99\n",
            ),
            ("cg/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("cg/blkio/blkio.throttle.read_bps_device", "254:0 1000\n"),
        ]);
        let limits = limits(&fake.tree());
        assert_eq!(limits.cpus, Some(0.5));
        assert_eq!(limits.memory, None);
        assert_eq!(limits.io.len(), 1);
        let throttling = throttling(&fake.tree());
        assert_eq!(throttling.cpu_periods, Some(2));
        assert_eq!(throttling.cpu_time, Some(Nanos(99)));
        assert_eq!(throttling.io_stalled, None);
    }

    #[test]
    fn a_machine_without_control_groups_has_no_limits() {
        let fake = FakeTree::new();
        assert_eq!(limits(&fake.tree()), CgroupLimits::default());
        assert_eq!(throttling(&fake.tree()), Throttling::default());
    }
}
