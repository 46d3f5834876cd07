//! Guests with many cases, each booted once for all tests that ask for one of its cases.
//!
//! In: a guest, a case. Out: what the guest left and the case's result. Where all tests are run, the first
//! that asks begins with all guests, those that take longest first, as many beside each other as there are
//! processors. A test that is named waits for no guest but its own.

use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock};

use anyhow::{Context as _, Result, bail, ensure};
use weir_lab::{CaseRun, Kernel, Lab, LabRun, Missing, Places, or_skip};

use crate::{iommu, kernel_lab, kio_module, nvme, roce, xdma};

/// The guests, those that take longest first.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Guest {
    KioDoor,
    KioModule,
    KioNewer,
    Roce,
    Nvme,
    Xdma,
    KioCounting,
    Iommu,
    XdmaCounting,
    Devices,
}

const ALL: [Guest; 10] = [
    Guest::KioDoor,
    Guest::KioModule,
    Guest::KioNewer,
    Guest::Roce,
    Guest::Nvme,
    Guest::Xdma,
    Guest::KioCounting,
    Guest::Iommu,
    Guest::XdmaCounting,
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
        Guest::Xdma | Guest::XdmaCounting => xdma::boot(guest),
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

/// A lab with the newest kernel of a series that has headers.
pub(crate) fn lab_of(series: &str) -> Result<Lab> {
    let unpacked = Kernel::unpacked(&Places::find()?);
    let mut of_series = unpacked.iter().rev();
    let kernel = of_series.find(|kernel| kernel.release.starts_with(series));
    let kernel = kernel.ok_or_else(|| Missing {
        what: format!("no kernel {series}* under lab/kernels"),
        remedy: "cargo xtask test --all unpacks it".to_owned(),
    })?;
    kernel.headers()?;
    Lab::with_kernel(Some(&kernel.image))
}

/// Builds a C program for any guest.
pub(crate) fn static_program(source: &Path) -> Result<PathBuf> {
    let name = source.file_stem().context("a source has a name")?;
    let to = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // Two tests may be here at once.
    let new = to.with_extension(format!("{:?}", std::thread::current().id()));
    let output = Command::new("cc")
        .args(["-O2", "-Wall", "-Wextra", "-Werror", "-static", "-o"])
        .arg(&new)
        .arg(source)
        .output()
        .context("cc")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{said}");
    std::fs::rename(&new, &to)?;
    Ok(to)
}
