//! Commands: every one is printed with a leading `$ ` before it runs.
//!
//! In: a program, arguments, environment. Out: its success, its text, or its
//! lines as they come. Not here: which commands a verb needs.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// A command that shows itself before it runs.
pub(crate) struct Cmd {
    command: Command,
    environment: Vec<(String, String)>,
}

impl Cmd {
    /// `argv` is split at spaces: use [`Cmd::arg`] for what may hold one.
    pub(crate) fn new(argv: &str) -> Self {
        let mut argv = argv.split_whitespace();
        let mut command = Command::new(argv.next().unwrap_or_default());
        command.args(argv).stdin(Stdio::null());
        Self {
            command,
            environment: Vec::new(),
        }
    }

    /// A program by its path.
    pub(crate) fn program(path: &Path) -> Self {
        let mut command = Command::new(path);
        command.stdin(Stdio::null());
        Self {
            command,
            environment: Vec::new(),
        }
    }

    pub(crate) fn arg(mut self, arg: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    pub(crate) fn args<S: AsRef<std::ffi::OsStr>>(
        mut self,
        args: impl IntoIterator<Item = S>,
    ) -> Self {
        self.command.args(args);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        let value = value.into();
        self.command.env(name, &value);
        self.environment.push((name.to_owned(), value));
        self
    }

    /// Lets the command read the terminal (sudo asks for a password there).
    pub(crate) fn with_stdin(mut self) -> Self {
        self.command.stdin(Stdio::inherit());
        self
    }

    fn shown(&self) -> String {
        let mut line = String::new();
        for (name, value) in &self.environment {
            let _ = write!(line, "{name}={} ", quoted(value));
        }
        line.push_str(&quoted(&self.command.get_program().to_string_lossy()));
        for arg in self.command.get_args() {
            let _ = write!(line, " {}", quoted(&arg.to_string_lossy()));
        }
        line
    }

    /// Runs it with its output on the terminal.
    pub(crate) fn run(mut self) -> Result<()> {
        let shown = self.shown();
        println!("$ {shown}");
        let status = self.command.status().with_context(|| shown.clone())?;
        if !status.success() {
            bail!("`{shown}` failed ({status})");
        }
        Ok(())
    }

    /// Runs it and returns its standard output.
    pub(crate) fn read(mut self) -> Result<String> {
        let shown = self.shown();
        println!("$ {shown}");
        self.command.stderr(Stdio::inherit());
        let output = self.command.output().with_context(|| shown.clone())?;
        if !output.status.success() {
            bail!("`{shown}` failed ({})", output.status);
        }
        String::from_utf8(output.stdout).with_context(|| format!("`{shown}` printed no UTF-8"))
    }

    /// Runs it, hands each line of standard output to `line`, and says whether
    /// it succeeded.
    pub(crate) fn each_line(mut self, mut line: impl FnMut(&str)) -> Result<bool> {
        let shown = self.shown();
        println!("$ {shown}");
        self.command.stdout(Stdio::piped());
        let mut child = self.command.spawn().with_context(|| shown.clone())?;
        if let Some(out) = child.stdout.take() {
            for bytes in BufReader::new(out).split(b'\n') {
                line(&String::from_utf8_lossy(&bytes?));
            }
        }
        Ok(child.wait()?.success())
    }
}

/// A word as a shell would need it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Where `program` lies. The system's own folders count even when the PATH of
/// an ordinary user leaves them out.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(program))
        .find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    file.metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_a_shell_would_take_it() {
        let cmd = Cmd::new("cargo doc --no-deps")
            .arg("it's here")
            .env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(
            cmd.shown(),
            r"RUSTDOCFLAGS='-D warnings' cargo doc --no-deps 'it'\''s here'"
        );
    }

    #[test]
    fn a_failing_command_is_an_error_that_names_it() {
        let error = Cmd::new("false").run().unwrap_err().to_string();
        assert!(error.contains("`false` failed"), "{error}");
    }

    #[test]
    fn lines_arrive_one_by_one() {
        let mut lines = Vec::new();
        let good = Cmd::new("printf")
            .arg("a\nb\n")
            .each_line(|line| lines.push(line.to_owned()));
        assert!(good.unwrap());
        assert_eq!(lines, ["a", "b"]);
    }

    #[test]
    fn a_program_that_does_not_exist_is_not_found() {
        assert!(find("sh").is_some());
        assert!(find("no-such-program-anywhere").is_none());
    }
}
