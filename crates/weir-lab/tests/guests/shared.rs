//! Guests with many cases, each booted once for all tests that ask for one of its cases.
//!
//! In: a guest, a case. Out: what the guest left and the case's result. Where all tests are run, the first
//! that asks begins with all guests, those that take longest first, as many beside each other as there are
//! processors. A test that is named waits for no guest but its own.

use std::panic::catch_unwind;
use std::sync::{Mutex, OnceLock};

use anyhow::{Context as _, Result, bail};
use weir_lab::{CaseRun, LabRun, or_skip};

use crate::{iommu, kernel_lab, kio_module, nvme, roce};

/// The guests, those that take longest first.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Guest {
    KioDoor,
    KioModule,
    KioNewer,
    Roce,
    Nvme,
    KioCounting,
    Iommu,
    Devices,
}

const ALL: [Guest; 8] = [
    Guest::KioDoor,
    Guest::KioModule,
    Guest::KioNewer,
    Guest::Roce,
    Guest::Nvme,
    Guest::KioCounting,
    Guest::Iommu,
    Guest::Devices,
];

/// Results of a guest: none where it cannot be booted.
type Booted = Result<Option<(LabRun, Vec<CaseRun>)>, String>;

fn boot(guest: Guest) -> Booted {
    let run = catch_unwind(|| match guest {
        Guest::Roce => roce::boot(),
        Guest::Nvme => nvme::boot(),
        Guest::Iommu => iommu::boot(),
        Guest::Devices => kernel_lab::boot(),
        kio => kio_module::boot(kio),
    });
    let run = run.unwrap_or_else(|_| bail!("its boot panicked"));
    or_skip(&format!("{guest:?}"), run).map_err(|error| format!("{error:#}"))
}

fn booted(guest: Guest) -> &'static Booted {
    static RUNS: [OnceLock<Booted>; ALL.len()] = [const { OnceLock::new() }; ALL.len()];
    static NEXT: Mutex<Option<std::slice::Iter<'static, Guest>>> = Mutex::new(None);
    let run = &RUNS[guest as usize];
    let mut words = std::env::args().skip(1);
    if words.any(|word| !word.starts_with('-')) {
        return run.get_or_init(|| boot(guest));
    }
    let next = || NEXT.lock().ok()?.as_mut()?.next().copied();
    let begins = NEXT.lock().is_ok_and(|mut next| {
        let begins = next.is_none();
        next.get_or_insert_with(|| ALL.iter());
        begins
    });
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    for _ in 0..if begins { processors } else { 0 } {
        std::thread::spawn(move || {
            while let Some(guest) = next() {
                // Each is drawn once: nobody has set it.
                let _ = RUNS[guest as usize].set(boot(guest));
            }
        });
    }
    run.wait()
}

/// A case of a guest, and what the guest left.
pub(crate) fn case(
    guest: Guest,
    name: &str,
) -> Result<Option<(&'static LabRun, &'static CaseRun)>> {
    match booted(guest) {
        Ok(Some((run, cases))) => {
            let found = cases.iter().find(|case| case.name == name);
            Ok(Some((run, found.context("a case of this name")?)))
        }
        Ok(None) => Ok(None),
        Err(error) => bail!("{error}"),
    }
}
