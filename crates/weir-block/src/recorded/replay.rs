//! Jobs that carry a recorded pattern out: the pattern says what the plan leaves open.
//!
//! In: a job whose plan names a pattern. Out: the pattern, and the job with its files, kinds and
//! sizes. Not here: the pattern's text.

use std::sync::Arc;

use weir_run::{JobContext, failure};
use weir_schema::{
    BlockSize, BlockSizes, BlockWorkload, Failure, FileNames, Job, Kind, Mix, PerKind, Region,
    Replay, SizedFile, Workload,
};
use weir_units::Bytes;

use super::{PatternReader, RecordedPattern, Unreadable, read, survey};

/// A job and the pattern that it carries out.
pub(crate) struct ReplayedJob {
    pub(crate) job: Job,
    pub(crate) pattern: Arc<RecordedPattern>,
}

/// Reads the pattern of a job, if it has one.
///
/// # Errors
/// The pattern cannot be read, or the job asks for what it cannot give.
pub(crate) fn replayed_job(context: &JobContext<'_>) -> Result<Option<ReplayedJob>, Failure> {
    let Workload::Block(workload) = &context.job.workload else {
        return Ok(None);
    };
    let Some(replay) = &workload.access.replay else {
        return Ok(None);
    };
    if workload.verify.is_some() {
        let message = "the operations of a recorded pattern are not verified";
        return Err(failure("plan", Some(libc::EINVAL), message));
    }
    let pattern = load(context, replay)?;
    let workload = described(workload, &pattern);
    if workload.targets.open.read_only && workload.mix != Mix::only(Kind::Read) {
        let message = format!(
            "{} writes or discards, and nothing may be written",
            replay.path
        );
        return Err(failure("plan", Some(libc::EROFS), message));
    }
    let job = Job {
        workload: Workload::Block(Box::new(workload)),
        ..context.job.clone()
    };
    let pattern = Arc::new(pattern);
    Ok(Some(ReplayedJob { job, pattern }))
}

fn load(context: &JobContext<'_>, replay: &Replay) -> Result<RecordedPattern, Failure> {
    let fail = |errno, what: String| {
        let message = format!("the pattern {}: {what}", replay.path);
        failure("pattern", errno, message)
    };
    let path = context.directory.join(&replay.path);
    let unread = |error: std::io::Error| fail(error.raw_os_error(), error.to_string());
    let pattern = if replay.in_pieces {
        if !std::fs::metadata(&path).map_err(unread)?.is_file() {
            let what = "only a file can be read in pieces: it is gone through twice";
            return Err(fail(Some(libc::EINVAL), what.to_owned()));
        }
        survey(&path, replay)
    } else {
        read(&std::fs::read(path).map_err(unread)?, replay)
    };
    pattern.map_err(|error| fail(Some(libc::EINVAL), error.to_string()))
}

/// A worker's place in a pattern: its beginning.
///
/// # Errors
/// The pattern cannot be read any more.
pub(crate) fn tape(
    pattern: Option<&Arc<RecordedPattern>>,
) -> Result<Option<PatternReader>, Failure> {
    let tape = pattern.map(PatternReader::new).transpose();
    tape.map_err(|error| unreadable(&error))
}

/// Fails if the pattern changed while it was carried out.
///
/// # Errors
/// The error of the read.
pub(crate) fn check_unchanged(pattern: Option<&RecordedPattern>) -> Result<(), Failure> {
    let trouble = pattern.and_then(RecordedPattern::trouble);
    trouble.map_or(Ok(()), |trouble| Err(unreadable(trouble)))
}

fn unreadable(trouble: &Unreadable) -> Failure {
    let message = format!("the recorded pattern: {trouble}");
    failure("pattern", Some(libc::EINVAL), message)
}

/// The workload as the pattern describes it.
fn described(workload: &BlockWorkload, pattern: &RecordedPattern) -> BlockWorkload {
    let sized = pattern.files.iter().zip(pattern.ends());
    let files = sized.map(|(path, end)| SizedFile {
        path: path.clone(),
        // A file of which nothing is used has a region all the same.
        bytes: Bytes((*end).max(1)),
    });
    let mut targets = workload.targets.clone();
    targets.files = FileNames::Sized {
        files: files.collect(),
    };
    targets.append = false;
    let size = BlockSize::Range {
        min_bytes: Bytes(1),
        max_bytes: Bytes(u64::from(pattern.longest()).max(1)),
        unaligned: true,
    };
    BlockWorkload {
        mix: mix(pattern),
        sizes: BlockSizes {
            size: PerKind::all(size),
            by_pattern: false,
        },
        targets,
        region: Region::default(),
        ..workload.clone()
    }
}

/// Mix of the kinds that occur; the shares mean nothing.
fn mix(pattern: &RecordedPattern) -> Mix {
    let occurs = |kind: &Kind| pattern.has(*kind);
    let kinds: Vec<Kind> = Kind::DATA.into_iter().filter(occurs).collect();
    let share = |kind: Kind| match (kinds.iter().position(|k| *k == kind), kinds.len()) {
        (None, _) => 0,
        (Some(_), 1) => 100,
        (Some(0), 3) => 34,
        (Some(_), 3) => 33,
        (Some(_), _) => 50,
    };
    let read_percent = if kinds.is_empty() {
        100
    } else {
        share(Kind::Read)
    };
    Mix {
        read_percent,
        write_percent: share(Kind::Write),
        trim_percent: share(Kind::Trim),
        trim_then_write: false,
    }
}
