//! Present frequencies of the CPUs, as the kernel sees them.
//!
//! In: a [`Tree`]. Out: a frequency for each CPU whose driver tells one; in virtual machines mostly none.
//! Not here: governors ([`crate::host`]).

use crate::tree::Tree;

/// The present frequency of each CPU, in hertz.
pub fn cpu_frequencies(tree: &Tree) -> Vec<(u32, u64)> {
    let cpus = tree.numbered("sys/devices/system/cpu", "cpu").into_iter();
    let read = |cpu: u32| {
        let path = format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq");
        let kilohertz: u64 = tree.number(path)?;
        Some((cpu, kilohertz.saturating_mul(1000)))
    };
    cpus.filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::fake::FakeTree;

    #[test]
    fn cpus_whose_driver_tells_nothing_are_left_out() {
        let fake = FakeTree::with(&[
            (
                "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq",
                "3500000\n",
            ),
            ("sys/devices/system/cpu/cpu1/online", "1\n"),
            (
                "sys/devices/system/cpu/cpu12/cpufreq/scaling_cur_freq",
                "800000\n",
            ),
        ]);
        let read = cpu_frequencies(&fake.tree());
        assert_eq!(read, [(0, 3_500_000_000), (12, 800_000_000)]);
    }
}
