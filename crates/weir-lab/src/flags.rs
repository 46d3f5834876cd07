//! The flags of `lab/vm`.
//!
//! In: nothing. Out: the command that reads them and prints their help.

use clap::{Arg, ArgAction, Command};
use weir_lab::KINDS;

const EXAMPLES: &str = "\
Examples:
  lab/vm doctor                                     what is needed and what is there
  lab/vm run -- uname -r                            a command; its status is the lab's
  lab/vm run --dev nvme:size=1G --script test.sh    the disk is $LAB_DEV_0
  lab/vm run --module kmod/kio -- insmod /lab/kio.ko
  lab/vm shell                                      a shell there; exit leaves it
  lab/vm matrix -- uname -r                         the same with every kernel at hand";

/// The program's command.
pub(crate) fn command() -> Command {
    Command::new("lab/vm")
        .bin_name("lab/vm")
        .about("Boots a kernel in QEMU, with devices and a module, and runs a script there.")
        .after_help(EXAMPLES)
        .subcommand_required(true)
        .subcommand(
            guest("run", "Run a script; the exit status is the script's")
                .args(task())
                .after_help(devices()),
        )
        .subcommand(
            guest(
                "shell",
                "A shell in the guest, on this terminal; without one, the lines of the input",
            )
            .after_help(devices()),
        )
        .subcommand(
            guest(
                "matrix",
                "Run the same with several kernels, one after the other",
            )
            .arg(
                many("kernels", "PATTERN")
                    .help("Kernels, such as 'lab/kernels/*' (all of those if not given)"),
            )
            .args(task()),
        )
        .subcommand(
            guest("initrd", "Only build the first file system")
                .arg(
                    one("output", "FILE")
                        .short('o')
                        .required(true)
                        .help("Where to"),
                )
                .args(task()),
        )
        .subcommand(
            Command::new("doctor")
                .about("What the lab needs and what is there")
                .arg(kernel()),
        )
        .subcommand(Command::new("clean").about("Remove what the lab keeps"))
}

/// A verb that boots a guest.
fn guest(name: &'static str, about: &'static str) -> Command {
    Command::new(name).about(about).args([
        kernel(),
        one("modules-dir", "DIR").help("The kernel's lib/modules/RELEASE, if not beside it"),
        one("accel", "HOW")
            .default_value("auto")
            .help("auto, tcg, kvm, icount (an instruction takes one nanosecond)"),
        one("smp", "N").default_value("1").help("Processors"),
        one("pin", "CPU")
            .help("The processor of this machine to run on, or none (default: a free one)"),
        one("mem", "MB").default_value("768").help("Memory, in MiB"),
        many("dev", "SPEC").help("A device; its node is $LAB_DEV_0 and so on"),
        many("module", "FILE").help("A module, or the folder of its sources; goes to /lab"),
        many("append", "WORDS").help("Words for the kernel's command line"),
        many("file", "HOST[:GUEST]")
            .help("A file, folder or program with its libraries (default: to /lab)"),
        many("expect", "WORDS")
            .help("A complaint of the kernel that is no fault here (a panic is one always)"),
        one("out", "DIR").help("Where logs and the guest's /out go"),
        one("timeout", "S").default_value("120").help("Time limit"),
        switch("keep", "Keep disks and the first file system"),
        switch("verbose", "Show QEMU's command line and the kernel's log"),
        switch("paranoid", "Let the kernel look for misuse of memory"),
        switch("gdb", "Wait for a debugger on port 1234"),
    ])
}

fn kernel() -> Arg {
    one("kernel", "FILE").help("An image, or a folder with boot/vmlinuz-* and lib/modules")
}

fn task() -> [Arg; 2] {
    [
        one("script", "FILE")
            .conflicts_with("command")
            .help("A shell script; it may call lab_skip, lab_check, lab_fail"),
        Arg::new("command")
            .value_name("CMD")
            .num_args(1..)
            .last(true)
            .help("A command of the guest and its arguments"),
    ]
}

fn one(name: &'static str, value: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value)
}

fn many(name: &'static str, value: &'static str) -> Arg {
    one(name, value).action(ArgAction::Append)
}

fn switch(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .long(name)
        .action(ArgAction::SetTrue)
        .help(help)
}

/// The table of devices.
fn devices() -> String {
    let lines = KINDS
        .iter()
        .map(|kind| format!("  {}\n      {}\n", kind.form, kind.what));
    format!("Devices:\n{}", lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_in_order_and_names_every_device() {
        command().debug_assert();
        let help = devices();
        assert!(KINDS.iter().all(|kind| help.contains(kind.form)));
    }

    #[test]
    fn the_words_of_the_guest_come_after_two_dashes() {
        let args = ["lab/vm", "run", "--dev", "null", "--", "sh", "-c", "exit 5"];
        let matches = command().try_get_matches_from(args).unwrap();
        let (_, flags) = matches.subcommand().unwrap();
        let command: Vec<&String> = flags.get_many("command").unwrap().collect();
        assert_eq!(command, ["sh", "-c", "exit 5"]);
    }
}
