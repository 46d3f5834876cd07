//! The process that takes a drive from the kernel for a run, and gives it back however the run ends.
//!
//! In: an address; the end of its standard input, which comes when the run is over or gone. Out: a line with the
//! group, or why not. Not here: the way there and back (`weir_sys::takeover`).

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, Stdio};

use weir_sys::Tree;
use weir_sys::takeover::{Takeover, TakeoverError, give_back};

/// First argument of the program that makes it the keeper of a drive.
pub const KEEPER: &str = "nvme-keeper";
/// First word of the keeper's answer where the drive is taken.
const GROUP: &str = "group ";

/// The process, from the side of the run.
#[derive(Debug)]
pub(super) struct Keeper {
    child: Child,
    address: String,
}

impl Keeper {
    /// Takes a drive; the group to open it by.
    ///
    /// # Errors
    /// Why it is not taken.
    pub(super) fn take(address: &str) -> io::Result<(Self, u32)> {
        let mut child = Command::new("/proc/self/exe")
            .arg0("weir")
            .args([KEEPER, address])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let said = child.stdout.take();
        let keeper = Self {
            child,
            address: address.to_owned(),
        };
        let mut said = BufReader::new(said.ok_or(io::ErrorKind::BrokenPipe)?);
        let mut line = String::new();
        said.read_line(&mut line)?;
        let group = line.strip_prefix(GROUP).map(|group| group.trim().parse());
        if let Some(Ok(group)) = group {
            return Ok((keeper, group));
        }
        said.read_to_string(&mut line)?;
        Err(io::Error::other(line))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // It hears the end of its input, and is waited for: the drive is back when the run is over.
        drop(self.child.stdin.take());
        // It says itself what went wrong, unless it was killed.
        if let Ok(status) = self.child.wait()
            && status.signal().is_some()
        {
            complain(&self.address, "its keeper was killed");
        }
    }
}

/// Takes a drive from the kernel, and gives it back at the end of standard input; the exit code.
pub fn keep_drive(address: &str) -> u8 {
    // What ends the run by its terminal does not end this.
    let _ = rustix::process::setsid();
    let tree = Tree::real();
    let taken = Takeover::check(&tree, address).and_then(|takeover| {
        takeover.take()?;
        Ok(takeover.group)
    });
    let mut out = io::stdout();
    let answered = match &taken {
        Ok(group) => writeln!(out, "{GROUP}{group}"),
        Err(TakeoverError::InUse(why) | TakeoverError::Lacks(why)) => write!(out, "{why}"),
    };
    let heard = answered.and_then(|()| out.flush());
    if taken.is_err() {
        return 1;
    }
    if heard.is_ok() {
        // An error is an end too.
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
    }
    let Err(error) = give_back(&tree, address) else {
        return 0;
    };
    complain(address, &error.to_string());
    1
}

fn complain(address: &str, why: &str) {
    let _ = writeln!(
        io::stderr(),
        "error: {address}: the kernel has not the drive back: {why}\n  help: `weir nvme-perf --release {address}`"
    );
}
