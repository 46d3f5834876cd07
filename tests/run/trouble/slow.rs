//! Slow tests: devices and file systems that root makes.

use super::{
    Duration, ENDLESS, LoopDevice, Mounted, RunResult, Running, Signal, Stage, State, act, fs, has,
    is_running, skip, until,
};

#[test]
fn a_full_file_system_loses_no_report() {
    let name = "a_full_file_system_loses_no_report";
    let stage = Stage::new();
    let _tmpfs = match Mounted::at(&stage, "small", &["-t", "tmpfs", "-o", "size=64k", "weir"]) {
        Ok(mounted) => mounted,
        Err(why) => return skip(name, &why),
    };
    stage.file("small/old.json", "an earlier result");
    let fill = fs::write(stage.path("small/ballast"), vec![0; 1 << 20]);
    assert!(fill.is_err());
    stage.file("j.fio", "[a]\nioengine=null\nsize=1m\n");
    let words = ["run", "--format=json", "--output=small/old.json", "j.fio"];
    let said = stage.say(&words).code(1).err("No space left on device");
    assert!(RunResult::from_json(&said.out).is_ok());
    assert_eq!(stage.read("small/old.json"), "an earlier result");
}

#[test]
fn a_mounted_device_is_not_written_to() {
    let name = "a_mounted_device_is_not_written_to";
    let stage = Stage::new();
    let device = match LoopDevice::over(&stage, "image", 8 << 20) {
        Ok(device) => device,
        Err(why) => return skip(name, &why),
    };
    if let Err(why) = act("mkfs.ext2", &["-q", &device.0]) {
        return skip(name, &why);
    }
    let mounted = match Mounted::at(&stage, "m", &[&device.0]) {
        Ok(mounted) => mounted,
        Err(why) => return skip(name, &why),
    };
    let target = &device.0;
    stage.file(
        "w.fio",
        format!("[w]\nfilename={target}\nsize=64k\nrw=write\n"),
    );
    stage.file(
        "r.fio",
        format!("[r]\nfilename={target}\nsize=64k\nrw=read\n"),
    );
    fs::write(stage.path("m/precious"), "data").unwrap();
    rustix::fs::sync();
    // Its first sectors: what follows, the file system changes when it likes.
    let first = || fs::read(stage.path("image")).unwrap()[..1024].to_vec();
    let before = first();
    let refusal = format!("refusing to write to `{target}`");
    stage
        .say(&["run", "w.fio"])
        .code(2)
        .silent()
        .err(&refusal)
        .err("is mounted on");
    stage
        .peer_says(&["fio", "w.fio"])
        .code(1)
        .err("is mounted on");
    stage.say(&["run", "r.fio"]).code(0);
    rustix::fs::sync();
    assert_eq!(first(), before);
    drop(mounted);
    stage.say(&["run", "w.fio"]).code(0);
}

#[test]
fn a_device_smaller_than_the_job_is_refused() {
    let name = "a_device_smaller_than_the_job";
    let stage = Stage::new();
    let device = match LoopDevice::over(&stage, "image", 1 << 20) {
        Ok(device) => device,
        Err(why) => return skip(name, &why),
    };
    for (size, offset) in [("2m", "0"), ("1m", "512k"), ("4k", "8m")] {
        let text = format!(
            "[w]\nfilename={}\nrw=write\nsize={size}\noffset={offset}\n",
            device.0
        );
        stage.file("j.fio", text);
        stage.say(&["run", "j.fio"]).code(2).silent().err("1048576");
        stage.peer_says(&["fio", "j.fio"]).code(1);
    }
    assert!(
        fs::read(stage.path("image"))
            .unwrap()
            .iter()
            .all(|&b| b == 0)
    );
    stage.file(
        "j.fio",
        format!("[w]\nfilename={}\nrw=write\nsize=100%\n", device.0),
    );
    stage.say(&["run", "j.fio"]).code(0);
}

#[test]
fn ctrl_c_twice_leaves_a_job_behind_that_hangs_in_the_kernel() {
    let name = "ctrl_c_twice_leaves_a_job_behind";
    let stage = Stage::new();
    if !has("fsfreeze") || !has("mkfs.ext4") {
        return skip(name, "needs fsfreeze and mkfs.ext4");
    }
    let device = match LoopDevice::over(&stage, "image", 32 << 20) {
        Ok(device) => device,
        Err(why) => return skip(name, &why),
    };
    if let Err(why) = act("mkfs.ext4", &["-q", &device.0]) {
        return skip(name, &why);
    }
    let mounted = match Mounted::at(&stage, "m", &[&device.0]) {
        Ok(mounted) => mounted,
        Err(why) => return skip(name, &why),
    };
    stage.file("j.fio", ENDLESS.replace("=data", "=m/data"));
    let running = Running::start(stage.weir(&["run", "--output=r.json", "j.fio"]));
    until("the job runs", || is_running(&stage, "m/data"));
    if let Err(why) = act("fsfreeze", &["--freeze", &mounted.0]) {
        running.signal(Signal::KILL);
        return skip(name, &why);
    }
    running.signal(Signal::INT);
    // Two that arrive at once count as one.
    std::thread::sleep(Duration::from_millis(200));
    running.signal(Signal::INT);
    // The report is out although the kernel keeps the process.
    until("the report", || fs::exists(stage.path("r.json")).unwrap());
    act("fsfreeze", &["--unfreeze", &mounted.0]).unwrap();
    let said = running.end().code(130);
    assert!(
        said.out.contains("left behind at the second signal"),
        "{said}"
    );
    assert!(said.out.contains("m/data"), "{said}");
    let result = RunResult::from_json(&stage.read("r.json")).unwrap();
    let job = &result.groups[0].jobs[0];
    assert_eq!(job.state, State::Hung);
    assert!(job.workers()[0].kinds[0].operations >= 256);
    assert_eq!(job.workers()[0].kinds[0].lost, 1);
}
