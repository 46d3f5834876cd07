//! Which jobs waited for which, as the times of their files tell.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::SystemTime;

use crate::beside::Case;
use crate::left::below;
use crate::sections::Job;
use crate::stage::Stage;

/// When files were last written, by name.
pub(crate) type Written = BTreeMap<String, SystemTime>;

/// Of each file when it was last written.
pub(crate) fn written(stage: &Stage) -> Written {
    let mut found = Written::new();
    below(Path::new(&stage.path("")), "", &mut |name, path| {
        let time = fs::symlink_metadata(path).unwrap().modified().unwrap();
        found.insert(name.to_owned(), time);
    });
    found
}

/// Jobs whose last write came before that of a job that they wait for, as far as both have files
/// of their own.
pub(crate) fn too_early(case: &Case, written: &Written) -> Vec<String> {
    let jobs = case.jobs();
    let ends: Vec<Option<SystemTime>> = jobs.iter().map(|job| end(job, &jobs, written)).collect();
    let mut found = Vec::new();
    for (at, later) in jobs.iter().enumerate() {
        for (before, earlier) in jobs[..at].iter().enumerate() {
            let behind_a_wall = jobs[before + 1..=at].iter().any(|job| job.has("stonewall"));
            let waits = behind_a_wall || later.get("wait_for") == Some(earlier.name.as_str());
            if waits && ends[at].is_some() && ends[at] < ends[before] {
                found.push(format!("{} before {}", later.name, earlier.name));
            }
        }
    }
    found
}

/// When the last file was written of a job that writes to files of its own.
fn end(job: &Job, jobs: &[Job], written: &Written) -> Option<SystemTime> {
    let elsewhere = ["filename", "filename_format", "opendir", "directory"];
    let is_alone = jobs.iter().filter(|other| other.name == job.name).count() == 1;
    // Pages of a mapping have the time when they were first touched; a mix may write nothing.
    let writes = job.changes() && !job.mixes() && !["null", "mmap"].contains(&job.engine());
    if !is_alone || !writes || elsewhere.iter().any(|option| job.has(option)) {
        return None;
    }
    let is_own = |name: &str| {
        let numbers = name.strip_prefix(&job.name);
        let numbers = numbers.and_then(|rest| rest.strip_prefix('.'));
        numbers.is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit() || b == b'.'))
    };
    let own = written.iter().filter(|(name, _)| is_own(name));
    own.map(|(_, time)| *time).max()
}
