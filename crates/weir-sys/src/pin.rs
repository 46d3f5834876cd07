//! CPUs and priority of a thread.
//!
//! In: CPU lists and priorities. Out: the calling thread, pinned. Not here: which CPU is the
//! right one, and where memory comes from ([`crate::mempolicy`]).

use crate::cpulist::CpuList;
use crate::error::SysError;
use rustix::process::{getpriority_process, setpriority_process};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io;
use weir_units::Nanos;

/// Pins the calling thread to the given CPUs.
///
/// # Errors
/// [`SysError::Affinity`] if the set is empty or none of it is online and allowed. A set of which
/// only a part is allowed is refused too, where the kernel would quietly run on that part.
pub fn set_affinity(cpus: &CpuList) -> Result<(), SysError> {
    let fail = |source: io::Error| SysError::Affinity {
        cpus: cpus.to_string(),
        source,
    };
    let mut set = CpuSet::new();
    for &cpu in cpus.as_slice() {
        let cpu = usize::try_from(cpu).unwrap_or(usize::MAX);
        if cpu >= CpuSet::MAX_CPU {
            let why = format!("CPU {cpu} is above {}", CpuSet::MAX_CPU - 1);
            return Err(fail(io::Error::new(io::ErrorKind::InvalidInput, why)));
        }
        set.set(cpu);
    }
    let before = affinity()?;
    sched_setaffinity(None, &set).map_err(|e| fail(e.into()))?;
    let missing: CpuList = {
        let got = affinity()?;
        let wanted = cpus.as_slice().iter().copied();
        wanted.filter(|&cpu| !got.contains(cpu)).collect()
    };
    if missing.is_empty() {
        return Ok(());
    }
    // Back to where the caller was: a refused request changes nothing.
    let mut old = CpuSet::new();
    for &cpu in before.as_slice() {
        old.set(usize::try_from(cpu).unwrap_or(0));
    }
    sched_setaffinity(None, &old).map_err(|e| fail(e.into()))?;
    let why = format!("CPUs {missing} are offline or outside this process's cpuset");
    Err(fail(io::Error::new(io::ErrorKind::InvalidInput, why)))
}

/// The CPUs that the calling thread may run on.
///
/// # Errors
/// [`SysError::Refused`] on a machine with more CPUs than the call can name.
pub fn affinity() -> Result<CpuList, SysError> {
    let set = sched_getaffinity(None).map_err(|e| refused("read the thread's CPUs", e, None))?;
    let cpus = (0u32..).take(CpuSet::MAX_CPU).zip(0usize..);
    Ok(cpus
        .filter(|&(_, i)| set.is_set(i))
        .map(|(cpu, _)| cpu)
        .collect())
}

/// Refuses CPUs outside those that this process was started with, though the kernel would let a
/// thread leave them.
///
/// # Errors
/// A sentence that names the CPUs outside.
pub fn check_allowed(wanted: &[u32]) -> Result<(), String> {
    let allowed = affinity().map_err(|error| error.to_string())?;
    let outside = wanted.iter().filter(|cpu| !allowed.contains(**cpu));
    let outside: CpuList = outside.copied().collect();
    if outside.is_empty() {
        return Ok(());
    }
    Err(format!(
        "CPUs {outside} are outside those that this process was started with ({allowed}): choose among \
         them, or start it with others (taskset, cpuset)"
    ))
}

/// Sets the calling thread's niceness, -20 (first) to 19 (last).
///
/// # Errors
/// [`SysError::Refused`] when raising the priority without the privilege.
pub fn set_nice(nice: i32) -> Result<(), SysError> {
    let remedy = "a lower niceness needs CAP_SYS_NICE or a higher RLIMIT_NICE";
    // The kernel keeps niceness per thread; a process id of none names the calling thread.
    setpriority_process(None, nice)
        .map_err(|e| refused(&format!("set niceness {nice}"), e, Some(remedy)))
}

/// The calling thread's niceness.
///
/// # Errors
/// [`SysError::Refused`], in theory.
pub fn nice() -> Result<i32, SysError> {
    getpriority_process(None).map_err(|e| refused("read the niceness", e, None))
}

/// Time by which the kernel may end a sleep of the calling thread late, to batch timers.
///
/// # Errors
/// [`SysError::Refused`], in theory.
pub fn timer_slack() -> Result<Nanos, SysError> {
    rustix::thread::current_timer_slack()
        .map(Nanos)
        .map_err(|e| refused("read the timer slack", e, None))
}

/// Sets the calling thread's timer slack; zero is the kernel's default for the thread.
///
/// # Errors
/// [`SysError::Refused`], in theory.
pub fn set_timer_slack(slack: Nanos) -> Result<(), SysError> {
    rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(slack.0))
        .map_err(|e| refused("set the timer slack", e, None))
}

/// Advice for memory that cannot be locked.
pub(crate) const MEMLOCK_REMEDY: &str = "raise the limit of locked memory, `ulimit -l`";

pub(crate) fn refused(
    what: &str,
    source: rustix::io::Errno,
    remedy: Option<&'static str>,
) -> SysError {
    SysError::Refused {
        what: what.to_owned(),
        source: source.into(),
        remedy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pinning concerns one thread, so each test takes its own.
    fn on_own_thread(test: impl FnOnce() + Send + 'static) {
        std::thread::spawn(test).join().unwrap();
    }

    #[test]
    fn a_pinned_thread_runs_where_it_was_told() {
        on_own_thread(|| {
            let allowed = affinity().unwrap();
            let last: CpuList = allowed.as_slice().last().copied().into_iter().collect();
            set_affinity(&last).unwrap();
            assert_eq!(affinity().unwrap(), last);
            assert_eq!(rustix::thread::sched_getcpu(), last.as_slice()[0] as usize);
        });
    }

    #[test]
    fn an_impossible_set_is_refused_and_changes_nothing() {
        on_own_thread(|| {
            let before = affinity().unwrap();
            let first = before.as_slice()[0];
            for cpus in [vec![], vec![60_000], vec![first, 1_023]] {
                let cpus: CpuList = cpus.into_iter().collect();
                let message = set_affinity(&cpus).unwrap_err().to_string();
                assert!(message.contains("cannot run on CPUs"), "{message}");
                assert_eq!(affinity().unwrap(), before);
            }
        });
    }

    #[test]
    fn niceness_and_timer_slack_are_the_threads_own() {
        on_own_thread(|| {
            let outside = nice().unwrap();
            on_own_thread(move || {
                set_nice(19).unwrap();
                assert_eq!(nice().unwrap(), 19);
            });
            assert_eq!(nice().unwrap(), outside);
            set_timer_slack(Nanos(1)).unwrap();
            assert_eq!(timer_slack().unwrap(), Nanos(1));
        });
    }
}
