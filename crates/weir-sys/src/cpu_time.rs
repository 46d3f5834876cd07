//! Use of the CPUs' time.
//!
//! In: `/proc/stat`. Out: counters per CPU, to be read twice and subtracted. Not here: one
//! thread's time ([`crate::usage`]).

use crate::tree::Tree;
use weir_units::Nanos;

/// Time of one CPU since boot, by what it did. The kernel counts in hundredths of a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// User code, niced code included.
    pub user: Nanos,
    /// Kernel code.
    pub system: Nanos,
    /// Interrupts, hard and soft.
    pub interrupts: Nanos,
    /// Nothing to do.
    pub idle: Nanos,
    /// Nothing to do while I/O of a task that ran here was open.
    pub io_wait: Nanos,
    /// Ready to run while the hypervisor ran something else.
    pub steal: Nanos,
}

impl CpuTimes {
    /// Times added since an earlier reading.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let span = |now: Nanos, then: Nanos| Nanos(now.0.saturating_sub(then.0));
        Self {
            user: span(self.user, earlier.user),
            system: span(self.system, earlier.system),
            interrupts: span(self.interrupts, earlier.interrupts),
            idle: span(self.idle, earlier.idle),
            io_wait: span(self.io_wait, earlier.io_wait),
            steal: span(self.steal, earlier.steal),
        }
    }

    /// All of the time.
    pub fn total(&self) -> Nanos {
        let parts = [
            self.user,
            self.system,
            self.interrupts,
            self.idle,
            self.io_wait,
            self.steal,
        ];
        Nanos(parts.iter().map(|part| part.0).sum())
    }
}

/// The times of every online CPU, by its number, ascending.
pub fn cpu_times(tree: &Tree) -> Vec<(u32, CpuTimes)> {
    let text = tree.text("proc/stat").unwrap_or_default();
    text.lines().filter_map(parse).collect()
}

/// `cpu3 user nice system idle iowait irq softirq steal guest guest_nice`; guest time is part of
/// user time.
fn parse(line: &str) -> Option<(u32, CpuTimes)> {
    let mut words = line.strip_prefix("cpu")?.split_whitespace();
    // The first line, `cpu `, is the sum; its first word is a count.
    let id = line.as_bytes().get(3).filter(|byte| byte.is_ascii_digit());
    id?;
    let id = words.next()?.parse().ok()?;
    let tick = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
    let mut next = || {
        Nanos(
            words
                .next()
                .and_then(|word| word.parse().ok())
                .unwrap_or(0u64)
                * tick,
        )
    };
    let (user, nice, system, idle, io_wait) = (next(), next(), next(), next(), next());
    let (hard, soft, steal) = (next(), next(), next());
    let times = CpuTimes {
        user: Nanos(user.0 + nice.0),
        system,
        interrupts: Nanos(hard.0 + soft.0),
        idle,
        io_wait,
        steal,
    };
    Some((id, times))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::fake::FakeTree;

    #[test]
    fn each_cpu_line_is_read_and_the_sum_is_not() {
        let fake = FakeTree::with(&[(
            "proc/stat",
            "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 2 3 4 5 6 7 8 0 0\ncpu12 100 0 0 0\nintr 5\n",
        )]);
        let times = cpu_times(&fake.tree());
        let ms = |n: u64| Nanos(n * 10_000_000);
        let cpu0 = CpuTimes {
            user: ms(3),
            system: ms(3),
            interrupts: ms(13),
            idle: ms(4),
            io_wait: ms(5),
            steal: ms(8),
        };
        assert_eq!(times[0], (0, cpu0));
        assert_eq!(cpu0.total(), ms(36));
        assert_eq!((times[1].0, times[1].1.user), (12, ms(100)));
        assert_eq!(times.len(), 2);
        assert_eq!(cpu0.since(&cpu0), CpuTimes::default());
    }
}
