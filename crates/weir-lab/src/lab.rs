//! One run: settings, the guest's files, the emulator, its verdict.
//!
//! In: what a test or `lab/vm run` asks for. Out: a [`LabRun`]. A run in which the emulated NVMe lost
//! a command is repeated once, and says so. Not here: several scripts in one guest (`batch`).

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::accel::{self, Accel, Chosen};
use crate::cpu::{self, Pin};
use crate::device::Wiring;
use crate::host::{Missing, Places, unique};
use crate::initrd::{self, Contents, Guestward, file_name};
use crate::kernel::Kernel;
use crate::module_build::{self, Built};
use crate::modules::ModuleTree;
use crate::serial::{self, Gravity, Piece, Splitter, Transcript};
use crate::verdict::{Ending, LabRun, Wait, ending_of, status_of};
use crate::{module_file, qemu};

/// Room for the files of `/out`.
const RESULTS: u64 = 64 << 20;

/// What a guest does.
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
pub struct Lab {
    pub(crate) places: Places,
    kernel: Kernel,
    accel: Accel,
    processors: u32,
    pin: Pin,
    memory_mib: u32,
    devices: Vec<String>,
    modules: Vec<PathBuf>,
    append: Vec<String>,
    files: Vec<Guestward>,
    out: Option<PathBuf>,
    results: bool,
    limit: Duration,
    keep: bool,
    verbose: bool,
    echo: bool,
    paranoid: bool,
    gdb: bool,
    expected: Vec<String>,
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

    /// Where its modules lie, if not beside it.
    #[must_use]
    pub fn modules_folder(mut self, folder: Option<PathBuf>) -> Self {
        self.kernel.modules = folder.or(self.kernel.modules);
        self
    }

    /// What carries out its instructions.
    #[must_use]
    pub fn accel(mut self, accel: Accel) -> Self {
        self.accel = accel;
        self
    }

    /// How many processors it has.
    #[must_use]
    pub fn processors(mut self, count: u32) -> Self {
        self.processors = count;
        self
    }

    /// Where the emulator runs.
    #[must_use]
    pub fn pin(mut self, pin: Pin) -> Self {
        self.pin = pin;
        self
    }

    /// How much memory it has.
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

    /// Adds words to the kernel's command line.
    #[must_use]
    pub fn append(mut self, words: &str) -> Self {
        self.append.push(words.to_owned());
        self
    }

    /// Adds a file or a folder; a program brings its libraries.
    #[must_use]
    pub fn file(mut self, host: impl Into<PathBuf>, guest: &str) -> Self {
        self.files.push((host.into(), guest.to_owned()));
        self
    }

    /// Where logs and results go; without it, to a folder of the lab's own.
    #[must_use]
    pub fn out(mut self, folder: Option<PathBuf>) -> Self {
        self.out = folder;
        self
    }

    /// Whether the files of `/out` are brought out.
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

    /// Whether disks and the first file system stay.
    #[must_use]
    pub fn keep(mut self, keep: bool) -> Self {
        self.keep = keep;
        self
    }

    /// Whether QEMU's command line and the kernel's log go to standard error.
    #[must_use]
    pub fn verbose(mut self, verbose: bool) -> Self {
        self.verbose = verbose;
        self
    }

    /// Whether the script's output goes to standard output as it comes.
    #[must_use]
    pub fn echo(mut self, echo: bool) -> Self {
        self.echo = echo;
        self
    }

    /// Whether the kernel looks for misuse of memory.
    #[must_use]
    pub fn paranoid(mut self, paranoid: bool) -> Self {
        self.paranoid = paranoid;
        self
    }

    /// Whether it waits for a debugger on port 1234.
    #[must_use]
    pub fn gdb(mut self, gdb: bool) -> Self {
        self.gdb = gdb;
        self
    }

    /// Words of complaints that are no fault here.
    #[must_use]
    pub fn expect(mut self, words: &str) -> Self {
        self.expected.push(words.to_owned());
        self
    }

    /// Builds a module's folder for the guest's kernel, or finds the build of the same sources.
    ///
    /// # Errors
    /// [`Missing`] without headers; else with what the compiler said.
    pub fn build(&self, folder: impl AsRef<Path>) -> Result<Built> {
        module_build::build(&self.places, &self.kernel, folder.as_ref())
    }

    /// Runs a shell script in the guest.
    ///
    /// # Errors
    /// If it could not be started; a guest that fails is a [`LabRun`].
    pub fn run(&self, script: &str) -> Result<LabRun> {
        self.run_task(&Task::Script(script.to_owned()))
    }

    /// Runs whatever a guest can do.
    ///
    /// # Errors
    /// The same.
    pub fn run_task(&self, task: &Task) -> Result<LabRun> {
        let first = self.once(task)?;
        let lost = |run: &LabRun| {
            let mut all = run.complaints.iter();
            all.any(|complaint| complaint.gravity == Gravity::Emulator)
        };
        if !lost(&first) {
            return Ok(first);
        }
        self.say("the emulated NVMe lost a command: once more");
        let mut second = self.once(task)?;
        second.repeated = true;
        Ok(second)
    }

    /// Only builds the first file system.
    ///
    /// # Errors
    /// If something that goes in cannot be read.
    pub fn initrd(&self, task: &Task) -> Result<Vec<u8>> {
        let scratch = Scratch::new(&self.places)?;
        let (bytes, _) = self.packed(task, &scratch.folder)?;
        scratch.remove();
        Ok(bytes)
    }

    fn packed(&self, task: &Task, folder: &Path) -> Result<(Vec<u8>, Wiring)> {
        let mut wiring = Wiring::of(&self.devices, folder)?;
        if self.results {
            wiring.results(RESULTS);
        }
        let modules = self.own_modules()?;
        let tree = ModuleTree::of(&self.kernel)?;
        let mut wanted = wiring.modules.clone();
        for module in &modules {
            let bytes = fs::read(module).with_context(|| module.display().to_string())?;
            let release = module_file::release(&bytes).unwrap_or("no kernel");
            if release != self.kernel.release {
                self.say(&format!(
                    "{} was built for {release}, the guest's kernel is {}: it will refuse it",
                    module.display(),
                    self.kernel.release
                ));
            }
            let needed = module_file::needs(&bytes).into_iter();
            wanted.extend(needed.filter(|name| tree.has(name)).map(str::to_owned));
        }
        let order = tree
            .order(wanted.iter().map(String::as_str))
            .with_context(|| format!("kernel {}", self.kernel.release))?;
        let contents = Contents {
            task,
            wiring: &wiring,
            tree: &tree,
            order: &order,
            modules: &modules,
            files: &self.files,
            results: self.results,
        };
        Ok((initrd::pack(&self.places, &contents)?, wiring))
    }

    /// Files to load: those that are given, and those that are built from folders.
    fn own_modules(&self) -> Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for path in &self.modules {
            if path.is_dir() {
                files.extend(self.build(path)?.files);
            } else {
                ensure!(path.is_file(), "module {}: no such file", path.display());
                files.push(path.clone());
            }
        }
        Ok(files)
    }

    fn command_line(&self, wiring: &Wiring) -> String {
        let mut words = vec!["console=ttyS0 loglevel=5 panic=-1".to_owned()];
        words.extend(wiring.append.iter().cloned());
        if !self.modules.is_empty() {
            let strict = "softlockup_panic=1 hung_task_panic=1 panic_on_warn=1 oops=panic";
            words.push(strict.to_owned());
        }
        if self.paranoid {
            words.push("slub_debug=FZPU init_on_free=1".to_owned());
        }
        words.extend(self.append.iter().cloned());
        words.join(" ")
    }

    fn once(&self, task: &Task) -> Result<LabRun> {
        let accel = accel::choose(&self.places, &self.kernel, self.accel)?;
        ensure!(
            accel != Chosen::Icount || self.processors == 1,
            "icount counts the instructions of one processor: no --smp {}",
            self.processors
        );
        let scratch = Scratch::new(&self.places)?;
        let (bytes, wiring) = self.packed(task, &scratch.folder)?;
        let initrd = scratch.folder.join("initrd.gz");
        fs::write(&initrd, bytes)?;
        for disk in &wiring.disks {
            fs::File::create(&disk.file)?.set_len(disk.bytes)?;
        }
        let console = scratch.folder.join("console.log");
        let machine = qemu::Machine {
            kernel: &self.kernel.image,
            initrd: &initrd,
            append: self.command_line(&wiring),
            accel,
            processors: self.processors,
            memory_mib: self.memory_mib,
            devices: &wiring.arguments,
            console: &console,
            sandbox: qemu::has_sandbox(&self.places)?,
            interactive: matches!(task, Task::Shell),
            gdb: self.gdb,
        };
        let place = cpu::take(&self.places, self.pin)?;
        let pinned = (self.pin != Pin::None).then_some(place.cpu);
        let command = qemu::command(&machine.arguments(), pinned)?;
        if self.verbose {
            self.say(&shown(&command));
        }
        let start = Instant::now();
        let (raw, wait, errors) = if machine.interactive {
            (Vec::new(), attended(command)?, String::new())
        } else {
            self.unattended(command)?
        };
        let run_s = start.elapsed().as_secs_f64();
        drop(place);
        let kernel_log =
            String::from_utf8_lossy(&fs::read(&console).unwrap_or_default()).replace('\r', "");
        let mut run = self.judged(&raw, wait, &errors, kernel_log, machine.interactive);
        run.accel = accel.to_string();
        run.run_s = run_s;
        self.deliver(&mut run, &raw, scratch, &wiring)?;
        Ok(run)
    }

    /// Runs the emulator; the bytes of the script's line, how it ended, what it said itself.
    fn unattended(&self, command: Command) -> Result<(Vec<u8>, Wait, String)> {
        let (mut raw, mut splitter) = (Vec::new(), Splitter::default());
        let echo = |pieces: Vec<Piece>| {
            for piece in pieces {
                if let Piece::Output(bytes) = piece {
                    // A reader that has gone away does not end the run.
                    let _ = std::io::stdout().write_all(&bytes);
                    let _ = std::io::stdout().flush();
                }
            }
        };
        let (wait, errors) = qemu::run(command, self.limit, &mut |bytes| {
            raw.extend_from_slice(bytes);
            if self.echo {
                echo(splitter.feed(bytes));
            }
        })?;
        echo(splitter.finish());
        Ok((raw, wait, errors))
    }

    fn judged(
        &self,
        raw: &[u8],
        wait: Wait,
        errors: &str,
        kernel_log: String,
        interactive: bool,
    ) -> LabRun {
        let transcript = Transcript::of(raw);
        let complaints = serial::complaints(&kernel_log, &self.expected);
        let mut ending = ending_of(wait, &transcript, errors);
        if interactive && !matches!(ending, Ending::TimedOut) {
            // Nobody reads the script's line but the terminal.
            ending = Ending::Exit(0);
        }
        if let (Ending::Exit(_), Some(lost)) = (&ending, &transcript.lost) {
            ending = Ending::Setup(lost.clone());
        }
        LabRun {
            status: status_of(&ending, !complaints.is_empty()),
            ending,
            output: String::from_utf8_lossy(&transcript.output).into_owned(),
            records: transcript.records.clone(),
            kernel_log,
            complaints,
            kernel: self.kernel.release.clone(),
            accel: String::new(),
            boot_s: transcript.up_s,
            run_s: 0.0,
            repeated: false,
            out: PathBuf::new(),
            transcript,
        }
    }

    /// Puts logs and results where they belong.
    fn deliver(
        &self,
        run: &mut LabRun,
        raw: &[u8],
        scratch: Scratch,
        wiring: &Wiring,
    ) -> Result<()> {
        let folder = match &self.out {
            Some(folder) => folder.clone(),
            None => scratch.folder.join("out"),
        };
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        if let Some(disk) = wiring
            .results_disk()
            .filter(|_| run.transcript.exit.is_some())
        {
            let output = Command::new("tar")
                .arg("-xf")
                .arg(disk)
                .args(["--no-same-owner", "-C"])
                .arg(&folder)
                .output()
                .context("tar")?;
            ensure!(
                output.status.success(),
                "results: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
        run.out.clone_from(&folder);
        fs::write(folder.join("serial.log"), raw)?;
        fs::write(folder.join("dmesg.log"), &run.kernel_log)?;
        let summary = serde_json::to_vec_pretty(&run.summary())?;
        fs::write(folder.join("result.json"), summary)?;
        if self.verbose {
            let _ = std::io::stderr().write_all(run.kernel_log.as_bytes());
        }
        if self.keep {
            self.say(&format!("kept: {}", scratch.folder.display()));
        } else if self.out.is_some() {
            scratch.remove();
        } else {
            scratch.remove_disks(wiring);
        }
        Ok(())
    }

    fn say(&self, text: &str) {
        let _ = writeln!(std::io::stderr(), "lab: {text}");
    }
}

/// Runs the emulator on this terminal, without a limit.
fn attended(mut command: Command) -> Result<Wait> {
    let status = command
        .stdin(Stdio::inherit())
        .status()
        .context("the emulator")?;
    Ok(Wait::Code(status.code().unwrap_or(1)))
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<String> = words
        .map(|word| {
            let word = word.to_string_lossy();
            if word.contains(' ') {
                format!("'{word}'")
            } else {
                word.into_owned()
            }
        })
        .collect();
    words.join(" ")
}

/// A folder of one run.
struct Scratch {
    folder: PathBuf,
}

impl Scratch {
    fn new(places: &Places) -> Result<Self> {
        let folder = places.folder("runs")?.join(unique());
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder)?;
        Ok(Self { folder })
    }

    fn remove(self) {
        let _ = fs::remove_dir_all(self.folder);
    }

    /// What is large goes, logs and results stay until `lab/vm clean`.
    fn remove_disks(self, wiring: &Wiring) {
        for disk in &wiring.disks {
            let _ = fs::remove_file(&disk.file);
        }
        let _ = fs::remove_file(self.folder.join("initrd.gz"));
        let _ = fs::remove_file(self.folder.join("console.log"));
    }
}

/// Parses `HOST[:GUEST]` of `--file`.
///
/// # Errors
/// If it names no file.
pub(crate) fn guestward(text: &str) -> Result<Guestward> {
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

impl Lab {
    /// Adds `HOST[:GUEST]`; a file without a place lies in `/lab`.
    ///
    /// # Errors
    /// If there is no such file.
    pub fn file_spec(mut self, text: &str) -> Result<Self> {
        self.files.push(guestward(text)?);
        Ok(self)
    }
}

/// Whether an error says that a prerequisite is missing.
pub(crate) fn missing(error: &anyhow::Error) -> Option<&Missing> {
    error.downcast_ref::<Missing>()
}
