//! Devices of OpenCL, on this machine those that PoCL makes of its processors: exchanges,
//! transfers, choices, and what is told where there is none.

use std::process::Command;

use serde_json::Value as Json;

use crate::stage::{Running, Said, Stage, has, said, skip, until};
use crate::{beff, table};

/// True if there is a device; else prints the skipped test.
fn usable(stage: &Stage, test: &str) -> bool {
    let page = run(stage, "--list-comm").code(0).out;
    let line = page.lines().find(|l| l.starts_with("ocl-pcie "));
    let line = line.unwrap_or_else(|| panic!("{page}"));
    if line.ends_with(" available") {
        return true;
    }
    skip(test, line);
    false
}

/// The benchmark with these words. What PoCL compiles lies on the stage.
fn prepared(stage: &Stage, words: &str) -> Command {
    let mut all = vec!["Network_intel"];
    all.extend(words.split_whitespace());
    let mut command = stage.peer(&all);
    command.env("POCL_CACHE_DIR", stage.path("pocl"));
    command
}

fn run(stage: &Stage, words: &str) -> Said {
    said(prepared(stage, words))
}

fn json(said: &Said) -> Json {
    serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said}"))
}

#[test]
fn messages_go_from_device_to_device() {
    let stage = Stage::new();
    if !usable(&stage, "exchanges between devices") {
        return;
    }
    for ranks in [1, 2, 3] {
        for validation in ["const", "full"] {
            let words = format!(
                "--comm-type PCIE --ranks {ranks} -n 2 -u 4 -l 2 --sizes 0,3,12 --validate {validation}"
            );
            let said = run(&stage, &words)
                .code(0)
                .out("Communication Type                      PCIE\n")
                .out("Selected Platform: ")
                .out("Selection summary:\nPlatform Name: ")
                .out("Validation: SUCCESS!\n");
            assert_eq!(table(&said.out).len(), 3, "{said}");
        }
    }
}

#[test]
fn processes_and_launchers_have_devices_too() {
    let stage = Stage::new();
    if !usable(&stage, "devices of processes") {
        return;
    }
    let words = "--comm-type ocl-pcie -n 2 -u 4 -l 2 --sizes 0,12 --format json";
    let procs = run(&stage, &format!("{words} --ranks 2 --spawn procs")).code(0);
    assert_eq!(json(&procs)["validated"], true);
    let (launcher, rights) = ("mpirun.openmpi", "--oversubscribe");
    if !has(launcher) {
        return skip("devices under a launcher", "no mpirun.openmpi");
    }
    let mut command = stage.command(launcher);
    command.args([rights, "-n", "2", crate::stage::peer("Network_intel")]);
    command.args(words.split_whitespace());
    command.env("POCL_CACHE_DIR", stage.path("pocl"));
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1");
    command.env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    let json = json(&said(command).code(0));
    assert_eq!(json["validated"], true);
    assert_eq!(json["weir"]["transport"], "ocl-pcie");
    assert_eq!(json["weir"]["mpi"]["family"], "Open MPI");
}

#[test]
fn the_result_names_the_device() {
    let stage = Stage::new();
    if !usable(&stage, "a device's name") {
        return;
    }
    let words = "--comm-type ocl-pcie -n 1 -u 2 -l 2 --sizes 3 --format json";
    let json = json(&run(&stage, words).code(0));
    let name = json["device"].as_str().unwrap();
    assert!(!name.is_empty());
    let rank = &json["weir"]["ranks"][0];
    assert_eq!(rank["device"], 0);
    assert_eq!(rank["device_name"], name);
    let platform = rank["platform_name"].as_str().unwrap();
    assert!(!platform.is_empty());
    // The exact name is taken, another is refused.
    let mut named = prepared(&stage, words);
    named.args(["--platform_str", platform]);
    said(named).code(0);
    for (words, message) in [
        ("--platform_str X", "--platform_str X: the platforms are "),
        ("--device 4000", "--device 4000: the devices are 0 to "),
        (
            "--platform 4000",
            "--platform 4000: the platforms are 0 to ",
        ),
        (
            "-f no/such/file.cl",
            "Not possible to open from given file: no/such/file.cl",
        ),
        ("--validate sample", "validation `sample`"),
    ] {
        run(&stage, &format!("--comm-type ocl-pcie {words}"))
            .code(2)
            .silent()
            .err(message);
    }
}

#[test]
fn ranks_go_round_the_devices_and_a_single_one_hears_of_the_others() {
    let stage = Stage::new();
    if !usable(&stage, "several devices") {
        return;
    }
    // PoCL makes two devices of the same processors.
    let two = |words: &str| {
        let words = format!("--comm-type ocl-pcie -n 1 -u 2 -l 2 --sizes 3 --format json {words}");
        let mut command = prepared(&stage, &words);
        command.env("POCL_DEVICES", "pthread basic");
        command.args(["--platform_str", "Portable Computing Language"]);
        said(command)
    };
    let devices = |said: &Said| -> Vec<u64> {
        let ranks = json(said)["weir"]["ranks"].as_array().unwrap().clone();
        ranks.iter().filter_map(|r| r["device"].as_u64()).collect()
    };
    let alone = two("");
    if !alone.err.contains("note: there are other devices") {
        return skip("several devices", "this PoCL makes none");
    }
    assert_eq!(
        devices(&alone.code(0).err("which --device chooses: 1 ")),
        [0]
    );
    for (words, wanted) in [
        ("--ranks 3", [0, 1, 0].as_slice()),
        ("--ranks 2 --device-map global", &[0, 1]),
        ("--ranks 2 --device 1", &[1, 1]),
        ("--device 1 --device-type cpu", &[1]),
    ] {
        let said = two(words).code(0);
        assert_eq!(devices(&said), wanted, "{words}");
        assert!(!said.err.contains("other devices"), "{said}");
    }
    two("--device 5")
        .code(2)
        .err("--device 5: the devices are 0 to 1");
    two("--device-type gpu")
        .code(3)
        .err("an OpenCL device of this kind");
}

#[test]
fn an_interrupt_ends_exchanges_and_batches_in_order() {
    let stage = Stage::new();
    if !usable(&stage, "an interrupt of a device") {
        return;
    }
    for words in ["", "--pcie-write --pcie-batch", "--kernel-latency"] {
        let words = format!(
            "--comm-type ocl-pcie -n 1000000 -u 1000 -l 1000 --sizes 3 --dump-json o.json {words}"
        );
        let running = Running::start(prepared(&stage, &words));
        until("signals are caught", || running.catches_signals());
        running.signal(rustix::process::Signal::INT);
        running.end().code(130);
        let json: Json = serde_json::from_str(&stage.read("o.json")).unwrap();
        assert_eq!(json["weir"]["complete"], false, "{words}");
    }
}

#[test]
fn a_flipped_byte_of_the_device_is_found() {
    let stage = Stage::new();
    if !usable(&stage, "a flipped byte on a device") {
        return;
    }
    for words in ["", "--pcie-read", "--pcie-write --pcie-batch"] {
        let words = format!(
            "--comm-type ocl-pcie --ranks 2 -n 1 -u 2 -l 2 --sizes 8 {words} \
             --inject flip:rank=1,size=8,byte=3"
        );
        run(&stage, &words)
            .code(1)
            .err("Validation data invalid for message size 256 in 1 cases! (rank 1)");
    }
}

#[test]
fn transfers_are_measured_each_by_itself() {
    let stage = Stage::new();
    if !usable(&stage, "transfers") {
        return;
    }
    for batch in ["", " --pcie-batch"] {
        let words = format!(
            "--comm-type ocl-pcie -n 2 -u 4 -l 2 --sizes 0,10 --pcie-reverse --kernel-latency{batch}"
        );
        let said = run(&stage, &words)
            .code(0)
            .out("host to device (--pcie-read: the device reads)\n")
            .out("kernel launch (--kernel-latency)\n")
            .out("device to host (--pcie-write: the device writes)\n")
            .out("Validation: SUCCESS!\n");
        assert!(!said.out.contains("b_eff"), "{said}");
        let json = json(&run(&stage, &format!("{words} --format json")).code(0));
        let value = |key: &str| json["results"][key]["value"].as_f64().unwrap();
        for key in ["host_to_device", "device_to_host", "kernel_launch"] {
            assert!(value(key) > 0.0, "{key}: {}", json["results"]);
        }
        assert_eq!(json["results"]["kernel_launch"]["unit"], "s");
        let sizes = |key: &str| {
            let sizes = json["weir"]["transfers"][key]["timings"].as_object();
            sizes.unwrap().len()
        };
        assert_eq!((sizes("host_to_device"), sizes("kernel_launch")), (2, 1));
        assert_eq!(json["timings"], serde_json::json!({}));
    }
}

#[test]
fn a_kernel_of_a_file_is_launched() {
    let stage = Stage::new();
    if !usable(&stage, "a kernel of a file") {
        return;
    }
    let words = "--comm-type ocl-pcie --kernel-latency -n 1 -u 2 -l 2 -f k.cl";
    let twice = "__kernel void two(__global int *x) { *x = 2; }\n__kernel void none(void) {}\n";
    stage.file("k.cl", twice);
    run(&stage, words)
        .code(0)
        .out("kernel launch")
        .out("Validation: SKIPPED\n");
    stage.file("k.cl", "__kernel void two(__global int *x) { *x = 2; }\n");
    run(&stage, words)
        .code(1)
        .err("a kernel without arguments is needed, and all of its kernels have some: two");
    stage.file("k.cl", "no kernel\n");
    run(&stage, words)
        .code(1)
        .err("OpenCL cannot build the kernel: ");
}

#[test]
fn a_kernel_file_that_can_be_none_is_refused_unread() {
    let stage = Stage::new();
    if !usable(&stage, "files that are no kernels") {
        return;
    }
    stage.sparse("large.cl", (1 << 30) + 1);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        stage.path("pipe.cl"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    for (file, why) in [
        ("/dev/zero", "it is not a regular file"),
        ("pipe.cl", "it is not a regular file"),
        (".", "it is not a regular file"),
        ("large.cl", "it has 1073741825 bytes"),
    ] {
        run(
            &stage,
            &format!("--comm-type ocl-pcie --kernel-latency -f {file}"),
        )
        .code(2)
        .silent()
        .err(&format!(
            "Not possible to open from given file: {file} ({why}"
        ));
    }
}

#[test]
fn a_kernel_that_never_ends_ends_with_the_timeout() {
    let stage = Stage::new();
    if !usable(&stage, "a kernel that never ends") {
        return;
    }
    let endless = "__kernel void endless(void) { volatile int x = 1; while (x) {} }\n";
    stage.file("k.cl", endless);
    let words = "--comm-type ocl-pcie --kernel-latency -n 1 -u 2 -l 2 -f k.cl --timeout 2";
    for ranks in [1, 2] {
        run(&stage, &format!("{words} --ranks {ranks}"))
            .code(1)
            .err("no progress for 2 s");
    }
}

#[test]
fn a_driver_that_cannot_write_its_cache_is_told_as_such() {
    let stage = Stage::new();
    if !usable(&stage, "a cache that cannot be written") {
        return;
    }
    // Not even the administrator can make a directory there.
    for (name, others) in [
        ("POCL_CACHE_DIR", [].as_slice()),
        ("XDG_CACHE_HOME", &["POCL_CACHE_DIR"]),
        ("HOME", &["POCL_CACHE_DIR", "XDG_CACHE_HOME"]),
    ] {
        let mut command = prepared(&stage, "--comm-type ocl-pcie -m 2 -u 2 -l 2");
        command.args(["--platform_str", "Portable Computing Language"]);
        for other in others {
            command.env_remove(other);
        }
        command.env(name, "/proc/none");
        let said = said(command);
        if said.code == Some(0) {
            // It found another place.
            continue;
        }
        said.code(3)
            .silent()
            .err("`Portable Computing Language`, which is there and has none")
            .err(&format!("{name} is /proc/none: set POCL_CACHE_DIR"));
    }
}

#[test]
fn without_a_driver_or_a_library_both_are_named_with_their_packages() {
    let stage = Stage::new();
    std::fs::create_dir(stage.path("vendors")).unwrap();
    let words = ["Network_intel", "--comm-type", "ocl-pcie", "-m", "2"];
    let mut driverless = stage.peer(&words);
    driverless.env("OCL_ICD_VENDORS", stage.path("vendors"));
    let mut without = stage.peer(&words);
    without.env("WEIR_OPENCL_LIB", stage.path("libOpenCL.so.1"));
    for command in [driverless, without] {
        said(command)
            .code(3)
            .silent()
            .err("comm-type ocl-pcie is not available: this machine lacks ")
            .err("libOpenCL.so.1")
            .err("ocl-icd-libopencl1")
            .err("pocl-opencl-icd");
    }
    let mut list = stage.peer(&["Network_intel", "--list-comm"]);
    list.env("WEIR_OPENCL_LIB", stage.path("libOpenCL.so.1"));
    let page = said(list).code(0).out;
    let line = page.lines().find(|l| l.starts_with("ocl-pcie "));
    assert!(
        line.is_some_and(|l| l.contains("this machine lacks OpenCL")),
        "{page}"
    );
    // What needs no device needs no library.
    let mut other = stage.peer(&["Network_intel", "-m", "2", "-u", "2", "-l", "2"]);
    other.env("WEIR_OPENCL_LIB", stage.path("libOpenCL.so.1"));
    said(other).code(0);
    beff(&stage, "--comm-type ocl-pcie --test").code(0);
}
