//! The part of a job that one of several ranks runs: its files and its share of devices.
//!
//! In: the job of all, a rank and how many there are. Out: that rank's job, or why it cannot be.

use weir_run::{RankPart, failure};
use weir_schema::{Failure, FileNames, Job, Part, SaveState, TargetsPerRank, Verify, Workload};

/// The paths below here are devices.
const DEVICES: &str = "/dev/";

/// Makes the job of all the job of one rank.
pub(crate) fn adjust(job: &mut Job, part: RankPart) -> Result<(), Failure> {
    let RankPart {
        rank,
        ranks,
        targets,
    } = part;
    let Workload::Block(work) = &mut job.workload else {
        return Ok(());
    };
    if work.access.seed != 0 {
        // Else all ranks would go the same way at the same time.
        work.access.seed = (work.access.seed ^ u64::from(rank) << 32).max(1);
    }
    if let Some(verify) = &mut work.verify {
        refuse_states(verify)?;
        verify.save_state = SaveState::Never;
    }
    match targets {
        TargetsPerRank::Own => rename(&mut work.targets.files, rank)?,
        TargetsPerRank::Split => {
            work.region.part = Some(Part {
                number: rank,
                of: ranks,
            });
        }
        TargetsPerRank::Shared => {}
    }
    Ok(())
}

/// A state is that of the workers of one process.
fn refuse_states(verify: &Verify) -> Result<(), Failure> {
    if !verify.load_state && verify.save_state != SaveState::Always {
        return Ok(());
    }
    Err(refuse(
        "states of verification are of one process, and several ranks run",
        "neither save nor load them, or run one rank",
    ))
}

/// The first rank's files too have a number: what one rank leaves behind is not in the way of
/// several.
fn rename(files: &mut FileNames, rank: u32) -> Result<(), Failure> {
    match files {
        FileNames::Listed { paths, .. } => paths
            .iter_mut()
            .filter(|path| !path.starts_with(DEVICES) || path.starts_with("/dev/shm/"))
            .for_each(|path| append(path, rank)),
        FileNames::Generated { pattern, .. } => append(pattern, rank),
        FileNames::Sized { files } => files
            .iter_mut()
            .for_each(|file| append(&mut file.path, rank)),
        FileNames::None => {}
        FileNames::Below { .. } => {
            return Err(refuse(
                "the files of a directory cannot be renamed for each rank",
                "let the ranks split or share them as they are",
            ));
        }
    }
    Ok(())
}

fn append(path: &mut String, rank: u32) {
    path.push('.');
    path.push_str(&rank.to_string());
}

fn refuse(why: &str, remedy: &str) -> Failure {
    failure("plan", None, format!("{why}\n  help: {remedy}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_files_get_the_rank_and_devices_stay() {
        let mut files = FileNames::Listed {
            paths: vec!["a".into(), "/dev/nvme0n1".into(), "/dev/shm/b".into()],
            directories: Vec::new(),
        };
        rename(&mut files, 2).unwrap();
        let FileNames::Listed { paths, .. } = files else {
            unreachable!()
        };
        assert_eq!(paths, ["a.2", "/dev/nvme0n1", "/dev/shm/b.2"]);
        let mut below = FileNames::Below {
            directories: vec!["d".into()],
            paths: Vec::new(),
        };
        let refusal = rename(&mut below, 2).unwrap_err();
        assert!(
            refusal.message.contains("split or share"),
            "{}",
            refusal.message
        );
    }
}
