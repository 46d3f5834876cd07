//! The files and devices that a job's names refer to now, and the part of each that a clone uses.
//!
//! In: a job and its names. Out: each path once, with its kind, length and the length it shall
//! have; for each clone the parts it uses. Looks only. Not here: making and opening files.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, SeekFrom};
use rustix::io::Errno;
use weir_run::generate::rng::Rng;
use weir_run::{JobContext, failure};
use weir_schema::{Announcement, BlockWorkload, Failure, FileNames, Kind, VerifyMethod};
use weir_sys::Tree;
use weir_sys::device::{block_facts, generic_namespace};
use weir_sys::mounts::DevId;
use weir_units::Bytes;

use super::{
    Ground, MadeFiles, Misplaced, NamedTarget, RegionRequest, names, part_of, place, roomy,
};
use crate::memory::{room_for_each, smallest_block};
use crate::source::Extent;

/// Kind of file that a path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SiteKind {
    File,
    Block,
    /// A namespace that takes NVMe commands, and neither reads nor writes.
    Namespace,
    Character,
}

/// A path of the job.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) named: NamedTarget,
    /// `None`: nothing is there yet.
    pub(crate) kind: Option<SiteKind>,
    /// Length of a file, size of a block device.
    pub(crate) length: u64,
    /// The length that a file shall have.
    pub(crate) end: u64,
    /// Made by this job.
    pub(crate) is_new: bool,
    /// Made by a job of this run, or empty until then.
    pub(crate) is_ours: bool,
}

impl Site {
    pub(crate) fn is_file(&self) -> bool {
        matches!(self.kind, None | Some(SiteKind::File))
    }

    /// True for what is no file and no disk to the page cache.
    pub(crate) fn has_no_cache(&self) -> bool {
        matches!(self.kind, Some(SiteKind::Namespace | SiteKind::Character))
    }

    /// A failure about this target.
    pub(crate) fn failure(&self, cause: &str, errno: Option<i32>, message: &str) -> Failure {
        let shown = &self.named.shown;
        let message = format!("{shown}: {message}");
        Failure {
            target: Some(shown.clone()),
            ..failure(cause, errno, message)
        }
    }

    /// A failed call about this target.
    pub(crate) fn refused(&self, cause: &str, what: &str, errno: Errno) -> Failure {
        let error = io::Error::from(errno);
        self.failure(
            cause,
            Some(errno.raw_os_error()),
            &format!("cannot {what}: {error}"),
        )
    }
}

/// The part of a site that a clone uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SitePart {
    pub(crate) site: usize,
    pub(crate) extent: Extent,
}

/// Everything about a job's targets before they are touched.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sites {
    /// Each path once.
    pub(crate) list: Vec<Site>,
    /// By clone, in the order of its targets.
    pub(crate) parts: Vec<Vec<SitePart>>,
    /// Remarks for the user, one sentence each.
    pub(crate) remarks: Vec<Announcement>,
    /// Position of a path in the list.
    by_path: HashMap<PathBuf, usize>,
}

/// Looks at one path.
///
/// # Errors
/// A directory, a pipe, or no permission to look.
pub(crate) fn look(named: NamedTarget) -> Result<Site, Failure> {
    let mut site = Site {
        named,
        kind: None,
        length: 0,
        end: 0,
        is_new: false,
        is_ours: false,
    };
    if site.named.shown.is_empty() {
        return Err(failure("plan", Some(libc::EINVAL), "a file has no name"));
    }
    let directory = |site: &Site| {
        let message = "it is a directory: name a file in it, or give it as directory=";
        site.failure("open", Some(libc::EISDIR), message)
    };
    let stat = match rustix::fs::stat(&site.named.path) {
        Ok(stat) => stat,
        Err(Errno::NOENT) if site.named.shown.ends_with('/') => return Err(directory(&site)),
        Err(Errno::NOENT) => return Ok(site),
        Err(errno) => return Err(site.refused("open", "look at it", errno)),
    };
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => SiteKind::File,
        FileType::BlockDevice => SiteKind::Block,
        FileType::CharacterDevice => SiteKind::Character,
        FileType::Directory => return Err(directory(&site)),
        _ => {
            let message = "it is neither a file nor a block or character device";
            return Err(site.failure("open", Some(libc::EINVAL), message));
        }
    };
    site.kind = Some(kind);
    site.length = match kind {
        SiteKind::File => u64::try_from(stat.st_size).unwrap_or(0),
        SiteKind::Block => capacity(&site, stat.st_rdev)?,
        SiteKind::Namespace | SiteKind::Character => {
            let namespace = generic_namespace(&Tree::real(), DevId::from_raw(stat.st_rdev));
            if let Some(size) = namespace.and_then(|facts| facts.size) {
                site.kind = Some(SiteKind::Namespace);
                size.0
            } else {
                0
            }
        }
    };
    Ok(site)
}

/// The size of a block device.
fn capacity(site: &Site, dev: u64) -> Result<u64, Failure> {
    let known = block_facts(&Tree::real(), DevId::from_raw(dev)).and_then(|facts| facts.size);
    if let Some(size) = known {
        return Ok(size.0);
    }
    // Without /sys the device itself has to be asked.
    rustix::fs::open(
        &site.named.path,
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .and_then(|file| rustix::fs::seek(file, SeekFrom::End(0)))
    .map_err(|errno| site.refused("open", "find its size out", errno))
}

/// True if the job changes its targets.
pub(crate) fn writes(workload: &BlockWorkload) -> bool {
    workload.carries_out(Kind::Write) || workload.carries_out(Kind::Trim)
}

/// Stand-ins for the targets of a job whose engine acts on nothing: one block for each clone.
pub(crate) fn no_sites(clones: u32, block: u64) -> Sites {
    let shown = String::from("(none)");
    let site = Site {
        named: NamedTarget {
            path: PathBuf::from(&shown),
            shown,
        },
        kind: None,
        length: 0,
        end: 0,
        is_new: false,
        is_ours: false,
    };
    let part = SitePart {
        site: 0,
        extent: Extent {
            start: 0,
            length: block,
        },
    };
    Sites {
        list: vec![site],
        parts: (0..clones).map(|_| vec![part]).collect(),
        remarks: Vec::new(),
        by_path: HashMap::new(),
    }
}

/// Looks at all targets of a job and places its clones on them.
///
/// # Errors
/// The first target that cannot be used, and why.
pub(crate) fn survey(
    context: &JobContext<'_>,
    workload: &BlockWorkload,
    moves_data: bool,
    made: &MadeFiles,
) -> Result<Sites, Failure> {
    let job = context.job;
    let mut found = Sites::default();
    for clone in 0..job.clones {
        let mut names = names(&workload.targets.files, &job.name, clone, context.directory);
        if workload.targets.files == FileNames::None || (names.is_empty() && !moves_data) {
            let shown = String::from("(none)");
            names = vec![NamedTarget {
                path: PathBuf::from(&shown),
                shown,
            }];
        }
        if names.is_empty() {
            return Err(failure(
                "plan",
                Some(libc::EINVAL),
                "no file or device is named",
            ));
        }
        let count = names.len() as u64;
        let mut parts = Vec::with_capacity(names.len());
        for (number, named) in (0_u64..).zip(names) {
            let index = found.index_of(named, moves_data)?;
            found.list[index].is_ours = made.has(&found.list[index].named.path);
            let request = request(context, workload, (clone.into(), number, count));
            let extent = found.place(index, &request, workload, moves_data)?;
            parts.push(SitePart {
                site: index,
                extent,
            });
        }
        found.parts.push(parts);
    }
    Ok(found)
}

fn request<'a>(
    context: &JobContext<'a>,
    workload: &'a BlockWorkload,
    (clone, number, files): (u64, u64, u64),
) -> RegionRequest<'a> {
    let region = &workload.region;
    let file_size = region.file_size_bytes.map(|(low, high)| {
        let spread = high.0.saturating_sub(low.0);
        // A seed of its own for each file, the same in every run of the plan.
        let key = context.seed ^ (clone << 32 | number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        low.0 + Rng::new(key).below(spread.saturating_add(1))
    });
    let file_size = match &workload.targets.files {
        FileNames::Sized { files } => {
            let own = usize::try_from(number).ok().and_then(|n| files.get(n));
            own.map(|file| file.bytes.0)
        }
        _ => file_size,
    };
    RegionRequest {
        region,
        file_size,
        files,
        clone,
        block: smallest_block(workload),
        until_full: workload.passes.until_full,
        append: workload.targets.append,
        timed: workload.load.bounds.runtime_ns.is_some(),
    }
}

impl Sites {
    fn index_of(&mut self, named: NamedTarget, moves_data: bool) -> Result<usize, Failure> {
        if let Some(&index) = self.by_path.get(&named.path) {
            return Ok(index);
        }
        let index = self.list.len();
        self.by_path.insert(named.path.clone(), index);
        self.list.push(if moves_data {
            look(named)?
        } else {
            Site {
                named,
                kind: None,
                length: 0,
                end: 0,
                is_new: false,
                is_ours: false,
            }
        });
        Ok(index)
    }

    fn place(
        &mut self,
        index: usize,
        request: &RegionRequest<'_>,
        workload: &BlockWorkload,
        moves_data: bool,
    ) -> Result<Extent, Failure> {
        let Some(site) = self.list.get_mut(index) else {
            return Ok(Extent {
                start: 0,
                length: 0,
            });
        };
        let grows = writes(workload) || workload.targets.create.overwrite || site.is_ours;
        let length = site.length;
        let ground = match site.kind {
            _ if !moves_data => Ground::Nothing,
            None | Some(SiteKind::File) => Ground::File { length, grows },
            Some(SiteKind::Block | SiteKind::Namespace) => Ground::Device { size: length },
            Some(SiteKind::Character) => Ground::Endless,
        };
        let misplaced =
            |why: Misplaced| site.failure(why.cause(), Some(libc::EINVAL), &why.to_string());
        let extent = place(request, ground)
            .and_then(|extent| roomy(extent, room_for_each(workload)))
            .map_err(misplaced)?;
        let part = request
            .region
            .part
            .map(|part| part_of(extent, part, request.block));
        let part = part.unwrap_or(Ok(extent)).map_err(misplaced)?;
        let recorded = matches!(workload.targets.files, FileNames::Sized { .. });
        let stays = !grows && length > 0 && matches!(ground, Ground::File { .. });
        // A file that has to be made or made longer gets the size that files shall have.
        let size = request
            .file_size
            .filter(|_| matches!(ground, Ground::File { .. }) && (recorded || !stays));
        let end = (extent.start + extent.length).max(size.unwrap_or(0));
        site.end = site.end.max(end);
        if verifies(workload) && !request.until_full {
            check_length(site, request, ground)?;
        }
        if let Some(asked) = asked_of_each(request, extent.start)
            && stays
            && !recorded
            && extent.length < asked
        {
            let remark = Announcement::ShortFile {
                target: site.named.shown.clone(),
                length: Bytes(length),
                used: Bytes(extent.length),
                asked: Bytes(asked),
            };
            if !self.remarks.contains(&remark) {
                self.remarks.push(remark);
            }
        }
        Ok(part)
    }
}

/// Bytes that a job wants of each of its files from here on, where it says so.
fn asked_of_each(request: &RegionRequest<'_>, start: u64) -> Option<u64> {
    let share = match request.region.size {
        Some(weir_schema::Size::Bytes(size)) => Some(size.0 / request.files),
        _ => None,
    };
    let file = request.file_size.map(|size| size.saturating_sub(start));
    share.into_iter().chain(file).min()
}

/// True if data is compared with what was written.
fn verifies(workload: &BlockWorkload) -> bool {
    let verify = workload.verify.as_ref();
    verify.is_some_and(|v| v.method != VerifyMethod::Null)
}

/// Fails if a file that is verified is too short: data lost at its end must not pass
/// as correct.
fn check_length(site: &Site, request: &RegionRequest<'_>, ground: Ground) -> Result<(), Failure> {
    let Ground::File {
        length,
        grows: false,
    } = ground
    else {
        return Ok(());
    };
    let whole = Ground::File {
        length,
        grows: true,
    };
    match place(request, whole) {
        Ok(wanted) if site.kind.is_some() && wanted.start + wanted.length > length => {
            let end = wanted.start + wanted.length;
            let message = format!(
                "its first {end} bytes are to be verified, but it has only {length}: the data of \
                 the last {} is lost, or was never written",
                end - length
            );
            Err(site.failure("short", Some(libc::EILSEQ), &message))
        }
        _ => Ok(()),
    }
}

/// True if files must not be made at this path unless they were allowed by name: a
/// mistyped device must not become a file in memory. `/dev/shm` holds no devices.
pub(crate) fn is_among_devices(path: &Path) -> bool {
    path.starts_with("/dev") && !path.starts_with("/dev/shm")
}
