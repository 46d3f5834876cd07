//! `lab/vm`: the lab's program.
//!
//! In: a verb and its flags. Out: the script's output on standard output, the lab's messages on
//! standard error, the exit status of `lab/vm run`: the script's, or 124 (time limit), 125 (set-up),
//! 126 (the kernel complained though the script passed). Not here: the lab itself (the library).

#![forbid(unsafe_code)]
#![expect(
    clippy::print_stderr,
    reason = "a developer's tool: talking on the terminal is its job"
)]

mod flags;

use std::fmt::Write as _;
use std::fs;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::ArgMatches;
use weir_lab::{
    Accel, Ending, Kernel, Lab, LabRun, MatrixRow, Pin, Places, Task, examine, kernels_matching,
};

/// The status of everything that keeps a guest from being set up, wrong arguments included.
const SETUP: u8 = 125;

fn main() -> ExitCode {
    let matches = match flags::command().try_get_matches() {
        Ok(matches) => matches,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { SETUP } else { 0 });
        }
    };
    match dispatch(&matches) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("lab: {error:#}");
            ExitCode::from(SETUP)
        }
    }
}

fn dispatch(matches: &ArgMatches) -> Result<u8> {
    match matches.subcommand() {
        Some(("run", flags)) => {
            let (lab, task) = (lab(flags, None)?, task(flags)?);
            reported(&lab.echo(true).run_task(&task)?)
        }
        Some(("shell", flags)) => {
            let (lab, task) = (lab(flags, None)?.echo(true), shell_task()?);
            reported(&lab.run_task(&task)?)
        }
        Some(("matrix", flags)) => matrix(flags),
        Some(("initrd", flags)) => {
            let bytes = lab(flags, None)?.initrd(&task(flags)?)?;
            let file = path(flags, "output").context("-o FILE")?;
            fs::write(&file, bytes).with_context(|| file.display().to_string())?;
            Ok(0)
        }
        Some(("doctor", flags)) => doctor(path(flags, "kernel").as_deref()),
        Some(("clean", _)) => clean(),
        _ => bail!("no such verb"),
    }
}

fn path(flags: &ArgMatches, name: &str) -> Option<PathBuf> {
    flags.get_one::<String>(name).map(PathBuf::from)
}

fn values<'a>(flags: &'a ArgMatches, name: &str) -> Vec<&'a str> {
    let given = flags.try_get_many::<String>(name).ok().flatten();
    given.into_iter().flatten().map(String::as_str).collect()
}

fn number(flags: &ArgMatches, name: &str) -> Result<u32> {
    let word = flags.get_one::<String>(name).context("a number")?;
    let number = word.parse().ok().filter(|number| *number > 0);
    number.with_context(|| format!("--{name} {word}: not a number above 0"))
}

/// A guest as the flags describe it.
fn lab(flags: &ArgMatches, kernel: Option<&Kernel>) -> Result<Lab> {
    let asked = path(flags, "kernel");
    let wanted = kernel.map(|kernel| kernel.image.as_path());
    let mut lab = Lab::with_kernel(wanted.or(asked.as_deref()))?
        .modules_folder(path(flags, "modules-dir"))
        .accel(Accel::parse(
            flags
                .get_one::<String>("accel")
                .map_or("auto", String::as_str),
        )?)
        .processors(number(flags, "smp")?)
        .pin(pin(flags)?)
        .memory_mib(number(flags, "mem")?)
        .out(path(flags, "out"))
        .results(flags.contains_id("out"))
        .timeout(Duration::from_secs(number(flags, "timeout")?.into()))
        .keep(flags.get_flag("keep"))
        .verbose(flags.get_flag("verbose"))
        .paranoid(flags.get_flag("paranoid"))
        .gdb(flags.get_flag("gdb"));
    for spec in values(flags, "dev") {
        lab = lab.dev(spec);
    }
    for module in values(flags, "module") {
        lab = lab.module(module);
    }
    for text in values(flags, "append") {
        lab = lab.append(text);
    }
    for text in values(flags, "expect") {
        lab = lab.expect(text);
    }
    for file in values(flags, "file") {
        lab = lab.file_spec(file)?;
    }
    Ok(lab)
}

fn pin(flags: &ArgMatches) -> Result<Pin> {
    Ok(match flags.get_one::<String>("pin").map(String::as_str) {
        None => Pin::Any,
        Some("none") => Pin::None,
        Some(word) => Pin::Cpu(
            word.parse()
                .with_context(|| format!("--pin {word}: a processor's number, or none"))?,
        ),
    })
}

fn task(flags: &ArgMatches) -> Result<Task> {
    let command = values(flags, "command");
    match path(flags, "script") {
        Some(file) => {
            let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
            Ok(Task::Script(text))
        }
        None if command.is_empty() => bail!("nothing to run: --script FILE or -- CMD ARG..."),
        None => Ok(Task::Command(
            command.into_iter().map(str::to_owned).collect(),
        )),
    }
}

/// A shell on this terminal, or the lines that come instead of a terminal.
fn shell_task() -> Result<Task> {
    let input = io::stdin();
    if input.is_terminal() {
        return Ok(Task::Shell);
    }
    let lines = io::read_to_string(input).context("the lines for the shell")?;
    Ok(Task::Script(lines))
}

/// Prints on standard output; a reader that has gone away has read enough.
fn print(text: &str) -> Result<()> {
    let mut out = io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("standard output")
        }
        _ => Ok(()),
    }
}

/// Says what a run came to beyond the script's own output.
fn reported(run: &LabRun) -> Result<u8> {
    match &run.ending {
        Ending::Exit(_) => {}
        Ending::TimedOut => eprintln!("lab: stopped at the time limit"),
        Ending::Setup(why) => eprintln!("lab: {why}"),
        Ending::NoVerdict if run.has_panicked() => {
            eprintln!("lab: the kernel panicked, which --expect cannot make good: no verdict");
        }
        Ending::NoVerdict => eprintln!("lab: the guest powered off or restarted without a verdict"),
    }
    for complaint in &run.complaints {
        eprintln!("lab: the kernel complained: {}", complaint.line);
    }
    if run.status != 0 {
        eprintln!("lab: kernel {}, logs: {}", run.kernel, run.out.display());
    }
    u8::try_from(run.status).context("a status")
}

fn matrix(flags: &ArgMatches) -> Result<u8> {
    let patterns: Vec<String> = values(flags, "kernels")
        .into_iter()
        .map(str::to_owned)
        .collect();
    let kernels = if patterns.is_empty() {
        Kernel::unpacked(&Places::find()?)
    } else {
        kernels_matching(&patterns)?
    };
    if kernels.is_empty() {
        bail!("no kernel under lab/kernels (cargo xtask test --all unpacks some)");
    }
    let task = task(flags)?;
    let out = path(flags, "out");
    let mut rows = Vec::new();
    for kernel in &kernels {
        let folder = out.as_ref().map(|out| out.join(&kernel.release));
        let run = lab(flags, Some(kernel))?
            .out(folder)
            .echo(true)
            .run_task(&task)?;
        reported(&run)?;
        rows.push(MatrixRow::of(&run));
    }
    let mut table = format!(
        "{:<32} {:>6} {:>10} {:>7}\n",
        "kernel", "status", "complaints", "s"
    );
    for row in &rows {
        let _ = writeln!(
            table,
            "{:<32} {:>6} {:>10} {:>7.1}",
            row.kernel, row.status, row.complaints, row.run_s
        );
    }
    print(&table)?;
    let worst = rows
        .iter()
        .map(|row| row.status)
        .find(|status| *status != 0);
    u8::try_from(worst.unwrap_or(0)).context("a status")
}

fn doctor(kernel: Option<&Path>) -> Result<u8> {
    let lines = examine(kernel);
    let mut text = String::new();
    for line in &lines {
        let mark = if line.good { "ok" } else { "--" };
        let _ = writeln!(text, "{mark}  {:<12} {}", line.name, line.says);
    }
    let possible = lines.iter().all(|line| line.good || !line.needed);
    text += if possible {
        "a guest can be run here\n"
    } else {
        "no guest can be run here\n"
    };
    print(&text)?;
    Ok(u8::from(!possible))
}

fn clean() -> Result<u8> {
    let state = Places::find()?.state;
    fs::remove_dir_all(&state).with_context(|| state.display().to_string())?;
    print(&format!("removed {}\n", state.display()))?;
    Ok(0)
}
