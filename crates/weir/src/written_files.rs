//! Check that files of a command can be changed, and are neither what it reads nor targets of its jobs.
//!
//! In: the files that a command names, by their parts; plans. Out: a refusal that names file and part, or
//! the job. Nothing is opened before all names are compared.

use std::path::Path;

use weir_doors::request::{FileChange, NamedFile};
use weir_doors::{Refusal, USAGE};
use weir_schema::{FileNames, Job, Plan};

use crate::{output, rows};

/// # Errors
/// A file that is changed and is read too, or changed for another part, or a target; one that cannot be
/// changed.
pub(crate) fn check<'a>(
    files: &[NamedFile],
    plans: impl IntoIterator<Item = &'a Plan>,
) -> Result<(), Refusal> {
    let changed: Vec<&NamedFile> = files.iter().filter(|file| file.is_changed()).collect();
    let is_device = |path: &str| !output::is_plain(Path::new(path));
    for (at, file) in changed.iter().enumerate() {
        let path = &file.path;
        let is_other = |other: &&NamedFile| {
            other.role != file.role && !is_device(path) && output::are_same(&other.path, path)
        };
        let read = files.iter().filter(|other| !other.is_changed());
        if let Some(other) = read.chain(changed[..at].iter().copied()).find(is_other) {
            return Err(Refusal::usage(format!(
                "{path}: this file is {}, and {} too\n  help: name another file",
                file.role, other.role
            )));
        }
    }
    let paths: Vec<&str> = changed.iter().map(|file| file.path.as_str()).collect();
    for plan in plans {
        refuse_targets(plan, &paths)?;
        refuse_logs(plan, files)?;
    }
    changed.into_iter().try_for_each(check_change)
}

/// # Errors
/// A file that cannot be changed so.
fn check_change(file: &NamedFile) -> Result<(), Refusal> {
    let path = &file.path;
    if matches!(file.change, FileChange::Kept) {
        return Ok(());
    }
    let role = format!("; it is {}\n", file.role);
    output::check_writable(path)
        .map_err(|why| Refusal::new(USAGE, why.replacen('\n', &role, 1)))?;
    match &file.change {
        FileChange::Rows { head, refuse } => {
            rows::check_rows(path, head).map_err(|why| refuse(path, &why))
        }
        _ => Ok(()),
    }
}

/// # Errors
/// A file that the command changes, or a log or trace of a job, and that a job works on.
fn refuse_targets(plan: &Plan, written: &[&str]) -> Result<(), Refusal> {
    let refuse = |path: &str, job: &Job| {
        let name = &job.name;
        Err(Refusal::usage(format!(
            "{path}: the job {name} works on this file, which would be changed"
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

/// # Errors
/// A log or trace of a job that is another file of the command.
fn refuse_logs(plan: &Plan, files: &[NamedFile]) -> Result<(), Refusal> {
    for (_, job) in plan.jobs() {
        for log in logs(job) {
            if let Some(file) = files.iter().find(|file| is_named(log, &file.path)) {
                return Err(Refusal::usage(format!(
                    "{}: this file is {}, and the job {} writes a log to it\n  help: name another file",
                    file.path, file.role, job.name
                )));
            }
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
    let operations = load.recording.record_operations_to.as_deref();
    logs.chain(trace).chain(operations).collect()
}

/// True if a file is the log, or the log of some worker.
fn is_named(log: &str, file: &str) -> bool {
    let Some((before, after)) = log.split_once("$worker") else {
        return output::is_plain(Path::new(log)) && output::are_same(log, file);
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
        assert!(refused("x_bw.log", "./x_bw.log"));
        assert!(!refused("x_bw..log", "x_bw.$worker.log"));
        assert!(!refused("x_bw.1a.log", "x_bw.$worker.log"));
        assert!(!refused("data", "x_bw.$worker.log"));
    }
}
