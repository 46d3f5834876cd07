//! Jobs as plain data, run through the family's public door.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests, outside of test functions"
)]

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use weir_block::Block;
use weir_run::Runner;
use weir_run::execute::{RunControl, check, execute};
use weir_schema::sample::{self, JobSample};
use weir_schema::{
    Announcement, BlockWorkload, Failure, FileNames, Job, Kind, KindResult, Mix, RunResult,
    Setting, Size,
};
use weir_sys::clock::Clock;
use weir_units::Bytes;

/// A directory that vanishes.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    /// Below the build's own directory: on a real file system.
    pub(crate) fn on_disk() -> Self {
        Self::below(Path::new(env!("CARGO_TARGET_TMPDIR")))
    }

    /// In memory.
    pub(crate) fn in_memory() -> Self {
        Self::below(Path::new("/dev/shm"))
    }

    fn below(top: &Path) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let at = top.join(format!("weir-block-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&at).unwrap();
        Self(at)
    }

    pub(crate) fn file(&self, name: &str, bytes: u64) -> PathBuf {
        let path = self.0.join(name);
        let content: Vec<u8> = (0..bytes)
            .map(|n| u8::try_from(n / 512 % 251).unwrap() + 1)
            .collect();
        std::fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Says that a test could not be done here.
pub(crate) fn skip(name: &str, reason: &str) {
    println!("SKIPPED: {name}: {reason}");
    if let Ok(path) = std::env::var("WEIR_SKIP_LOG") {
        use std::io::Write;
        let log = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(path);
        let _ = log.and_then(|mut log| writeln!(log, "{name}: {reason}"));
    }
}

/// A job of one kind on one file with 4 KiB blocks.
pub(crate) fn job(engine: &str, kind: Kind, path: &str) -> Job {
    sample::block_job("job").over(engine).blocks(|work| {
        work.mix = Mix::only(kind);
        work.targets.open.drop_cache = true;
        if !path.is_empty() {
            work.targets.files = FileNames::of(path);
        }
    })
}

/// The block workload of a job, to change it.
pub(crate) fn work(job: &mut Job) -> &mut BlockWorkload {
    job.block_work()
}

pub(crate) fn with_size(mut job: Job, bytes: u64) -> Job {
    work(&mut job).region.size = Some(Size::Bytes(Bytes(bytes)));
    job
}

pub(crate) fn with_depth(job: Job, depth: u32) -> Job {
    job.deep(depth)
}

pub(crate) fn with_setting(mut job: Job, name: &str, value: Setting) -> Job {
    job.engine.settings.insert(name.into(), value);
    job
}

fn controlled<T>(
    directory: &Path,
    act: impl FnOnce(RunControl<'_>) -> T,
) -> (T, Vec<Announcement>) {
    let said = Mutex::new(Vec::new());
    let announce = |said_now: &Announcement| said.lock().unwrap().push(said_now.clone());
    let (clock, _) = Clock::detect();
    let block = Block::default();
    let runners: [&dyn Runner; 1] = [&block];
    let done = act(RunControl {
        runners: &runners,
        ranks: weir_run::execute::RankHost::threads(1),
        clock,
        clock_facts: weir_schema::ClockFacts::default(),
        host: weir_schema::HostFacts::default(),
        version: "test",
        directory,
        signals: std::sync::Arc::default(),
        grace: Duration::from_secs(5),
        announce: &announce,
        log_format: |_, _, _| (),
        observer: None,
        calibrate: false,
        other_ranks: None,
    });
    (done, said.into_inner().unwrap())
}

/// Runs a job; its result and what was announced.
pub(crate) fn run_in(directory: &Path, job: Job) -> (RunResult, Vec<Announcement>) {
    controlled(directory, |control| {
        execute(&sample::plan(vec![vec![job]]), control)
    })
}

pub(crate) fn run(job: Job) -> RunResult {
    run_in(Path::new("/"), job).0
}

/// Failures that refuse the job before anything is touched.
pub(crate) fn refusals(job: Job) -> Vec<Failure> {
    let (found, _) = controlled(Path::new("/"), |control| {
        check(&sample::plan(vec![vec![job]]), &control)
    });
    found.into_iter().map(|(_, failure)| failure).collect()
}

/// The only job's failure.
pub(crate) fn failure(result: &RunResult) -> Failure {
    let job = result.jobs().next().unwrap();
    let worker = || {
        job.workers()
            .iter()
            .find_map(|worker| worker.failure.clone())
    };
    job.failure
        .clone()
        .or_else(worker)
        .unwrap_or_else(|| panic!("no failure: {job:?}"))
}

/// The figures of a kind, of the only worker.
pub(crate) fn figures(result: &RunResult, kind: Kind) -> KindResult {
    let job = result.jobs().next().unwrap();
    assert_eq!(job.failure, None, "{job:?}");
    job.workers()[0]
        .kind(kind)
        .unwrap_or_else(|| panic!("no {kind:?}: {job:?}"))
        .clone()
}
