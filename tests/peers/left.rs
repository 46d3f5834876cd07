//! Files that a run leaves behind: files with their lengths, logs with the shape of their lines.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::beside::Case;
use crate::sections::Job;
use crate::stage::Stage;

/// Descriptions of the files, by name.
pub(crate) type Left = BTreeMap<String, String>;

/// Of each file what it looks like.
pub(crate) fn left(stage: &Stage, case: &Case) -> Left {
    let mut found = Left::new();
    let given: BTreeSet<&str> = case.files.iter().map(|(name, _)| name.as_str()).collect();
    below(Path::new(&stage.path("")), "", &mut |name, path| {
        if !given.contains(name) {
            found.insert(name.to_owned(), described(name, path, case));
        }
    });
    found
}

pub(crate) fn below(directory: &Path, at: &str, visit: &mut impl FnMut(&str, &Path)) {
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{at}{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            below(&entry.path(), &format!("{name}/"), visit);
        } else {
            visit(&name, &entry.path());
        }
    }
}

fn described(name: &str, path: &Path, case: &Case) -> String {
    match path.extension().and_then(|end| end.to_str()) {
        Some("state") => return String::new(),
        Some("log") => {}
        _ => {
            let facts = fs::metadata(path).unwrap();
            let on_disk = facts.blocks() * 512;
            return if writes_known_blocks(name, case) {
                format!("{} bytes, {on_disk} on disk", facts.len())
            } else {
                format!("{} bytes", facts.len())
            };
        }
    }
    // How many windows there are depends on time.
    if case.mentions("log_avg_msec") || case.mentions("log_hist_msec") {
        return String::new();
    }
    let text = fs::read_to_string(path).unwrap();
    if ends_alike(case) {
        return format!("{} lines {:?}", text.lines().count(), shape(&text));
    }
    let columns: BTreeSet<usize> = text.lines().map(|line| line.split(", ").count()).collect();
    format!("columns {columns:?}")
}

/// True if no draw decides which blocks of a file are written.
fn writes_known_blocks(name: &str, case: &Case) -> bool {
    let jobs = case.jobs();
    let of_file = |job: &&Job| name.starts_with(&job.name);
    let draws = |job: &Job| job.is_random() || job.mixes();
    let is_named = jobs.iter().any(|job| of_file(&job));
    !jobs
        .iter()
        .any(|job| (!is_named || of_file(&job)) && draws(job))
}

/// Shape of a log's lines, without measured numbers.
pub(crate) fn shape(text: &str) -> BTreeSet<String> {
    let shape = |line: &str| {
        let columns: Vec<&str> = line.split(", ").collect();
        let kept = match columns.len() {
            5 => [columns[2], columns[3], columns[4]].join(" "),
            6 => [columns[2], columns[3], columns[5]].join(" "),
            // A histogram.
            many => format!("{many} {:?} {:?}", columns.get(1), columns.get(2)),
        };
        format!("{} {kept}", columns.len())
    };
    text.lines().map(shape).collect()
}

/// True if random draws do not decide how many operations there are.
fn ends_alike(case: &Case) -> bool {
    let mixes = [
        "rw=rw",
        "rw=randrw",
        "rw=readwrite",
        "write=rw",
        "write=randrw",
    ];
    let drawn = ["bsrange", "blocksize_range", "bssplit"];
    let text = case.text();
    let several = |line: &str| line.trim().starts_with('b') && line.contains(',');
    !text.lines().any(several)
        && !drawn.iter().any(|option| case.mentions(option))
        && !mixes
            .iter()
            .chain(&["write=readwrite"])
            .any(|m| text.contains(m))
}
