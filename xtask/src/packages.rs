//! Debian packages: the one list of what tests and benches need beyond Rust
//! and a C compiler, and their installation when they are missing.
//!
//! In: the verb that is about to run. Out: what was installed, or a warning
//! that names what is missing; the tests that need it then skip and say so.
//! Not here: cargo's own tools (`tools`).

use std::io::IsTerminal as _;

use anyhow::Result;

use crate::cmd::{self, Cmd};

/// A Debian package, the program that shows it is there, and who needs it.
struct Package {
    name: &'static str,
    program: &'static str,
    verbs: &'static [&'static str],
    why: &'static str,
}

const PACKAGES: &[Package] = &[
    Package {
        name: "fio",
        program: "fio",
        verbs: &["test", "bench"],
        why: "the oracle of job files and outputs, the peer of the benches",
    },
    Package {
        name: "valgrind",
        program: "valgrind",
        verbs: &["test", "bench"],
        why: "instruction counts (callgrind) and the memory checks of unsafe code",
    },
    Package {
        name: "util-linux",
        program: "prlimit",
        verbs: &["test"],
        why: "limits on files and processes for the tests of failures",
    },
    Package {
        name: "mount",
        program: "losetup",
        verbs: &["test"],
        why: "loop devices and mounts for the tests of devices and of full disks",
    },
    Package {
        name: "g++",
        program: "c++",
        verbs: &["fuzz"],
        why: "libFuzzer is written in C++",
    },
];

/// Installs what `verb` needs and this machine lacks. Never fails for lack of
/// rights: it says what is missing, and the caller goes on without.
pub(crate) fn ensure(verb: &str) {
    let missing = missing(verb, |program| cmd::find(program).is_some());
    if missing.is_empty() {
        return;
    }
    for package in &missing {
        println!("missing Debian package {}: {}", package.name, package.why);
    }
    if let Err(error) = install(&missing) {
        println!("could not install them: {error:#}");
    }
    for package in &missing {
        if cmd::find(package.program).is_none() {
            println!(
                "WITHOUT {}: what needs it is skipped (apt-get install {})",
                package.name, package.name
            );
        }
    }
}

fn missing(verb: &str, is_there: impl Fn(&str) -> bool) -> Vec<&'static Package> {
    PACKAGES
        .iter()
        .filter(|package| package.verbs.contains(&verb) && !is_there(package.program))
        .collect()
}

fn install(packages: &[&Package]) -> Result<()> {
    let apt = format!("{}apt-get", privilege()?);
    if cmd::find("apt-get").is_none() {
        anyhow::bail!("this system has no apt-get");
    }
    Cmd::new(&format!("{apt} update -q")).with_stdin().run()?;
    Cmd::new(&format!("{apt} install -y -q --no-install-recommends"))
        .args(packages.iter().map(|package| package.name))
        .with_stdin()
        .run()
}

/// What goes before `apt-get`: nothing for root, `sudo` where it exists; it
/// must not ask for a password where nobody can answer.
fn privilege() -> Result<&'static str> {
    use std::os::unix::fs::MetadataExt as _;
    let is_root = std::fs::metadata("/proc/self")?.uid() == 0;
    if is_root {
        Ok("env DEBIAN_FRONTEND=noninteractive ")
    } else if cmd::find("sudo").is_none() {
        anyhow::bail!("not root, and there is no sudo")
    } else if std::io::stdin().is_terminal() {
        Ok("sudo ")
    } else {
        Ok("sudo -n ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_verb_needs_and_the_machine_lacks_is_missing() {
        let names = |verb, there: &'static [&str]| -> Vec<&str> {
            missing(verb, |program| there.contains(&program))
                .iter()
                .map(|package| package.name)
                .collect()
        };
        assert_eq!(names("bench", &["fio"]), ["valgrind"]);
        assert_eq!(names("bench", &["fio", "valgrind"]), [""; 0]);
        assert!(names("test", &[]).contains(&"mount"));
        assert_eq!(names("fuzz", &[]), ["g++"]);
    }
}
