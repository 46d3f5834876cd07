//! One plan on several ranks: what each of them does with the plan's targets.
//!
//! In: the plan of all, a rank and how many there are. Out: that rank's plan. Names of jobs and
//! their number stay the same, so that results can be merged.

use weir_schema::{FileNames, Job, Part, Plan, SaveState, Verify, Workload};

use super::plan::USAGE;
use crate::refusal::Refusal;

/// What ranks do with the targets of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PerRank {
    /// Files of their own: `.<rank>` is appended; devices are everybody's.
    #[default]
    Own,
    /// Equal parts of each region.
    Split,
    /// The same regions.
    Shared,
}

/// The paths below here are devices.
const DEVICES: &str = "/dev/";

impl PerRank {
    /// The words of `--per-rank`.
    pub(super) const WORDS: &[&str] = &["own", "split", "shared"];

    pub(super) fn of(word: Option<&str>) -> Self {
        match word {
            Some("split") => Self::Split,
            Some("shared") => Self::Shared,
            _ => Self::Own,
        }
    }

    /// Makes the plan of all the plan of one rank.
    ///
    /// # Errors
    /// Targets that cannot be had per rank, states of verification.
    pub fn adjust(self, plan: &mut Plan, rank: u32, ranks: u32) -> Result<(), Refusal> {
        if ranks < 2 {
            return Ok(());
        }
        for job in plan.groups.iter_mut().flat_map(|g| &mut g.jobs) {
            self.adjust_job(job, rank, ranks)?;
        }
        if rank > 0
            && let Some(log) = &mut plan.total_log
        {
            let paths = [
                &mut log.paths.read,
                &mut log.paths.write,
                &mut log.paths.trim,
            ];
            for path in paths {
                append(path, rank);
            }
        }
        Ok(())
    }

    fn adjust_job(self, job: &mut Job, rank: u32, ranks: u32) -> Result<(), Refusal> {
        if rank > 0 {
            let logs = job.recording.logs.iter_mut();
            logs.for_each(|log| append(&mut log.path, rank));
        }
        let Workload::Block(work) = &mut job.workload else {
            return Ok(());
        };
        if work.access.seed != 0 {
            // Else all ranks would go the same way at the same time.
            work.access.seed = (work.access.seed ^ u64::from(rank) << 32).max(1);
        }
        if let Some(verify) = &mut work.verify {
            refuse_states(verify, &job.name)?;
            verify.save_state = SaveState::Never;
        }
        match self {
            Self::Own => rename(&mut work.targets.files, &job.name, rank)?,
            Self::Split => {
                work.region.part = Some(Part {
                    number: rank,
                    of: ranks,
                });
            }
            Self::Shared => {}
        }
        Ok(())
    }
}

/// A state is that of the workers of one process.
fn refuse_states(verify: &Verify, job: &str) -> Result<(), Refusal> {
    if !verify.load_state && verify.save_state != SaveState::Always {
        return Ok(());
    }
    let message = format!(
        "error: job `{job}`: states of verification are of one process, and several ranks run\n  \
         help: leave verify_state_save and verify_state_load out, or run one rank\n"
    );
    Err(Refusal::new(USAGE, message))
}

/// The first rank's files too have a number: what one rank leaves behind is not in the way of
/// several.
fn rename(files: &mut FileNames, job: &str, rank: u32) -> Result<(), Refusal> {
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
            let message = format!(
                "error: job `{job}`: --per-rank own cannot rename the files of a directory\n  help: \
                 --per-rank split or --per-rank shared uses them as they are\n"
            );
            return Err(Refusal::new(USAGE, message));
        }
    }
    Ok(())
}

fn append(path: &mut String, rank: u32) {
    push!(*path, ".{rank}");
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
        rename(&mut files, "job", 2).unwrap();
        let FileNames::Listed { paths, .. } = files else {
            unreachable!()
        };
        assert_eq!(paths, ["a.2", "/dev/nvme0n1", "/dev/shm/b.2"]);
        let mut below = FileNames::Below {
            directories: vec!["d".into()],
            paths: Vec::new(),
        };
        let refusal = rename(&mut below, "job", 2).unwrap_err();
        assert!(
            refusal.message.contains("--per-rank split"),
            "{}",
            refusal.message
        );
    }
}
