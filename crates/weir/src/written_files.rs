//! Check that a run's other files are none of its targets.
//!
//! In: a plan, the files that take the report and the result. Out: a refusal that names the job.

use std::path::Path;

use weir_doors::Refusal;
use weir_schema::{FileNames, Job, Plan};

use crate::output;

/// # Errors
/// A file that is written once all is measured, or a log or trace of a job, and that a job works on.
pub(crate) fn refuse_targets(plan: &Plan, written: &[&str]) -> Result<(), Refusal> {
    let refuse = |path: &str, job: &Job| {
        let name = &job.name;
        Err(Refusal::usage(format!(
            "{path}: the job {name} works on this file, which would be replaced"
        )))
    };
    let plain = written.iter().filter(|p| output::is_plain(Path::new(p)));
    for path in plain {
        let works_on = |job: &Job| files(job).iter().any(|file| output::are_same(path, file));
        if let Some((_, job)) = plan.jobs().find(|(_, job)| works_on(job)) {
            return refuse(path, job);
        }
    }
    let logs: Vec<&str> = plan.jobs().flat_map(|(_, job)| logs(job)).collect();
    for (_, job) in plan.jobs().filter(|_| !logs.is_empty()) {
        let is_log = |file: &&String| logs.iter().any(|log| is_named(log, file));
        if let Some(file) = files(job).iter().find(is_log) {
            return refuse(file, job);
        }
    }
    Ok(())
}

/// The files that a job names.
fn files(job: &Job) -> Vec<String> {
    let Some(work) = job.workload.blocks() else {
        return Vec::new();
    };
    match &work.targets.files {
        FileNames::Listed { paths, directories } if directories.is_empty() => paths.clone(),
        FileNames::Listed { paths, directories } => {
            let pairs = directories
                .iter()
                .flat_map(|d| paths.iter().map(move |p| (d, p)));
            pairs
                .map(|(folder, path)| format!("{folder}/{path}"))
                .collect()
        }
        FileNames::Sized { files } => files.iter().map(|file| file.path.clone()).collect(),
        FileNames::Generated { .. } | FileNames::Below { .. } | FileNames::None => Vec::new(),
    }
}

/// Paths of a job's logs and of its trace, with `$worker` in place of a worker's number.
fn logs(job: &Job) -> Vec<&str> {
    let Some(load) = job.workload.load() else {
        return Vec::new();
    };
    let logs = load.recording.logs.iter().map(|log| log.path.as_str());
    let trace = load.recording.trace.iter().map(|trace| &*trace.path);
    logs.chain(trace).collect()
}

/// True if a file is the log, or the log of some worker.
fn is_named(log: &str, file: &str) -> bool {
    let Some((before, after)) = log.split_once("$worker") else {
        return log == file;
    };
    let number = file
        .strip_prefix(before)
        .and_then(|f| f.strip_suffix(after));
    number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use weir_schema::sample::{self, JobSample};
    use weir_schema::{Kind, Log, Logged};
    use weir_units::Nanos;

    use super::*;

    #[test]
    fn a_log_over_a_target_is_refused_by_its_job() {
        let log = |path: &str| Log {
            what: Logged::Bandwidth,
            path: path.to_owned(),
            window_ns: Nanos(0),
            maximum: false,
            offset: false,
            hex_priority: false,
            since_1970: false,
            compressed: false,
        };
        let plan = |target: &str, path: &str| {
            let job = sample::random_job("a", &[Kind::Write], 4096);
            let job = job.recorded(|r| r.logs = vec![log(path)]);
            let files = FileNames::Listed {
                paths: vec![target.to_owned()],
                directories: Vec::new(),
            };
            sample::plan(vec![vec![job.blocks(|work| work.targets.files = files)]])
        };
        let refused = |target, path| refuse_targets(&plan(target, path), &[]).is_err();
        assert!(refused("x_bw.2.log", "x_bw.$worker.log"));
        assert!(refused("x_bw.log", "x_bw.log"));
        assert!(!refused("x_bw..log", "x_bw.$worker.log"));
        assert!(!refused("x_bw.1a.log", "x_bw.$worker.log"));
        assert!(!refused("data", "x_bw.$worker.log"));
    }
}
