//! Accelerator of a guest: KVM where a probe has shown that it works, else translation; or
//! translation that counts instructions.
//!
//! In: the wish of `--accel`. Out: a [`ChosenAccel`]. A `/dev/kvm` that can be opened proves
//! nothing: there are machines on which QEMU aborts or the guest hangs, so a guest that ends at
//! once is booted, and the answer is kept per start of this machine, QEMU and kernel.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::time::Duration;

use anyhow::{Result, bail};

use crate::host::{Places, digest, stamp, write_whole};
use crate::kernel::Kernel;
use crate::verdict::EmulatorEnd;
use crate::{parts, qemu};

/// Accelerator asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Accel {
    /// KVM if it works, else translation.
    #[default]
    Auto,
    /// Translation.
    Tcg,
    /// KVM, without a probe.
    Kvm,
    /// Translation in which an instruction takes one nanosecond.
    Icount,
}

impl Accel {
    /// Reads the word of `--accel`.
    ///
    /// # Errors
    /// If it is none of them.
    pub fn parse(word: &str) -> Result<Self> {
        Ok(match word {
            "auto" => Self::Auto,
            "tcg" => Self::Tcg,
            "kvm" => Self::Kvm,
            "icount" => Self::Icount,
            _ => bail!("`{word}` is none of auto, tcg, kvm, icount"),
        })
    }
}

/// Accelerator in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChosenAccel {
    Tcg,
    Kvm,
    Icount,
}

impl ChosenAccel {
    pub(crate) fn arguments(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Tcg => &[("-accel", "tcg,thread=multi"), ("-cpu", "max")],
            Self::Kvm => &[("-accel", "kvm"), ("-cpu", "host")],
            Self::Icount => &[
                ("-accel", "tcg,thread=single"),
                ("-icount", "shift=0,sleep=off"),
                ("-cpu", "max"),
            ],
        }
    }
}

impl fmt::Display for ChosenAccel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcg => "tcg",
            Self::Kvm => "kvm",
            Self::Icount => "icount",
        })
    }
}

/// Answers the wish.
pub(crate) fn choose(places: &Places, kernel: &Kernel, wish: Accel) -> Result<ChosenAccel> {
    Ok(match wish {
        Accel::Kvm => ChosenAccel::Kvm,
        Accel::Icount => ChosenAccel::Icount,
        Accel::Auto if verdict(places, kernel)? == WORKS => ChosenAccel::Kvm,
        Accel::Auto | Accel::Tcg => ChosenAccel::Tcg,
    })
}

pub(crate) const WORKS: &str = "works";

/// Verdict on KVM here: that it works, or the reason that it is not used.
pub(crate) fn verdict(places: &Places, kernel: &Kernel) -> Result<String> {
    let device = OpenOptions::new().read(true).write(true).open("/dev/kvm");
    if let Err(error) = device {
        return Ok(format!("/dev/kvm: {error}"));
    }
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let key = format!(
        "{boot} {} {}",
        stamp(&qemu::program()?)?,
        stamp(&kernel.image)?
    );
    let kept = places.folder("kvm")?.join(digest(&key));
    if let Ok(text) = fs::read_to_string(&kept) {
        return Ok(text);
    }
    let text = probe(places, kernel)?;
    write_whole(&kept, text.as_bytes())?;
    Ok(text)
}

/// Boots a guest that ends at once.
fn probe(places: &Places, kernel: &Kernel) -> Result<String> {
    let initrd = parts::probe(places)?;
    let console = places
        .folder("kvm")?
        .join(format!("probe-{}.log", std::process::id()));
    let machine = qemu::Machine {
        kernel: &kernel.image,
        initrd: &initrd,
        append: "console=ttyS0 quiet panic=-1".to_owned(),
        accel: ChosenAccel::Kvm,
        processors: 1,
        memory_mib: 256,
        devices: &[],
        console: &console,
        sandbox: false,
        interactive: false,
        gdb: false,
    };
    let command = qemu::command(&machine.arguments(), None)?;
    let (wait, errors) = qemu::run(command, Duration::from_secs(5), &mut |_| {})?;
    let _ = fs::remove_file(console);
    let first = errors.lines().next().unwrap_or_default();
    Ok(match wait {
        EmulatorEnd::Code(33) => WORKS.to_owned(),
        EmulatorEnd::TimedOut => "the probe's guest hangs".to_owned(),
        EmulatorEnd::Code(code) => format!("the probe ended with {code}: {first}"),
        EmulatorEnd::Signal(signal) => format!("the probe was ended by signal {signal}: {first}"),
    })
}
