//! Layout: missing and short files come to be before the run.
//!
//! In: the sites of a job with the lengths they shall have. Out: files of that length, filled
//! with random bytes where anything will be read, so that no device answers from never-written
//! blocks. A file that could not be finished is removed again if this job made it.

use std::os::fd::AsFd;
use std::path::Path;

use rustix::fd::OwnedFd;
use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate, ftruncate};
use rustix::io::Errno;
use weir_run::execute::Signals;
use weir_run::generate::rng::Rng;
use weir_schema::{BlockWorkload, CreatePolicy, Failure, Kind, Preallocate};

use super::Site;
use super::sites::{is_among_devices, writes};

/// Bytes written at once.
const CHUNK: usize = 1 << 20;
/// Mode of new files, before the umask.
const NEW_FILE: u32 = 0o644;

/// Action that prepares a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileLayout {
    /// Nothing.
    Keep,
    /// Written from here to the end.
    Fill { from: u64 },
    /// Made and reserved, for a job that only writes.
    Reserve,
    /// Comes to be when it is opened.
    OnOpen,
}

impl FileLayout {
    /// Action that a job needs at a site.
    ///
    /// # Errors
    /// A file would have to be made, and must not be.
    pub(crate) fn of(
        site: &Site,
        workload: &BlockWorkload,
        until_full: bool,
    ) -> Result<Self, Failure> {
        if !site.is_file() {
            return Ok(Self::Keep);
        }
        let create = &workload.targets.create;
        let mix = &workload.mix;
        if site.length == 0 {
            may_create(site, workload)?;
        }
        // What will be read or discarded has to be there.
        let needs_data = mix.has(Kind::Read) || mix.has(Kind::Trim);
        // A recorded pattern is carried out on what is there.
        let is_kept = workload.access.replay.is_some() && site.kind.is_some();
        Ok(if is_kept {
            Self::Keep
        } else if create.on_open && site.length == 0 {
            Self::OnOpen
        } else if until_full {
            if site.length == 0 {
                Self::OnOpen
            } else {
                Self::Keep
            }
        } else if create.overwrite {
            Self::Fill { from: 0 }
        } else if site.length >= site.end {
            Self::Keep
        } else if needs_data {
            Self::Fill { from: site.length }
        } else {
            Self::Reserve
        })
    }

    /// Action for a site whose file was removed.
    pub(crate) fn anew(site: &Site) -> Self {
        if site.is_file() {
            Self::OnOpen
        } else {
            Self::Keep
        }
    }

    /// True if the action is announced to the user.
    pub(crate) fn is_announced(self) -> bool {
        matches!(self, Self::Fill { .. } | Self::Reserve)
    }
}

/// Fails if a file that is missing or empty may not be made.
///
/// # Errors
/// Why not.
pub(crate) fn may_create(site: &Site, workload: &BlockWorkload) -> Result<(), Failure> {
    let targets = &workload.targets;
    let refuse = |message: &str| Err(site.failure("create", Some(libc::EPERM), message));
    if targets.create.allow == Some(false) {
        return refuse("the file is missing or empty, and making files is not allowed");
    }
    if targets.open.read_only {
        return refuse("the file is missing or empty, and nothing may be written");
    }
    if targets.create.allow.is_none() && is_among_devices(&site.named.path) {
        return refuse(
            "there is no such device (a file is made below /dev only where the plan says so)",
        );
    }
    Ok(())
}

/// Makes a site what the job needs.
///
/// # Errors
/// The file system's error; a file that this call made is gone again.
pub(crate) fn lay_out(
    site: &mut Site,
    layout: FileLayout,
    workload: &BlockWorkload,
    seed: u64,
    signals: &Signals,
) -> Result<(), Failure> {
    if !layout.is_announced() {
        return Ok(());
    }
    let create = &workload.targets.create;
    let (file, is_new) = open(site)?;
    if let Err(failure) = has_room(&file, site, layout) {
        return Err(if is_new {
            remove(site, failure)
        } else {
            failure
        });
    }
    let made = match layout {
        FileLayout::Fill { from } => fill(&file, from, site.end, seed, signals),
        _ => reserve(&file, create.preallocate, site.length, site.end, signals),
    };
    let made = made.and_then(|()| {
        if create.sync {
            rustix::fs::fsync(&file)
        } else {
            Ok(())
        }
    });
    if let Err(errno) = made {
        let failure = site.refused("layout", &format!("lay out {} bytes", site.end), errno);
        return Err(if is_new {
            remove(site, failure)
        } else {
            failure
        });
    }
    site.is_new |= is_new;
    site.is_ours |= is_new || site.length == 0;
    site.kind = Some(super::SiteKind::File);
    let kept_size = layout == FileLayout::Reserve && !sets_length(workload.targets.create);
    if !kept_size {
        site.length = site.length.max(site.end);
    }
    Ok(())
}

fn sets_length(create: CreatePolicy) -> bool {
    !matches!(
        create.preallocate,
        Preallocate::None | Preallocate::KeepSize
    )
}

fn open(site: &Site) -> Result<(OwnedFd, bool), Failure> {
    let path: &Path = &site.named.path;
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let fresh = flags | OFlags::CREATE | OFlags::EXCL;
    match rustix::fs::open(path, fresh, Mode::from_raw_mode(NEW_FILE)) {
        Ok(file) => Ok((file, true)),
        Err(Errno::EXIST) => rustix::fs::open(path, flags, Mode::empty())
            .map(|file| (file, false))
            .map_err(|errno| site.refused("open", "open it for writing", errno)),
        Err(errno) => Err(site.refused("open", "create it", errno)),
    }
}

fn remove(site: &Site, failure: Failure) -> Failure {
    match rustix::fs::unlink(&site.named.path) {
        Ok(()) => {
            let message = format!("{} (the unfinished file was removed)", failure.message);
            Failure { message, ..failure }
        }
        Err(_) => failure,
    }
}

/// Writes random bytes: zeros would be compressed or not stored at all.
fn fill(file: &OwnedFd, from: u64, end: u64, seed: u64, signals: &Signals) -> Result<(), Errno> {
    let mut rng = Rng::new(seed ^ end);
    let mut chunk = vec![0; CHUNK];
    let mut at = from;
    while at < end {
        if signals.interrupted() {
            return Err(Errno::INTR);
        }
        for word in chunk.chunks_exact_mut(8) {
            word.copy_from_slice(&rng.next_u64().to_le_bytes());
        }
        let left = usize::try_from(end - at).unwrap_or(CHUNK).min(CHUNK);
        let mut part = &chunk[..left];
        while !part.is_empty() {
            let written = match rustix::io::pwrite(file, part, at) {
                Ok(0) => return Err(Errno::NOSPC),
                Ok(written) => written,
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(errno),
            };
            part = &part[written..];
            at += written as u64;
        }
    }
    Ok(())
}

fn reserve(
    file: &OwnedFd,
    how: Preallocate,
    from: u64,
    end: u64,
    signals: &Signals,
) -> Result<(), Errno> {
    let length = end.saturating_sub(from);
    let allocate = |flags| fallocate(file, flags, from, length);
    match how {
        Preallocate::None => Ok(()),
        Preallocate::Truncate => ftruncate(file, end),
        Preallocate::KeepSize => unless_unknown(allocate(FallocateFlags::KEEP_SIZE)),
        Preallocate::Native => unless_unknown(allocate(FallocateFlags::empty())),
        Preallocate::Posix => match allocate(FallocateFlags::empty()) {
            // As posix_fallocate(3): by writing, where the file system cannot reserve.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => fill(file, from, end, 0, signals),
            other => other,
        },
    }
}

fn unless_unknown(result: Result<(), Errno>) -> Result<(), Errno> {
    match result {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        other => other,
    }
}

/// Refuses a layout for which the file system has no room, before it is filled to the brim.
fn has_room(file: &impl AsFd, site: &Site, layout: FileLayout) -> Result<(), Failure> {
    let FileLayout::Fill { from } = layout else {
        return Ok(());
    };
    let Ok(space) = rustix::fs::fstatvfs(file) else {
        return Ok(());
    };
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    let held = rustix::fs::fstat(file).map_or(0, |s| u64::try_from(s.st_blocks).unwrap_or(0) * 512);
    let needed = site.end.saturating_sub(from);
    // What the file already holds is written over, not added.
    if needed > free.saturating_add(held) {
        let message = format!("laying the file out takes {needed} bytes, but only {free} are free");
        return Err(site.failure("layout", Some(libc::ENOSPC), &message));
    }
    Ok(())
}

/// True if the job makes or changes anything at its targets before the run.
pub(crate) fn needs_write_access(workload: &BlockWorkload) -> bool {
    writes(workload) || workload.targets.create.overwrite
}
