//! Opening: each worker gets descriptors of its own, no more than its job needs.
//!
//! In: a worker's parts and how the job opens. Out: open targets; caches dropped or warmed. Not
//! here: layout.

use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::sync::Arc;

use rustix::fd::OwnedFd;
use rustix::fs::{Advice, Mode, OFlags, fadvise};
use rustix::io::Errno;
use weir_schema::{Advice as PlannedAdvice, BlockWorkload, Failure, Kind, Lifetime};

use super::cache::drop_cache;
use super::sites::writes;
use super::{FileLayout, Site, SiteKind, SitePart};
use crate::engine::{OpenTarget, Opens, set_lifetime};
use crate::source::Extent;

/// `O_DSYNC` as the kernel has it; the constant of rustix is `O_SYNC`.
const DATA_SYNC: OFlags = OFlags::from_bits_retain(libc::O_DSYNC.cast_unsigned());
/// Bytes read at once to warm a cache.
const CHUNK: usize = 1 << 20;

/// Opens the targets of one clone.
///
/// # Errors
/// The first target that is refused, and why.
pub(crate) fn open_all(
    sites: &[Site],
    layouts: &[FileLayout],
    parts: &[SitePart],
    workload: &BlockWorkload,
    opens: Opens,
) -> Result<Vec<OpenTarget>, Failure> {
    let open = |part: &SitePart| {
        let site = &sites[part.site];
        let creates = layouts[part.site] == FileLayout::OnOpen;
        Ok(OpenTarget {
            file: Arc::new(open(site, workload, opens, creates)?),
            is_block: site.kind == Some(SiteKind::Block),
            is_writable: writes(workload) || opens == Opens::WritingToo,
            extent: part.extent,
        })
    };
    parts.iter().map(open).collect()
}

fn flags(workload: &BlockWorkload, opens: Opens) -> OFlags {
    let mode = workload.targets.open;
    let reads = workload.carries_out(Kind::Read) || opens == Opens::ReadingToo;
    let writes = writes(workload) || opens == Opens::WritingToo;
    let mut flags = match (reads, writes) {
        (_, false) => OFlags::RDONLY,
        (false, true) => OFlags::WRONLY,
        (true, true) => OFlags::RDWR,
    };
    flags.set(OFlags::DIRECT, mode.direct);
    // O_SYNC holds the bit of O_DSYNC: what is not asked for must not be taken off again.
    if mode.data_sync {
        flags |= DATA_SYNC;
    }
    if mode.sync {
        flags |= OFlags::SYNC;
    }
    flags | OFlags::CLOEXEC
}

fn open(
    site: &Site,
    workload: &BlockWorkload,
    opens: Opens,
    creates: bool,
) -> Result<OwnedFd, Failure> {
    let mut flags = flags(workload, opens);
    flags.set(OFlags::CREATE, creates);
    if site.kind == Some(SiteKind::Namespace) {
        // Commands are direct, and the file of a character device does not know the word.
        flags -= OFlags::DIRECT;
    }
    let path = &site.named.path;
    let mode = Mode::from_raw_mode(0o644);
    rustix::fs::open(path, flags, mode).map_err(|errno| {
        let plain = flags.difference(OFlags::DIRECT);
        if flags.contains(OFlags::DIRECT)
            && errno == Errno::INVAL
            && rustix::fs::open(path, plain, mode).is_ok()
        {
            let message = "the file system does not take direct I/O";
            return site.failure("direct_io", Some(errno.raw_os_error()), message);
        }
        refused(site, flags, errno)
    })
}

fn refused(site: &Site, flags: OFlags, errno: Errno) -> Failure {
    let raw = Some(errno.raw_os_error());
    let access = match flags & OFlags::RWMODE {
        OFlags::WRONLY => "writes",
        OFlags::RDWR => "reads and writes",
        _ => "reads",
    };
    let is_device = !site.is_file();
    match errno {
        Errno::INVAL | Errno::BADF | Errno::IO | Errno::NXIO | Errno::OPNOTSUPP if is_device => {
            let error = std::io::Error::from(errno);
            let shown = &site.named.shown;
            let refusal = site.failure("open", raw, "");
            Failure {
                message: format!(
                    "device {shown} does not accept {access} (wrong direction?): {error}"
                ),
                ..refusal
            }
        }
        Errno::ACCESS | Errno::PERM => {
            let message = format!(
                "no permission for {access}: change its mode or owner, or run as a user who may"
            );
            site.failure("open", raw, &message)
        }
        Errno::ROFS => site.failure(
            "open",
            raw,
            "it lies on a file system that is mounted for reading only",
        ),
        Errno::MFILE => site.failure(
            "open",
            raw,
            "too many open files: raise the limit, `ulimit -n`",
        ),
        _ => site.refused("open", &format!("open it for {access}"), errno),
    }
}

/// Drops or fills the page cache of a clone's parts, and tells the kernel what will come.
///
/// # Errors
/// A read failed.
pub(crate) fn warm(
    sites: &[Site],
    parts: &[SitePart],
    targets: &[OpenTarget],
    workload: &BlockWorkload,
) -> Result<(), Failure> {
    let mode = workload.targets.open;
    for (part, target) in parts.iter().zip(targets) {
        let site = &sites[part.site];
        if site.has_no_cache() {
            continue;
        }
        if mode.read_first {
            read_through(site, part.extent)?;
        } else if mode.drop_cache {
            drop_cache(target);
        }
        advise(target, workload);
        if let Some(lifetime) = mode.lifetime {
            give_lifetime(site, target, lifetime)?;
        }
    }
    Ok(())
}

/// Advice is best effort.
fn advise(target: &OpenTarget, workload: &BlockWorkload) {
    let advice = match workload.targets.open.advice {
        PlannedAdvice::None => return,
        PlannedAdvice::Pattern if workload.access.random => Advice::Random,
        PlannedAdvice::Random => Advice::Random,
        PlannedAdvice::Pattern | PlannedAdvice::Sequential => Advice::Sequential,
    };
    let length = NonZeroU64::new(target.extent.length);
    let _ = fadvise(&target.file, target.extent.start, length, advice);
}

fn give_lifetime(site: &Site, target: &OpenTarget, lifetime: Lifetime) -> Result<(), Failure> {
    match set_lifetime(target.file.as_fd(), lifetime) {
        // Kernels and file systems without hints.
        Ok(()) | Err(Errno::INVAL) => Ok(()),
        Err(errno) => Err(site.refused("open", "set the lifetime of its data", errno)),
    }
}

fn read_through(site: &Site, extent: Extent) -> Result<(), Failure> {
    let fail = |errno| site.refused("open", "read it through", errno);
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open(&site.named.path, flags, Mode::empty()).map_err(fail)?;
    let mut chunk = vec![0; CHUNK];
    let (mut at, end) = (extent.start, extent.start + extent.length);
    while at < end {
        let room = usize::try_from(end - at).unwrap_or(CHUNK).min(CHUNK);
        match rustix::io::pread(&file, &mut chunk[..room], at) {
            Ok(0) => break,
            Ok(read) => at += read as u64,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(fail(errno)),
        }
    }
    Ok(())
}
