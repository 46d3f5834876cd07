//! The file systems and files that shall be measured.

use std::fs::File;
use std::path::Path;

use rustix::fs::statvfs;
use weir_schema::thresholds::{LEAST_WRITTEN, MOST_FULL};
use weir_sys::device::{DirectIo, PathFacts, extents, path_facts};

use super::Machine;
use super::devices::is_file;
use super::finding::Finding;

/// Types of file systems with remote data.
const NETWORK: [&str; 8] = ["nfs", "cifs", "smb", "lustre", "gpfs", "fuse", "9p", "ceph"];
/// Share of used space from which on nothing can be laid out.
const NO_ROOM: f64 = 0.99;

fn targets(machine: &Machine) -> Vec<String> {
    if machine.targets.is_empty() {
        vec![".".to_owned()]
    } else {
        machine.targets.clone()
    }
}

pub(super) fn file_systems(machine: &Machine) -> Vec<Finding> {
    let of_target = |target: String| match path_facts(&machine.tree, Path::new(&target)) {
        Err(why) => Finding::warn(target, &why.to_string(), "name what is there").fail(),
        Ok(facts) => file_system(&target, &facts),
    };
    targets(machine).into_iter().map(of_target).collect()
}

fn file_system(target: &str, facts: &PathFacts) -> Finding {
    let Some(system) = &facts.file_system else {
        return Finding::absent(format!("{target} is on no file system"));
    };
    let kind = &system.fs_type;
    let used = used(target);
    let room = used.map_or(String::new(), |used| {
        format!(", {:.0} % full", used * 100.0)
    });
    let found = format!("{target}: {kind}{room}");
    if used.is_some_and(|used| used > MOST_FULL) {
        let why = "a full file system lays files out in pieces";
        let finding = Finding::warn(found, why, "make room, or measure elsewhere");
        return if used.is_some_and(|used| used > NO_ROOM) {
            finding.fail()
        } else {
            finding
        };
    }
    if NETWORK.iter().any(|name| kind.starts_with(name)) {
        let why = "the network and the server's cache are measured too";
        return Finding::warn(found, why, "measure on the server for the disk alone");
    }
    if system.options.contains("compress") {
        let why = "what is written may not be what the disk gets";
        return Finding::warn(found, why, "write random content, or switch it off");
    }
    if facts.direct_io == Some(DirectIo::Unsupported) {
        let why = "without O_DIRECT the page cache answers";
        return Finding::warn(found, why, "measure a file on another file system");
    }
    Finding::ok(found)
}

/// Used share of the space that users may fill.
fn used(target: &str) -> Option<f64> {
    let facts = statvfs(target).ok()?;
    let used = facts.f_blocks.saturating_sub(facts.f_bfree);
    let whole = used.saturating_add(facts.f_bavail);
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    let share = used as f64 / whole as f64;
    (whole > 0).then_some(share)
}

pub(super) fn never_written(machine: &Machine) -> Vec<Finding> {
    let files = machine
        .targets
        .iter()
        .filter(|target| is_file(machine, target));
    let found: Vec<Finding> = files.map(|file| written(file)).collect();
    if found.is_empty() {
        return vec![Finding::absent("no file was named")];
    }
    found
}

fn written(file: &str) -> Finding {
    let path = Path::new(file);
    let found = File::open(path).map_err(|e| e.to_string());
    let found = found.and_then(|open| extents(open, path).map_err(|e| e.to_string()));
    let found = match found {
        Ok(found) => found,
        Err(why) => return Finding::absent(format!("{file}: {why}")),
    };
    let whole = found.data.0 + found.holes.0;
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    let share = found.data.0 as f64 / whole.max(1) as f64;
    let text = format!("{file}: {:.0} % was written", share * 100.0);
    if whole > 0 && share < LEAST_WRITTEN {
        let why = "reads of holes reach no device";
        Finding::warn(text, why, "write the file first, or let weir make it").fail()
    } else {
        Finding::ok(text)
    }
}
