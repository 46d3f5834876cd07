//! The processor on which an emulator runs: each boot takes one of this machine's for itself.
//!
//! In: the wish of `--pin`. Out: a [`CpuPlace`], held until it is dropped, over processes too. Why
//! one: QEMU's NVMe loses commands when its threads run on two processors, and more emulators than
//! processors only slow each other down. Not here: how QEMU is started (`qemu`).

use std::fs::{File, TryLockError};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::host::Places;

/// CPUs on which an emulator may run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Pin {
    /// On any one processor.
    #[default]
    Any,
    /// On this one.
    Cpu(usize),
    /// On all of them.
    None,
    /// On all of them, beside another guest of the same test, which has a processor.
    Beside,
}

/// A processor that this boot has for itself.
#[derive(Debug)]
pub(crate) struct CpuPlace {
    pub(crate) cpu: usize,
    _lock: Option<File>,
}

/// Waits until a processor is free.
pub(crate) fn take(places: &Places, pin: Pin) -> Result<CpuPlace> {
    let allowed = allowed()?;
    let wanted: Vec<usize> = match pin {
        Pin::Cpu(cpu) => {
            ensure!(
                allowed.contains(&cpu),
                "processor {cpu} is not one of those allowed here: {allowed:?}"
            );
            vec![cpu]
        }
        // Two guests that wait for each other cannot wait for processors too.
        Pin::Beside => {
            return Ok(CpuPlace {
                cpu: 0,
                _lock: None,
            });
        }
        Pin::Any | Pin::None => allowed,
    };
    let folder = places.folder("lock")?;
    loop {
        for &cpu in &wanted {
            let path = folder.join(format!("cpu-{cpu}"));
            let lock = File::create(&path).with_context(|| path.display().to_string())?;
            match lock.try_lock() {
                Ok(()) => {
                    return Ok(CpuPlace {
                        cpu,
                        _lock: Some(lock),
                    });
                }
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error.into()),
            }
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn allowed() -> Result<Vec<usize>> {
    let set = rustix::thread::sched_getaffinity(None)?;
    let most = rustix::thread::CpuSet::MAX_CPU;
    Ok((0..most).filter(|cpu| set.is_set(*cpu)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_boots_never_share_a_processor() {
        let state = std::env::temp_dir().join(format!("weir-lab-cpu-{}", std::process::id()));
        let places = Places {
            root: state.clone(),
            state: state.clone(),
        };
        let cpus = allowed().unwrap();
        let taken: Vec<CpuPlace> = cpus
            .iter()
            .map(|_| take(&places, Pin::Any).unwrap())
            .collect();
        let mut numbers: Vec<usize> = taken.iter().map(|place| place.cpu).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, cpus);
        let error = take(&places, Pin::Cpu(100_000)).unwrap_err().to_string();
        assert!(error.contains("100000"), "{error}");
        drop(taken);
        take(&places, Pin::Cpu(cpus[0])).unwrap();
        std::fs::remove_dir_all(state).unwrap();
    }
}
