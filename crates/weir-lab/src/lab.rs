//! Settings of a guest's run.
//!
//! In: what a test or the program asks for. Out: a [`Lab`]. Not here: running it (`run`).

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::accel::Accel;
use crate::cpu::Pin;
use crate::host::{Missing, Places};
use crate::initrd::{GuestFile, file_name};
use crate::kernel::Kernel;
use crate::module_build::{self, Built};
use crate::qemu;

/// Task of a guest.
#[derive(Debug, Clone)]
pub enum Task {
    /// A shell script, with the lab's functions.
    Script(String),
    /// A program and its arguments.
    Command(Vec<String>),
    /// Scripts by name, one after the other.
    Cases(Vec<(String, String)>),
    /// A shell on this terminal.
    Shell,
}

/// A guest to be.
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the program, none depends on another"
)]
pub struct Lab {
    pub(crate) places: Places,
    pub(crate) kernel: Kernel,
    pub(crate) accel: Accel,
    pub(crate) processors: u32,
    pub(crate) pin: Pin,
    pub(crate) memory_mib: u32,
    pub(crate) devices: Vec<String>,
    pub(crate) modules: Vec<PathBuf>,
    pub(crate) append: Vec<String>,
    pub(crate) files: Vec<GuestFile>,
    pub(crate) out: Option<PathBuf>,
    pub(crate) results: bool,
    pub(crate) limit: Duration,
    pub(crate) keep: bool,
    pub(crate) verbose: bool,
    pub(crate) echo: bool,
    pub(crate) paranoid: bool,
    pub(crate) gdb: bool,
    pub(crate) expected: Vec<String>,
}

impl Lab {
    /// A guest with this machine's kernel for it and nothing else.
    ///
    /// # Errors
    /// [`Missing`] if a prerequisite is not there.
    pub fn new() -> Result<Self> {
        Self::with_kernel(None)
    }

    /// The same with a kernel that is asked for.
    ///
    /// # Errors
    /// The same.
    pub fn with_kernel(wanted: Option<&Path>) -> Result<Self> {
        let places = Places::find()?;
        qemu::program()?;
        crate::host::need("busybox", "busybox-static")?;
        let kernel = Kernel::find(wanted, &places)?;
        Ok(Self {
            places,
            kernel,
            accel: Accel::Auto,
            processors: 1,
            pin: Pin::Any,
            memory_mib: 768,
            devices: Vec::new(),
            modules: Vec::new(),
            append: Vec::new(),
            files: Vec::new(),
            out: None,
            results: true,
            limit: Duration::from_secs(120),
            keep: false,
            verbose: false,
            echo: false,
            paranoid: false,
            gdb: false,
            expected: Vec::new(),
        })
    }

    /// The guest's kernel.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Sets the folder of its modules, if not beside it.
    #[must_use]
    pub fn modules_folder(mut self, folder: Option<PathBuf>) -> Self {
        self.kernel.modules = folder.or(self.kernel.modules);
        self
    }

    /// Sets the accelerator.
    #[must_use]
    pub fn accel(mut self, accel: Accel) -> Self {
        self.accel = accel;
        self
    }

    /// Sets the number of processors.
    #[must_use]
    pub fn processors(mut self, count: u32) -> Self {
        self.processors = count;
        self
    }

    /// Sets the CPUs of the emulator.
    #[must_use]
    pub fn pin(mut self, pin: Pin) -> Self {
        self.pin = pin;
        self
    }

    /// Sets the size of its memory.
    #[must_use]
    pub fn memory_mib(mut self, mebibytes: u32) -> Self {
        self.memory_mib = mebibytes;
        self
    }

    /// Adds a device; the script finds its node in `$LAB_DEV_0` and so on.
    #[must_use]
    pub fn dev(mut self, spec: &str) -> Self {
        self.devices.push(spec.to_owned());
        self
    }

    /// Adds a module at `/lab`, for the script to load: a `.ko`, or the folder of its sources, which
    /// is built for the guest's kernel. Warnings of the kernel then end the guest.
    #[must_use]
    pub fn module(mut self, path: impl Into<PathBuf>) -> Self {
        self.modules.push(path.into());
        self
    }

    /// Adds parameters to the kernel's command line.
    #[must_use]
    pub fn append(mut self, text: &str) -> Self {
        self.append.push(text.to_owned());
        self
    }

    /// Adds a file or a folder; a program brings its libraries.
    #[must_use]
    pub fn file(mut self, host: impl Into<PathBuf>, guest: &str) -> Self {
        self.files.push((host.into(), guest.to_owned()));
        self
    }

    /// Sets the folder of logs and results; without it, they go to a folder of the lab's own.
    #[must_use]
    pub fn out(mut self, folder: Option<PathBuf>) -> Self {
        self.out = folder;
        self
    }

    /// Sets if the files of `/out` are brought out.
    #[must_use]
    pub fn results(mut self, wanted: bool) -> Self {
        self.results = wanted;
        self
    }

    /// The time limit, from the emulator's start.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Sets if disks and the first file system stay.
    #[must_use]
    pub fn keep(mut self, keep: bool) -> Self {
        self.keep = keep;
        self
    }

    /// Sets if QEMU's command line and the kernel's log go to standard error.
    #[must_use]
    pub fn verbose(mut self, verbose: bool) -> Self {
        self.verbose = verbose;
        self
    }

    /// Sets if the script's output goes to standard output as it comes.
    #[must_use]
    pub fn echo(mut self, echo: bool) -> Self {
        self.echo = echo;
        self
    }

    /// Sets if the kernel looks for misuse of memory.
    #[must_use]
    pub fn paranoid(mut self, paranoid: bool) -> Self {
        self.paranoid = paranoid;
        self
    }

    /// Sets if it waits for a debugger on port 1234.
    #[must_use]
    pub fn gdb(mut self, gdb: bool) -> Self {
        self.gdb = gdb;
        self
    }

    /// Words of complaints that are no fault here.
    #[must_use]
    pub fn expect(mut self, text: &str) -> Self {
        self.expected.push(text.to_owned());
        self
    }

    /// Adds `HOST[:GUEST]`; a file without a place lies in `/lab`.
    ///
    /// # Errors
    /// If there is no such file.
    pub fn file_spec(mut self, text: &str) -> Result<Self> {
        self.files.push(guest_file(text)?);
        Ok(self)
    }

    /// Builds a module's folder for the guest's kernel, or finds the build of the same sources.
    ///
    /// # Errors
    /// [`Missing`] without headers; else with what the compiler said.
    pub fn build(&self, folder: impl AsRef<Path>) -> Result<Built> {
        module_build::build(&self.places, &self.kernel, folder.as_ref())
    }
}

/// Parses `HOST[:GUEST]` of `--file`.
///
/// # Errors
/// If it names no file.
pub(crate) fn guest_file(text: &str) -> Result<GuestFile> {
    let (host, guest) = match text.split_once(':') {
        Some((host, guest)) => (PathBuf::from(host), guest.to_owned()),
        None => (PathBuf::from(text), String::new()),
    };
    ensure!(host.exists(), "file {}: it does not exist", host.display());
    let guest = match guest.as_str() {
        "" => format!("lab/{}", file_name(&host)?),
        path => path.to_owned(),
    };
    Ok((host, guest))
}

/// The missing prerequisite that an error is about, if it is about one.
pub(crate) fn missing(error: &anyhow::Error) -> Option<&Missing> {
    error.downcast_ref::<Missing>()
}
