//! Commands that workers run before and after their part.
//!
//! In: a command and the directory of the run. Out: its output in a file, or why it failed.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use weir_schema::{Failure, ShellCommand};

use crate::runner::failure;

/// Runs a command to its end.
///
/// # Errors
/// It could not be started, or ended with something else than success.
pub(super) fn run(command: &ShellCommand, directory: &Path) -> Result<(), Failure> {
    let said = directory.join(&command.output);
    let fail = |what: String, errno: Option<i32>| {
        let message = format!("the command `{}` {what}", command.text);
        Err(failure("command", errno, message))
    };
    let files = File::create(&said).and_then(|out| Ok((out.try_clone()?, out)));
    let (out, err) = match files {
        Ok(files) => files,
        Err(error) => {
            let what = format!("has no file for what it says: {}: {error}", said.display());
            return fail(what, error.raw_os_error());
        }
    };
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(&command.text);
    if !directory.as_os_str().is_empty() {
        shell.current_dir(directory);
    }
    // A group of its own: the terminal's Ctrl-C ends the run, and what was begun is finished.
    shell.process_group(0);
    shell.stdin(Stdio::null()).stdout(out).stderr(err);
    match shell.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => fail(
            format!("ended with {status} (see {})", command.output),
            None,
        ),
        Err(error) => fail(
            format!("could not be started: {error}"),
            error.raw_os_error(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_both_kinds_is_kept_and_failure_is_told() {
        let directory = std::env::temp_dir().join(format!("weir-command-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let command = |text: &str| ShellCommand {
            text: text.into(),
            output: "o.txt".into(),
        };
        run(&command("echo out; echo err >&2"), &directory).unwrap();
        let said = std::fs::read_to_string(directory.join("o.txt")).unwrap();
        assert_eq!(said, "out\nerr\n");
        let refused = run(&command("exit 3"), &directory).unwrap_err();
        assert!(
            refused
                .message
                .contains("exit 3` ended with exit status: 3"),
            "{refused:?}"
        );
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
