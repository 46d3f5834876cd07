//! Debian packages: the one list of what tests and benches need beyond Rust
//! and a C compiler, and their installation when they are missing.
//!
//! In: the verb that is about to run. Out: what was installed, or a warning
//! that names what is missing; the tests that need it then skip and say so.
//! Not here: cargo's own tools (`tools`).

use std::io::IsTerminal as _;
use std::path::Path;

use anyhow::Result;

use crate::cmd::{self, Cmd};

/// A Debian package, the sign that it is there, and who needs it.
struct Package {
    name: &'static str,
    /// A program, or the path of a file whose `*` is the machine's folder.
    sign: &'static str,
    verbs: &'static [&'static str],
    why: &'static str,
}

impl Package {
    /// All tests need what the quick ones need.
    fn is_for(&self, verb: &str) -> bool {
        let runs_quick_tests = verb == "test --all" && self.verbs.contains(&"test");
        runs_quick_tests || self.verbs.contains(&verb)
    }
}

const PACKAGES: &[Package] = &[
    Package {
        name: "fio",
        sign: "fio",
        verbs: &["test --all", "bench", "peers"],
        why: "the oracle of job files and outputs, the peer of the benches",
    },
    Package {
        name: "bc",
        sign: "bc",
        verbs: &["test --all"],
        why: "fio computes the expressions of job files with it",
    },
    Package {
        name: "valgrind",
        sign: "valgrind",
        verbs: &["test --all", "bench"],
        why: "instruction counts (callgrind) and the memory checks of unsafe code",
    },
    Package {
        name: "strace",
        sign: "strace",
        verbs: &["test"],
        why: "shows the system calls that an option leads to, in weir and in fio",
    },
    Package {
        name: "openmpi-bin",
        sign: "mpirun.openmpi",
        verbs: &["test --all", "bench"],
        why: "one family of MPI: library and launcher",
    },
    Package {
        name: "mpich",
        sign: "mpirun.mpich",
        verbs: &["test --all", "bench"],
        why: "the other family of MPI: library and launcher",
    },
    Package {
        name: "libopenmpi-dev",
        sign: "/usr/lib/*/openmpi/include/mpi.h",
        verbs: &["test --all", "bench"],
        why: "the headers that weir's constants are compared with, and mpicc of the benches",
    },
    Package {
        name: "libmpich-dev",
        sign: "/usr/include/*/mpich/mpi.h",
        verbs: &["test --all", "bench"],
        why: "the headers that weir's constants are compared with, and mpicc of the benches",
    },
    Package {
        name: "ocl-icd-libopencl1",
        sign: "/usr/lib/*/libOpenCL.so.1",
        verbs: &["test --all"],
        why: "OpenCL, through which transport ocl-pcie finds devices",
    },
    Package {
        name: "pocl-opencl-icd",
        sign: "/etc/OpenCL/vendors/pocl.icd",
        verbs: &["test --all"],
        why: "an OpenCL device on the processors",
    },
    Package {
        name: "libfabric-dev",
        sign: "/usr/include/rdma/fabric.h",
        verbs: &["test --all"],
        why: "libfabric, and the headers that weir's structures are compared with",
    },
    Package {
        name: "libibverbs-dev",
        sign: "/usr/include/infiniband/verbs.h",
        verbs: &["test --all"],
        why: "RDMA verbs for the lab's guests, and the header that weir's structures are compared with",
    },
    Package {
        name: "ibverbs-providers",
        sign: "/etc/libibverbs.d/rxe.driver",
        verbs: &["test --all"],
        why: "the driver by which the lab's guests reach rdma_rxe",
    },
    Package {
        name: "libfabric-bin",
        sign: "fi_pingpong",
        verbs: &["test --all", "bench"],
        why: "the peer of the benches of fabrics; brings libfabric into guests of the lab",
    },
    Package {
        name: "libdpdk-dev",
        sign: "/usr/include/dpdk/rte_eal.h",
        verbs: &["test --all", "bench"],
        why: "DPDK, for which native/dpdk is built",
    },
    Package {
        name: "dpdk-dev",
        sign: "dpdk-testpmd",
        verbs: &["bench"],
        why: "DPDK's forwarder, a peer of the benches of packet paths",
    },
    Package {
        name: "iproute2",
        sign: "ip",
        verbs: &["test --all", "bench"],
        why: "network namespaces for the tests between hosts",
    },
    Package {
        name: "chromium",
        sign: "chromium",
        verbs: &["test --all"],
        why: "the browser in which pages of weir report are opened (some 290 MB)",
    },
    Package {
        name: "groff-base",
        sign: "groff",
        verbs: &["test --all"],
        why: "formats manual pages, and says what is wrong with them",
    },
    Package {
        name: "zsh",
        sign: "zsh",
        verbs: &["test --all"],
        why: "loads its completions",
    },
    Package {
        name: "fish",
        sign: "fish",
        verbs: &["test --all"],
        why: "loads its completions",
    },
    Package {
        name: "util-linux",
        sign: "prlimit",
        verbs: &["test", "peers"],
        why: "limits on files and processes for the tests of failures, real-time priority",
    },
    Package {
        name: "mount",
        sign: "losetup",
        verbs: &["test --all"],
        why: "loop devices and mounts for the tests of devices and of full disks",
    },
    Package {
        name: "qemu-system-x86",
        sign: "qemu-system-x86_64",
        verbs: &["test --all"],
        why: "the emulator in which the lab boots kernels",
    },
    Package {
        name: "busybox-static",
        sign: "busybox",
        verbs: &["test --all"],
        why: "the programs of the lab's guests",
    },
    Package {
        name: "kmod",
        sign: "depmod",
        verbs: &["test --all"],
        why: "tells which module of a kernel needs which",
    },
    Package {
        name: "make",
        sign: "make",
        verbs: &["test --all"],
        why: "builds modules for the lab's kernels",
    },
    Package {
        name: "e2fsprogs",
        sign: "mkfs.ext4",
        verbs: &["test --all"],
        why: "a file system on the lab's persistent memory",
    },
    Package {
        name: "dmsetup",
        sign: "dmsetup",
        verbs: &["test --all"],
        why: "makes slow and failing devices in the lab's guests",
    },
    Package {
        name: "python3",
        sign: "/usr/bin/python3",
        verbs: &["peers"],
        why: "fio's own test suite is written in it",
    },
    Package {
        name: "python3-scipy",
        sign: "/usr/lib/python3/dist-packages/scipy/__init__.py",
        verbs: &["peers"],
        why: "fio's tests of steady states compute slopes with it",
    },
    Package {
        name: "curl",
        sign: "curl",
        verbs: &["peers"],
        why: "fetches a peer's source package",
    },
    Package {
        name: "lintian",
        sign: "lintian",
        verbs: &["package"],
        why: "reads what is wrong with a Debian package",
    },
    Package {
        name: "mmdebstrap",
        sign: "mmdebstrap",
        verbs: &["package"],
        why: "makes the bare root in which the package is installed",
    },
    Package {
        name: "python3-venv",
        sign: "/usr/share/doc/python3-venv/copyright",
        verbs: &["package"],
        why: "the empty environment in which the wheel is installed",
    },
    Package {
        name: "binutils",
        sign: "readelf",
        verbs: &["package"],
        why: "takes symbols out, and tells which version of the C library the program asks for",
    },
    Package {
        name: "g++",
        sign: "c++",
        verbs: &["fuzz"],
        why: "libFuzzer is written in C++",
    },
];

/// Installs what `verb` needs and this machine lacks. Never fails for lack of
/// rights: it says what is missing, and the caller goes on without.
pub(crate) fn ensure(verb: &str) {
    let missing = missing(verb, is_there);
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
        if !is_there(package.sign) {
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
        .filter(|package| package.is_for(verb) && !is_there(package.sign))
        .collect()
}

fn is_there(sign: &str) -> bool {
    let Some((above, below)) = sign.split_once("/*/") else {
        let path = Path::new(sign);
        // A program has a name; what has a path need not be one.
        return if path.is_absolute() {
            path.is_file()
        } else {
            cmd::find(sign).is_some()
        };
    };
    let folders = std::fs::read_dir(above).into_iter().flatten().flatten();
    folders
        .into_iter()
        .any(|folder| folder.path().join(below).is_file())
}

fn install(packages: &[&Package]) -> Result<()> {
    if cmd::find("apt-get").is_none() {
        anyhow::bail!("this system has no apt-get");
    }
    apt("update -q", &[])?;
    let names: Vec<&str> = packages.iter().map(|package| package.name).collect();
    apt("install -y -q --no-install-recommends", &names)
}

/// Runs apt-get with the rights that it needs.
pub(crate) fn apt(args: &str, names: &[&str]) -> Result<()> {
    Cmd::new(&format!("{}apt-get {args}", privilege()?))
        .args(names)
        .with_stdin()
        .run()
}

/// Prefix of `apt-get`: nothing for root, `sudo` where it exists; it must not ask for a password
/// where nobody can answer.
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
    fn a_file_is_looked_for_in_every_machines_folder() {
        assert!(is_there("/proc/version"), "a file that nobody can run");
        assert!(!is_there("/proc/no-such-file"));
        assert!(is_there("/proc/*/stat"));
        assert!(!is_there("/proc/*/no-such-file"));
        assert!(!is_there("/no-such-folder/*/stat"));
    }

    #[test]
    fn only_what_the_verb_needs_and_the_machine_lacks_is_missing() {
        let names = |verb, there: &'static [&str]| -> Vec<&str> {
            missing(verb, |sign| there.contains(&sign))
                .iter()
                .map(|package| package.name)
                .collect()
        };
        let headers = ["libopenmpi-dev", "libmpich-dev", "libdpdk-dev", "dpdk-dev"];
        let without = names(
            "bench",
            &["fio", "mpirun.openmpi", "mpirun.mpich", "fi_pingpong", "ip"],
        );
        assert_eq!(without, [&["valgrind"][..], &headers].concat());
        assert!(names("test --all", &["fio"]).contains(&"mount"));
        assert_eq!(names("test", &["strace"]), ["util-linux"]);
        assert!(names("test --all", &[]).contains(&"strace"));
        assert_eq!(names("fuzz", &[]), ["g++"]);
    }
}
