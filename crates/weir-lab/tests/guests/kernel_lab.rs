//! The lab itself, with guests: statuses, time limits, panics, devices, modules, results, counting.
//!
//! Cases that need no boot of their own share one. What this machine lacks is skipped, by name;
//! `WEIR_LAB=require` makes that a failure.
#![allow(clippy::panic, reason = "tests")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use weir_lab::{Accel, CaseBatch, CaseRun, Kernel, Lab, LabRun, Missing, Places, or_skip, skip};

use crate::shared::{Guest, case};

const PROGRAM: &str = env!("CARGO_BIN_EXE_weir-lab");
const HELLO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hello");

/// The program as `lab/vm` starts it.
fn vm(args: &[&str]) -> Result<Output> {
    Command::new(PROGRAM).args(args).output().context(PROGRAM)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A lab, if guests can be booted here; prints a note for this test if not.
fn lab(test: &str) -> Result<Option<Lab>> {
    or_skip(test, Lab::new())
}

/// A folder that vanishes.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Result<Self> {
        let path = std::env::temp_dir().join(format!("weir-lab-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    fn text(&self) -> String {
        self.0.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Boots the guest with many devices, for all cases that can share it.
pub(crate) fn boot() -> Result<(LabRun, Vec<CaseRun>)> {
    let lab = Lab::new()?
        .append("nvme.poll_queues=1")
        .dev("nvme:size=1G")
        .dev("virtio:size=64M")
        .dev("null")
        .dev("ram:64M")
        .dev("zoned:256M")
        .dev("loop:8M")
        .dev("blkdebug-error:sector=2048")
        .dev("nvme:zoned,size=256M")
        .dev("null:gb=1,bs=4096,poll_queues=0");
    lab.batch(&cases())
}

fn shared(name: &str) -> Result<Option<(&'static LabRun, &'static CaseRun)>> {
    case(Guest::Devices, name)
}

fn cases() -> CaseBatch {
    CaseBatch::default()
        .case(
            "devices",
            "for d in $LAB_DEV_0 $LAB_DEV_1 $LAB_DEV_2 $LAB_DEV_3 $LAB_DEV_4 $LAB_DEV_5 \
             $LAB_DEV_6 $LAB_DEV_7 $LAB_DEV_8; do test -b $d || lab_fail no $d; echo $d; done
             for d in $LAB_DEV_1 $LAB_DEV_5; do
               lab_check blockdev --getsize64 $d
             done
             cat /sys/block/nullb1/queue/logical_block_size",
        )
        .case(
            "results",
            "lab_check dd if=/dev/urandom of=/out/x bs=1M count=8
             mkdir /out/below; echo 'deep' > /out/below/y
             sha256sum /out/x",
        )
        .case(
            "zoned",
            "cat /sys/block/z0/queue/zoned /sys/block/nvme1n1/queue/zoned",
        )
        .case(
            "polled",
            "cat /sys/block/nvme0n1/queue/io_poll /sys/block/nullb0/queue/io_poll \
             /sys/block/nullb1/queue/io_poll",
        )
        .case(
            "io-error",
            "dd if=$LAB_DEV_6 of=/dev/null bs=4096 count=1 skip=16 || lab_fail a good sector
             dd if=$LAB_DEV_6 of=/dev/null bs=4096 count=1 skip=256 && lab_fail a bad sector; true",
        )
        .case("skipped", "lab_skip no card; echo not reached")
        .case("failed", "echo before; lab_check false; echo not reached")
        .case(
            "records",
            "echo '@@weir {\"iops\": 7}'; echo plain; printf 'no end'",
        )
        .case(
            "no-terminal",
            "test -t 1 && lab_fail a terminal; sleep 1000 & echo left",
        )
        .case("warned", "echo '<4>WARNING: CPU: 0 a test' > /dev/kmsg")
}

#[test]
fn l1_the_doctor_names_what_there_is_and_what_is_missing() -> Result<()> {
    let whole = vm(&["doctor"])?;
    let said = text(&whole.stdout);
    for line in ["emulator", "userland", "kernel"] {
        ensure!(said.contains(line), "{said}");
    }
    ensure!(whole.status.success() == Lab::new().is_ok(), "{said}");
    let bare = Command::new(PROGRAM)
        .arg("doctor")
        .env("PATH", "/nowhere")
        .output()?;
    let said = text(&bare.stdout);
    ensure!(bare.status.code() == Some(1), "{said}");
    ensure!(said.contains("apt: qemu-system-x86"), "{said}");
    Ok(())
}

#[test]
fn l2_the_scripts_output_and_status_come_out() -> Result<()> {
    if lab("l2")?.is_none() {
        return Ok(());
    }
    let output = vm(&["run", "--", "sh", "-c", "echo hi; exit 5"])?;
    assert_eq!(text(&output.stdout), "hi\n", "{output:?}");
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    Ok(())
}

#[test]
fn l3_at_the_time_limit_nothing_is_left() -> Result<()> {
    if lab("l3")?.is_none() {
        return Ok(());
    }
    let mark = format!("lab_mark={}", std::process::id());
    let args = [
        "run",
        "--timeout",
        "5",
        "--append",
        &mark,
        "--",
        "sleep",
        "60",
    ];
    let output = vm(&args)?;
    assert_eq!(output.status.code(), Some(124), "{output:?}");
    let with_mark = fs::read_dir("/proc")?.flatten().filter(|process| {
        let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
        // This program is no part of it, so nothing else has these words.
        text(&line).contains(&mark)
    });
    assert_eq!(with_mark.count(), 0);
    Ok(())
}

#[test]
fn l4_a_panic_is_a_complaint_and_its_log_stays() -> Result<()> {
    if lab("l4")?.is_none() {
        return Ok(());
    }
    let out = Folder::new("l4")?;
    let crash = "echo c > /proc/sysrq-trigger";
    let output = vm(&["run", "--out", &out.text(), "--", "sh", "-c", crash])?;
    assert_eq!(output.status.code(), Some(126), "{output:?}");
    ensure!(text(&output.stderr).contains("Kernel panic"), "{output:?}");
    ensure!(fs::read_to_string(out.0.join("dmesg.log"))?.contains("Kernel panic"));
    let result = fs::read(out.0.join("result.json"))?;
    let result: serde_json::Value = serde_json::from_slice(&result)?;
    assert_eq!(result["status"], 126);
    assert_eq!(result["complaints"][0]["class"], "kernel");
    Ok(())
}

#[test]
fn l5_every_device_appears_in_the_order_of_its_flag() -> Result<()> {
    let Some((_, case)) = shared("devices")? else {
        return Ok(());
    };
    let said = case.good()?;
    let nodes = [
        "/dev/nvme0n1",
        "/dev/vda",
        "/dev/nullb0",
        "/dev/ram0",
        "/dev/z0",
        "/dev/loop0",
        "/dev/vdb",
        "/dev/nvme1n1",
        "/dev/nullb1",
        "67108864",
        "8388608",
        "4096",
    ];
    assert_eq!(said.lines().collect::<Vec<_>>(), nodes);
    Ok(())
}

#[test]
fn l6_files_of_the_guest_come_out_unchanged() -> Result<()> {
    let Some((run, case)) = shared("results")? else {
        return Ok(());
    };
    let said = case.good()?;
    let sum = said.lines().last().context("a sum")?;
    let here = Command::new("sha256sum").arg(run.file("x")).output()?;
    let here = text(&here.stdout);
    assert_eq!(here.split(' ').next(), sum.split(' ').next());
    assert_eq!(fs::read_to_string(run.file("below/y"))?, "deep\n");
    Ok(())
}

/// The module and the program together.
#[test]
fn l7_l8_a_run_inside_the_kernel_holds_its_module() -> Result<()> {
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kmod/kio");
    let Some(lab) = lab("l7")? else {
        return Ok(());
    };
    if !module.is_dir() {
        skip("l7, l8", "no kmod/kio in this tree");
        return Ok(());
    }
    let Some(_) = or_skip("l7", lab.build(&module))? else {
        return Ok(());
    };
    let batch = CaseBatch::default()
        .case(
            "l7",
            "weir kio --help >/dev/null || lab_skip this weir has no kio
             lab_check insmod /lab/kio.ko
             lab_check weir kio --voice peer --device $LAB_DEV_0 --runtime 1
             lab_check rmmod kio",
        )
        .case(
            "l8",
            "weir kio --help >/dev/null || lab_skip this weir has no kio
             lab_check insmod /lab/kio.ko
             weir kio --device $LAB_DEV_0 --runtime 2 & run=$!
             tries=0
             while [ $(cat /sys/module/kio/refcnt) = 0 ]; do
               tries=$((tries + 1)); [ $tries -lt 400 ] || lab_fail nobody holds the module
               sleep 0.05
             done
             rmmod kio && lab_fail it was unloaded within a run
             lab_check wait $run
             lab_check rmmod kio",
        );
    let (run, cases) = lab.module(module).dev("null").batch(&batch)?;
    run.no_complaints()?;
    if cases[0].skipped() {
        skip("l7, l8", &cases[0].output);
        return Ok(());
    }
    ensure!(
        cases[0].good()?.contains("kernel/bio"),
        "{}",
        cases[0].output
    );
    cases[1].good()?;
    Ok(())
}

#[test]
fn l9_zoned_devices_are_zoned() -> Result<()> {
    let Some((_, case)) = shared("zoned")? else {
        return Ok(());
    };
    assert_eq!(case.good()?, "host-managed\nhost-managed\n");
    Ok(())
}

#[test]
fn l10_words_of_the_kernels_command_line_and_settings_of_devices_act() -> Result<()> {
    let Some((_, case)) = shared("polled")? else {
        return Ok(());
    };
    // The other half, a guest without the word, is in l15.
    assert_eq!(case.good()?, "1\n1\n0\n");
    Ok(())
}

#[test]
fn an_injected_error_reaches_the_script() -> Result<()> {
    if let Some((_, case)) = shared("io-error")? {
        let said = case.good()?;
        ensure!(said.contains("Input/output error"), "{said}");
    }
    Ok(())
}

#[test]
fn cases_skip_fail_and_are_blamed_for_their_complaints_alone() -> Result<()> {
    let Some((run, skipped)) = shared("skipped")? else {
        return Ok(());
    };
    assert!(skipped.skipped());
    assert_eq!(skipped.output, "SKIP: no card\n");
    let of = |name| Ok::<_, anyhow::Error>(shared(name)?.context("it ran before")?.1);
    let failed = of("failed")?;
    assert_eq!(failed.status, Some(1));
    assert_eq!(failed.output, "before\nFAIL: false (status 1)\n");
    assert_eq!(of("records")?.output, "plain\nno end");
    assert_eq!(run.records, [serde_json::json!({"iops": 7})]);
    let blamed = run
        .complaints
        .iter()
        .map(|complaint| complaint.case.as_deref());
    assert_eq!(blamed.collect::<Vec<_>>(), [Some("warned")]);
    ensure!(of("warned")?.good().is_err() && run.no_complaints().is_err());
    assert_eq!(run.status, 126);
    Ok(())
}

#[test]
fn a_script_has_no_terminal_and_what_it_leaves_behind_does_not_keep_the_guest() -> Result<()> {
    if let Some((run, case)) = shared("no-terminal")? {
        assert_eq!(case.good()?, "left\n");
        ensure!(
            matches!(run.ending, weir_lab::Ending::Exit(0)),
            "{:?}",
            run.ending
        );
    }
    Ok(())
}

#[test]
fn l11_a_user_without_rights_can_do_it() -> Result<()> {
    let Some(lab) = lab("l11")? else {
        return Ok(());
    };
    if !rustix::process::geteuid().is_root() {
        // Then l2 has shown it already.
        return Ok(());
    }
    // The tree may lie where others cannot look; this one they may only read.
    let folder = Folder::new("l11")?;
    let (program, kernel) = (folder.0.join("weir-lab"), folder.0.join("vmlinuz"));
    let temporary = folder.0.join("tmp");
    fs::copy(PROGRAM, &program)?;
    fs::copy(&lab.kernel().image, &kernel)?;
    fs::create_dir(&temporary)?;
    let open = std::os::unix::fs::PermissionsExt::from_mode;
    fs::set_permissions(&folder.0, open(0o755))?;
    fs::set_permissions(&temporary, open(0o777))?;
    fs::set_permissions(&kernel, open(0o644))?;
    let output = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .arg(&program)
        .args(["run", "--", "sh", "-c", "echo hi; exit 5"])
        .env("WEIR_LAB_ROOT", &folder.0)
        .env("WEIR_LAB_KERNEL", &kernel)
        .env("TMPDIR", &temporary)
        .current_dir("/")
        .output()?;
    assert_eq!(text(&output.stdout), "hi\n", "{output:?}");
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    Ok(())
}

#[test]
fn l12_without_an_emulator_tests_are_skipped_by_name_or_fail_where_required() -> Result<()> {
    let again = |require: bool| {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args([
                "--exact",
                "kernel_lab::l2_the_scripts_output_and_status_come_out",
            ])
            .env("PATH", "/nowhere")
            .env_remove("WEIR_SKIP_LOG")
            .env_remove("WEIR_LAB");
        if require {
            command.env("WEIR_LAB", "require");
        }
        command.output()
    };
    let skipped = again(false)?;
    ensure!(skipped.status.success(), "{skipped:?}");
    let line = "SKIP kernel_lab: l2: no qemu-system-x86_64 (apt: qemu-system-x86)";
    ensure!(text(&skipped.stderr).contains(line), "{skipped:?}");
    let required = again(true)?;
    ensure!(!required.status.success(), "{required:?}");
    Ok(())
}

/// Both series, or why not.
fn both_series(test: &str) -> Result<Option<(Kernel, Kernel)>> {
    let unpacked = Kernel::unpacked(&Places::find()?);
    let of = |series: &str| {
        let found = unpacked
            .iter()
            .rev()
            .find(|kernel| kernel.release.starts_with(series));
        found.cloned().ok_or_else(|| Missing {
            what: format!("no kernel {series}* under lab/kernels"),
            remedy: "cargo xtask test --all unpacks it".to_owned(),
        })
    };
    let both = of("6.1.").and_then(|old| Ok((old, of("6.12.")?)));
    let both = both.map_err(anyhow::Error::from).and_then(|both| {
        both.0.headers()?;
        both.1.headers()?;
        Ok(both)
    });
    or_skip(test, both)
}

#[test]
fn l13_a_module_of_another_release_is_refused_and_both_are_named() -> Result<()> {
    let (Some(_), Some((old, new))) = (lab("l13")?, both_series("l13")?) else {
        return Ok(());
    };
    let other = Lab::with_kernel(Some(&new.image))?.build(HELLO)?;
    let module = other.files[0].display().to_string();
    let kernel = old.image.display().to_string();
    let output = vm(&[
        "run",
        "--kernel",
        &kernel,
        "--module",
        &module,
        "--",
        "insmod",
        "/lab/hello.ko",
    ])?;
    let (said, lab) = (text(&output.stdout), text(&output.stderr));
    ensure!(!output.status.success(), "{output:?}");
    ensure!(
        said.to_lowercase().contains("invalid module format"),
        "{said}"
    );
    ensure!(
        lab.contains(&new.release) && lab.contains(&old.release),
        "{lab}"
    );
    Ok(())
}

/// `fio`, or why not.
fn fio(test: &str) -> Option<&'static str> {
    let fio = "/usr/bin/fio";
    if Path::new(fio).is_file() {
        return Some(fio);
    }
    skip(test, "no fio (apt: fio)");
    None
}

#[test]
fn l14_counted_instructions_repeat_over_boots() -> Result<()> {
    let (Some(lab), Some(fio)) = (lab("l14")?, fio("l14")) else {
        return Ok(());
    };
    let lab = lab
        .accel(Accel::Icount)
        .memory_mib(1024)
        .dev("null:queue_mode=2,irqmode=0,no_sched=1")
        .file(fio, "lab/fio");
    let script = "lab_check fio --name=a --filename=$LAB_DEV_0 --direct=1 --rw=randread --bs=4k \
                  --ioengine=psync --runtime=1 --time_based --output-format=json --output=/out/f.json";
    let of = |run: &LabRun| -> Result<f64> {
        run.good()?;
        let read = &run.json("f.json")?["jobs"][0]["read"];
        let number = |name: &str| read[name].as_f64().context("a number");
        Ok(number("runtime")? * 1e6 / number("total_ios")?)
    };
    let both = std::thread::scope(|scope| {
        let runs = [(); 2].map(|()| scope.spawn(|| lab.run(script)));
        runs.map(|run| run.join().map_err(|_| anyhow::anyhow!("a thread")))
    });
    let mut nanos = Vec::new();
    for run in both {
        nanos.push(of(&run??)?);
    }
    let apart = (nanos[0] / nanos[1] - 1.0).abs();
    ensure!(
        apart < 0.005,
        "{nanos:?} ns for one operation: {:.2} % apart",
        apart * 100.0
    );
    ensure!((2_000.0..50_000.0).contains(&nanos[0]), "{nanos:?}");
    Ok(())
}

#[test]
fn l15_the_same_with_every_kernel_is_a_table() -> Result<()> {
    let (Some(_), Some((old, new))) = (lab("l15")?, both_series("l15")?) else {
        return Ok(());
    };
    let script = "insmod /lab/hello.ko && dmesg | grep -o 'hello: loaded' && rmmod hello && \
                  test -b $LAB_DEV_1 && cat /sys/block/nvme0n1/queue/io_poll";
    let output = vm(&[
        "matrix",
        "--kernels",
        &old.image.display().to_string(),
        "--kernels",
        &new.image.display().to_string(),
        "--module",
        HELLO,
        "--dev",
        "nvme",
        "--dev",
        "null",
        "--",
        "sh",
        "-c",
        script,
    ])?;
    let said = text(&output.stdout);
    ensure!(output.status.success(), "{output:?}");
    assert_eq!(said.matches("hello: loaded\n0\n").count(), 2, "{said}");
    let rows: BTreeMap<&str, Vec<&str>> = said
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|words| words.len() == 4)
        .map(|words| (words[0], words[1..3].to_vec()))
        .collect();
    for kernel in [&old.release, &new.release] {
        assert_eq!(rows[kernel.as_str()], ["0", "0"], "{said}");
    }
    Ok(())
}

#[test]
fn l16_passthrough_loses_no_command() -> Result<()> {
    let (Some(lab), Some(fio)) = (lab("l16")?, fio("l16")) else {
        return Ok(());
    };
    let script = "for n in 1 2 3 4 5 6 7 8; do
        fio --name=a --filename=/dev/ng0n1 --ioengine=io_uring_cmd --cmd_type=nvme --rw=randread \
            --bs=4k --iodepth=16 --runtime=1 --time_based --output=/dev/null || lab_fail $n
        echo $n
      done";
    let run = lab
        .dev("nvme:size=1G")
        .memory_mib(1024)
        .file(fio, "lab/fio")
        .timeout(Duration::from_secs(180))
        .run(script)?;
    run.good()?;
    ensure!(!run.repeated, "a command was lost in the first run");
    assert_eq!(run.output, "1\n2\n3\n4\n5\n6\n7\n8\n");
    Ok(())
}

#[test]
fn the_shell_answers_on_the_line_of_the_script() -> Result<()> {
    if lab("shell")?.is_none() {
        return Ok(());
    }
    // A terminal of its own.
    // A `timeout` of its own group could not read from it, and whether it makes one depends on the shell.
    let command = format!("timeout --foreground 120 {PROGRAM} shell --dev ram:8M");
    let mut child = Command::new("script")
        .args(["-qefc", &command, "/dev/null"])
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let (mut keys, mut screen) = (
        child.stdin.take().context("stdin")?,
        child.stdout.take().context("stdout")?,
    );
    let (mut said, mut buffer, mut typed) = (Vec::new(), [0; 4096], false);
    while let Ok(count @ 1..) = screen.read(&mut buffer) {
        said.extend_from_slice(&buffer[..count]);
        if !typed && text(&said).contains("# ") {
            keys.write_all(b"echo $LAB_DEV_0 $((40 + 2)); exit\n")?;
            typed = true;
        }
    }
    let status = child.wait()?;
    let good = status.success() && text(&said).contains("/dev/ram0 42");
    ensure!(good, "{status}: {}", text(&said));
    Ok(())
}

#[test]
fn lines_of_an_input_that_is_no_terminal_are_run_and_lost_results_are_reported() -> Result<()> {
    if lab("shell-lines")?.is_none() {
        return Ok(());
    }
    let folder = Folder::new("shell")?;
    let mut child = Command::new("timeout")
        .args(["120", PROGRAM, "shell", "--out", &folder.text()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let lines = b"echo $((40 + 2))\ntruncate -s 80M /out/big\necho more >/out/y\nexit 3\n";
    child.stdin.take().context("stdin")?.write_all(lines)?;
    let output = child.wait_with_output()?;
    assert_eq!(text(&output.stdout), "42\n", "{output:?}");
    // A part of the results would be taken for all of them.
    assert_eq!(output.status.code(), Some(125), "{output:?}");
    let said = text(&output.stderr);
    let expected = "the script ended with 3; the results in /out do not fit";
    ensure!(said.contains(expected), "{said}");
    ensure!(!folder.0.join("big").exists() && !folder.0.join("y").exists());
    Ok(())
}

#[test]
fn output_that_cannot_be_written_is_an_error_and_a_reader_that_left_is_none() -> Result<()> {
    let into = |file: &str, args: &[&str]| -> Result<Output> {
        let to = fs::OpenOptions::new().write(true).open(file)?;
        let mut command = Command::new(PROGRAM);
        Ok(command.args(args).stdout(to).output()?)
    };
    let full = into("/dev/full", &["doctor"])?;
    assert_eq!(full.status.code(), Some(125), "{full:?}");
    ensure!(text(&full.stderr).contains("No space left"), "{full:?}");
    let mut gone = Command::new(PROGRAM);
    let mut gone = gone.arg("doctor").stdout(Stdio::piped()).spawn()?;
    drop(gone.stdout.take());
    ensure!(matches!(gone.wait()?.code(), Some(0 | 1)), "it panicked");
    if lab("full")?.is_none() {
        return Ok(());
    }
    let full = into("/dev/full", &["run", "--", "echo", "x"])?;
    assert_eq!(full.status.code(), Some(125), "{full:?}");
    let said = text(&full.stderr);
    ensure!(
        said.contains("ended with 0; its output was lost: No space left"),
        "{said}"
    );
    Ok(())
}

#[test]
fn a_module_is_built_once_for_its_sources_and_without_a_warning() -> Result<()> {
    let Some(lab) = lab("build")? else {
        return Ok(());
    };
    let Some(first) = or_skip("build", lab.build(HELLO))? else {
        return Ok(());
    };
    assert_eq!(first.warnings(), Vec::<&str>::new());
    let time = fs::metadata(&first.files[0])?.modified()?;
    let second = lab.build(HELLO)?;
    assert_eq!(fs::metadata(&second.files[0])?.modified()?, time);
    let folder = Folder::new("build")?;
    for name in ["Kbuild", "hello.c"] {
        fs::copy(Path::new(HELLO).join(name), folder.0.join(name))?;
    }
    let source = fs::read_to_string(folder.0.join("hello.c"))? + "static int unused;\n";
    fs::write(folder.0.join("hello.c"), source)?;
    let other = lab.build(&folder.0)?;
    ensure!(other.files != first.files);
    ensure!(
        other.warnings().iter().any(|line| line.contains("unused")),
        "{}",
        other.log
    );
    fs::write(folder.0.join("hello.c"), "no C")?;
    let error = lab.build(&folder.0).err().context("it builds")?;
    ensure!(error.to_string().contains("does not build"), "{error}");
    Ok(())
}

#[test]
fn what_cannot_be_set_up_is_no_status_of_the_script() -> Result<()> {
    if lab("set-up")?.is_none() {
        return Ok(());
    }
    for (args, says) in [
        (&["run"][..], "--script FILE or -- CMD"),
        (&["run", "--dev", "floppy", "--", "true"], "there is nvme"),
        (
            &["run", "--kernel", "/etc/passwd", "--", "true"],
            "no Linux kernel",
        ),
        (&["run", "--module", "/no.ko", "--", "true"], "no such file"),
        (&["run", "--mem", "none", "--", "true"], "--mem none"),
        (
            &["run", "--mem", "10", "--", "true"],
            "--mem 10: kernel and first file system need",
        ),
        (&["run", "--no-such-flag"], "--no-such-flag"),
    ] {
        let output = vm(args)?;
        assert_eq!(output.status.code(), Some(125), "{args:?}");
        let said = text(&output.stderr);
        ensure!(said.contains(says), "{args:?}: {said}");
    }
    let refused = vm(&["run", "--dev", "null:no_such_setting=1", "--", "true"])?;
    assert_eq!(refused.status.code(), Some(125), "{refused:?}");
    let said = text(&refused.stderr);
    ensure!(said.contains("has no setting no_such_setting"), "{said}");
    let absent = Command::new(PROGRAM)
        .args(["run", "--", "true"])
        .env("WEIR_LAB_WEIR", "/nonexistent")
        .output()?;
    assert_eq!(absent.status.code(), Some(125), "{absent:?}");
    let said = text(&absent.stderr);
    ensure!(
        said.contains("WEIR_LAB_WEIR=/nonexistent: no such file"),
        "{said}"
    );
    Ok(())
}
