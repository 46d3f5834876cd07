//! QEMU: its command line, and one process of it within a time limit.
//!
//! In: a kernel, a first file system, devices, a processor. Out: how the process ended, what it
//! printed itself, and the bytes of the script's line as they come.
//! Not here: what those bytes mean (`serial`), what the end means (`verdict`).

use std::fs;
use std::io::Read as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::accel::ChosenAccel;
use crate::host::{Places, digest, find, need, stamp, write_whole};
use crate::verdict::EmulatorEnd;

/// The emulator.
pub(crate) const PROGRAM: &str = "qemu-system-x86_64";

/// Path of the program, or the package to install.
pub(crate) fn program() -> Result<PathBuf> {
    need(PROGRAM, "qemu-system-x86")
}

/// Parts that an emulator is started with.
pub(crate) struct Machine<'a> {
    pub(crate) kernel: &'a Path,
    pub(crate) initrd: &'a Path,
    pub(crate) append: String,
    pub(crate) accel: ChosenAccel,
    pub(crate) processors: u32,
    pub(crate) memory_mib: u32,
    pub(crate) devices: &'a [String],
    /// File of the kernel's log.
    pub(crate) console: &'a Path,
    pub(crate) sandbox: bool,
    /// The script's line is this terminal, with QEMU's escape keys.
    pub(crate) interactive: bool,
    pub(crate) gdb: bool,
}

impl Machine<'_> {
    /// QEMU's arguments.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let mut args: Vec<String> = Vec::new();
        let mut add = |option: &str, value: &str| {
            args.push(option.to_owned());
            args.push(value.to_owned());
        };
        for (option, value) in self.accel.arguments() {
            add(option, value);
        }
        add("-smp", &self.processors.to_string());
        add("-m", &self.memory_mib.to_string());
        add("-display", "none");
        add("-kernel", &self.kernel.to_string_lossy());
        add("-initrd", &self.initrd.to_string_lossy());
        add("-append", &self.append);
        add("-serial", &format!("file:{}", self.console.display()));
        add(
            "-serial",
            if self.interactive {
                "mon:stdio"
            } else {
                "stdio"
            },
        );
        add("-device", "isa-debug-exit,iobase=0xf4,iosize=0x04");
        if self.sandbox {
            add("-sandbox", "on");
        }
        args.extend(["-nodefaults", "-no-user-config", "-no-reboot"].map(str::to_owned));
        if self.gdb {
            args.extend(["-s", "-S"].map(str::to_owned));
        }
        args.extend_from_slice(self.devices);
        args
    }
}

/// The whole command: it ends with the lab, yields to everything else, and stays on its processor.
pub(crate) fn command(arguments: &[String], cpu: Option<usize>) -> Result<Command> {
    let mut args = ["setpriv", "--pdeathsig", "KILL", "nice", "-n", "10"]
        .map(str::to_owned)
        .to_vec();
    if let Some(cpu) = cpu {
        args.extend(["taskset", "-c", &cpu.to_string()].map(str::to_owned));
    }
    let mut command = Command::new(&args[0]);
    command
        .args(&args[1..])
        .arg(program()?)
        .args(arguments)
        .stdin(Stdio::null());
    Ok(command)
}

/// Runs it in a process group of its own; hands over what it prints as it comes.
pub(crate) fn run(
    mut command: Command,
    limit: Duration,
    take: &mut dyn FnMut(&[u8]),
) -> Result<(EmulatorEnd, String)> {
    let deadline = Instant::now() + limit;
    let mut child = command
        .process_group(0)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("{} (apt: util-linux)", command.get_program().display()))?;
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let errors = child.stderr.take().map(|mut errors| {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = errors.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        })
    });
    let (to, from) = mpsc::channel();
    if let Some(mut output) = child.stdout.take() {
        std::thread::spawn(move || {
            let mut buffer = [0; 8192];
            while let Ok(count @ 1..) = output.read(&mut buffer) {
                if to.send(buffer[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
    }
    let mut late = false;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match from.recv_timeout(left) {
            Ok(bytes) => take(&bytes),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                late = true;
                break;
            }
        }
    }
    // Its output is closed: it has ended, or is about to within the same limit.
    while !late && child.try_wait()?.is_none() {
        late = Instant::now() >= deadline;
        std::thread::sleep(Duration::from_millis(2));
    }
    if late && let Some(group) = group {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let status = child.wait()?;
    let errors = errors.and_then(|thread| thread.join().ok());
    let wait = match (late, status.code(), status.signal()) {
        (true, ..) => EmulatorEnd::TimedOut,
        (_, Some(code), _) => EmulatorEnd::Code(code),
        (_, None, signal) => EmulatorEnd::Signal(signal.unwrap_or_default()),
    };
    Ok((wait, errors.unwrap_or_default()))
}

/// True if this build of QEMU can forbid itself most system calls; asked once per build.
pub(crate) fn has_sandbox(places: &Places) -> Result<bool> {
    let qemu = program()?;
    let kept = places
        .state
        .join(format!("sandbox-{}", digest(&stamp(&qemu)?)));
    if let Ok(text) = fs::read_to_string(&kept) {
        return Ok(text == "yes");
    }
    let mut command = Command::new(find(PROGRAM).unwrap_or(qemu));
    command.args([
        "-M",
        "none",
        "-nodefaults",
        "-display",
        "none",
        "-sandbox",
        "on",
    ]);
    // It stops at the first line of its monitor.
    command.args(["-monitor", "stdio"]).stdin(Stdio::null());
    let (wait, _) = run(command, Duration::from_secs(3), &mut |_| {})?;
    let has = !matches!(wait, EmulatorEnd::Code(code) if code != 0);
    write_whole(&kept, if has { b"yes" } else { b"no" })?;
    Ok(has)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null());
        command
    }

    #[test]
    fn a_process_that_ends_says_how_and_what() {
        let mut out = Vec::new();
        let (wait, errors) = run(
            shell("echo out; echo err >&2; exit 33"),
            Duration::from_secs(60),
            &mut |bytes| out.extend_from_slice(bytes),
        )
        .unwrap();
        assert_eq!((wait, errors.as_str()), (EmulatorEnd::Code(33), "err\n"));
        assert_eq!(out, b"out\n");
        let killed = run(shell("kill -ABRT $$"), Duration::from_secs(60), &mut |_| {});
        assert_eq!(killed.unwrap().0, EmulatorEnd::Signal(6));
    }

    #[test]
    fn at_the_limit_the_whole_group_is_killed() {
        let mut out = Vec::new();
        let (wait, _) = run(
            shell("sleep 1000 & echo $!; wait"),
            Duration::from_millis(300),
            &mut |bytes| out.extend_from_slice(bytes),
        )
        .unwrap();
        assert_eq!(wait, EmulatorEnd::TimedOut);
        let sleeper = String::from_utf8(out).unwrap();
        // The signal is on its way; without it, the sleeper stays for a quarter of an hour.
        let patience = Instant::now() + Duration::from_secs(30);
        let alive = || {
            let stat = fs::read_to_string(format!("/proc/{}/stat", sleeper.trim()));
            stat.is_ok_and(|stat| !stat.contains(") Z"))
        };
        while alive() {
            assert!(Instant::now() < patience, "process {sleeper} is alive");
            std::thread::yield_now();
        }
    }

    #[test]
    fn the_command_line_pins_and_has_no_network() {
        let machine = Machine {
            kernel: Path::new("/k"),
            initrd: Path::new("/i"),
            append: "panic=-1".to_owned(),
            accel: ChosenAccel::Icount,
            processors: 1,
            memory_mib: 512,
            devices: &[],
            console: Path::new("/c"),
            sandbox: true,
            interactive: false,
            gdb: false,
        };
        let line = machine.arguments().join(" ");
        assert!(
            line.starts_with("-accel tcg,thread=single -icount shift=0,sleep=off"),
            "{line}"
        );
        assert!(
            line.contains("-nodefaults") && !line.contains("net"),
            "{line}"
        );
        assert!(line.contains("-serial file:/c -serial stdio"), "{line}");
    }
}
