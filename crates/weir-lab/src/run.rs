//! A run: the guest's files, the emulator, the verdict, the results.
//!
//! In: a [`Lab`] and a [`Task`]. Out: a [`LabRun`]. A run in which the emulated NVMe lost a command is
//! repeated once, and says so. Not here: the settings (`lab`), several scripts in one guest (`batch`).

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::accel::{self, ChosenAccel};
use crate::cpu::{self, Pin};
use crate::device::Wiring;
use crate::host::{Places, unique};
use crate::initrd::{self, Contents};
use crate::lab::{Lab, Task};
use crate::modules::ModuleTree;
use crate::serial::{self, ComplaintGravity, Piece, Splitter, Transcript};
use crate::verdict::{EmulatorEnd, Ending, LabRun, ending_of, status_of};
use crate::{module_file, qemu};

/// Time that logs and results are kept which went to no folder of the caller's.
const KEPT: Duration = Duration::from_secs(24 * 3600);
/// Less memory than this is too little for a kernel alone, in MiB.
const KERNEL_MIB: usize = 64;
/// Room for the files of `/out`.
const RESULTS: u64 = 64 << 20;

impl Lab {
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
            all.any(|complaint| complaint.gravity == ComplaintGravity::Emulator)
        };
        if !lost(&first) {
            return Ok(first);
        }
        say("the emulated NVMe lost a command: once more");
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
                say(&format!(
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
        // An emulated timer may be late when this machine is busy: no reason to give up.
        let mut args = vec!["console=ttyS0 loglevel=5 panic=-1 no_timer_check".to_owned()];
        args.extend(wiring.append.iter().cloned());
        if !self.modules.is_empty() {
            let strict = "softlockup_panic=1 hung_task_panic=1 panic_on_warn=1 oops=panic";
            args.push(strict.to_owned());
        }
        if self.paranoid {
            args.push("slub_debug=FZPU init_on_free=1".to_owned());
        }
        args.extend(self.append.iter().cloned());
        args.join(" ")
    }

    /// The kernel keeps the first file system as it came and unpacks it beside that.
    fn check_memory(&self, initrd_bytes: usize) -> Result<()> {
        let least = KERNEL_MIB + (initrd_bytes >> 20) * 2;
        ensure!(
            self.memory_mib as usize >= least,
            "--mem {}: kernel and first file system need {least} MiB or more",
            self.memory_mib
        );
        Ok(())
    }

    fn once(&self, task: &Task) -> Result<LabRun> {
        let accel = accel::choose(&self.places, &self.kernel, self.accel)?;
        ensure!(
            accel != ChosenAccel::Icount || self.processors == 1,
            "icount counts the instructions of one processor: no --smp {}",
            self.processors
        );
        let scratch = Scratch::new(&self.places)?;
        let (bytes, wiring) = self.packed(task, &scratch.folder)?;
        self.check_memory(bytes.len())?;
        let initrd = scratch.folder.join("initrd");
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
        let is_pinned = matches!(self.pin, Pin::Any | Pin::Cpu(_));
        let pinned = is_pinned.then_some(place.cpu);
        let command = qemu::command(&machine.arguments(), pinned)?;
        if self.verbose {
            say(&shown(&command));
        }
        let start = Instant::now();
        let mut unwritten = None;
        let (raw, wait, errors) = if machine.interactive {
            (Vec::new(), attended(command)?, String::new())
        } else {
            self.unattended(command, &mut unwritten)?
        };
        let run_s = start.elapsed().as_secs_f64();
        drop(place);
        let kernel_log =
            String::from_utf8_lossy(&fs::read(&console).unwrap_or_default()).replace('\r', "");
        let mut run = self.judged(&raw, wait, &errors, kernel_log, machine.interactive);
        run.accel = accel.to_string();
        run.run_s = run_s;
        if let (Ending::Exit(status), Some(error)) = (&run.ending, unwritten) {
            let lost = format!("the script ended with {status}; its output was lost: {error}");
            run.end(Ending::Setup(lost));
        }
        self.deliver(&mut run, &raw, scratch, &wiring)?;
        Ok(run)
    }

    /// Runs the emulator; the bytes of the script's line, how it ended, what it said itself.
    fn unattended(&self, command: Command, unwritten: &mut Option<io::Error>) -> Result<Emulated> {
        let (mut raw, mut splitter) = (Vec::new(), Splitter::default());
        let mut echo = |pieces: Vec<Piece>| {
            for piece in pieces {
                if let Piece::Output(bytes) = piece
                    && let Err(error) = print(&bytes)
                {
                    unwritten.get_or_insert(error);
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
        wait: EmulatorEnd,
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
        if let (Ending::Exit(status), Some(lost)) = (&ending, &transcript.lost) {
            ending = Ending::Setup(format!("the script ended with {status}; {lost}"));
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
        let is_whole = run.transcript.exit.is_some() && run.transcript.lost.is_none();
        if let Some(disk) = wiring.results_disk().filter(|_| is_whole) {
            unpack(disk, &folder)?;
        }
        run.out.clone_from(&folder);
        fs::write(folder.join("serial.log"), raw)?;
        fs::write(folder.join("dmesg.log"), &run.kernel_log)?;
        let summary = serde_json::to_vec_pretty(&run.summary())?;
        fs::write(folder.join("result.json"), summary)?;
        if self.verbose {
            let _ = io::stderr().write_all(run.kernel_log.as_bytes());
        }
        if self.keep {
            say(&format!("kept: {}", scratch.folder.display()));
        } else if self.out.is_some() {
            scratch.remove();
        } else {
            scratch.remove_disks(wiring);
        }
        Ok(())
    }
}

/// The bytes of the script's line, how the emulator ended, what it said itself.
type Emulated = (Vec<u8>, EmulatorEnd, String);

/// Prints at once. A reader that has gone away does not end the run.
fn print(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// Brings the files of `/out` into a folder, whole: what is cut off by a full disk does not stay.
fn unpack(disk: &Path, folder: &Path) -> Result<()> {
    let part = folder.join(format!(".part-{}", unique()));
    let unpacked = fs::create_dir(&part)
        .map_err(anyhow::Error::from)
        .and_then(|()| {
            let mut tar = Command::new("tar");
            tar.arg("-xf").arg(disk).args(["--no-same-owner", "-C"]);
            let output = tar.arg(&part).output().context("tar")?;
            let says = String::from_utf8_lossy(&output.stderr);
            let first = says.lines().next().unwrap_or_default().to_owned();
            ensure!(output.status.success(), "{first}");
            for entry in fs::read_dir(&part)? {
                let entry = entry?;
                let to = folder.join(entry.file_name());
                if to.is_dir() {
                    fs::remove_dir_all(&to)?;
                }
                fs::rename(entry.path(), to)?;
            }
            Ok(())
        })
        .with_context(|| format!("the files of /out do not go to {}", folder.display()));
    let _ = fs::remove_dir_all(&part);
    unpacked
}

/// A message of the lab.
fn say(text: &str) {
    let _ = writeln!(io::stderr(), "lab: {text}");
}

/// Runs the emulator on this terminal, without a limit.
fn attended(mut command: Command) -> Result<EmulatorEnd> {
    let status = command
        .stdin(Stdio::inherit())
        .status()
        .context("the emulator")?;
    Ok(EmulatorEnd::Code(status.code().unwrap_or(1)))
}

fn shown(command: &Command) -> String {
    let args = std::iter::once(command.get_program()).chain(command.get_args());
    let args: Vec<String> = args
        .map(|word| {
            let word = word.to_string_lossy();
            if word.contains(' ') {
                format!("'{word}'")
            } else {
                word.into_owned()
            }
        })
        .collect();
    args.join(" ")
}

/// Logs and results that nobody has asked for in a day go.
fn forget_old(runs: &Path) {
    for entry in fs::read_dir(runs).into_iter().flatten().flatten() {
        let age = entry.metadata().and_then(|meta| meta.modified());
        if age.is_ok_and(|time| time.elapsed().is_ok_and(|age| age > KEPT)) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// A folder of one run.
struct Scratch {
    folder: PathBuf,
}

impl Scratch {
    fn new(places: &Places) -> Result<Self> {
        let runs = places.folder("runs")?;
        forget_old(&runs);
        let folder = runs.join(unique());
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder)?;
        Ok(Self { folder })
    }

    fn remove(self) {
        let _ = fs::remove_dir_all(self.folder);
    }

    /// Removes the large files; logs and results stay for a while.
    fn remove_disks(self, wiring: &Wiring) {
        for disk in &wiring.disks {
            let _ = fs::remove_file(&disk.file);
        }
        let _ = fs::remove_file(self.folder.join("initrd"));
        let _ = fs::remove_file(self.folder.join("console.log"));
    }
}
