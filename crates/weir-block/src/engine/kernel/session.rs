//! Sessions of the kernel module: which jobs run together, and that each session starts once.
//!
//! In: jobs that are made ready, one after the other, by their workers' threads. Out: a session that
//! they share, as the module lets the jobs of one session alone write to one device and starts them at
//! one instant. Jobs that come once a session runs begin another. Not here: what a job does.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rustix::io::Errno;
use weir_schema::Failure;

use super::abi::{self, AddDev, AddJob, DEV_EXCL, DEV_WRITE, Message, PATH, Start, Stats, Stop};
use super::{NODE, refused};

/// The sessions of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct KernelSessions(Arc<Mutex<Vec<Weak<Session>>>>);

/// An open session.
#[derive(Debug)]
pub(super) struct Session {
    file: OwnedFd,
    timing: SessionTiming,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    devices: HashMap<(PathBuf, bool), u32>,
    /// Result of the start; `None` before it.
    started: Option<Result<(), Failure>>,
}

/// Settings that all jobs of a session share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SessionTiming {
    pub(super) runtime_ns: u64,
    pub(super) ramp_ns: u64,
    /// Failed operations of all jobs together that end it; 0: none do.
    pub(super) error_limit: u32,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl KernelSessions {
    /// Adds a job on a device to the session that others of this timing wait in, or to a new one; the
    /// session, and the job's number in it.
    pub(super) fn join(
        &self,
        timing: SessionTiming,
        device: &Path,
        writes: bool,
        job: &mut AddJob,
    ) -> Result<Arc<Session>, Failure> {
        let mut sessions = lock(&self.0);
        sessions.retain(|session| session.strong_count() > 0);
        let waiting = |session: Arc<Session>| {
            let waits = session.timing == timing && lock(&session.state).started.is_none();
            waits.then_some(session)
        };
        let found = sessions.iter().filter_map(Weak::upgrade).find_map(waiting);
        let session = if let Some(session) = found {
            session
        } else {
            let session = Arc::new(Session::open(timing)?);
            sessions.push(Arc::downgrade(&session));
            session
        };
        session.add(device, writes, job)?;
        Ok(session)
    }
}

impl Session {
    fn open(timing: SessionTiming) -> Result<Self, Failure> {
        let opened = File::options().read(true).write(true).open(NODE);
        let file = opened.map_err(|e| {
            let errno = Errno::from_io_error(&e).unwrap_or(Errno::IO);
            let help = match errno {
                Errno::ACCESS | Errno::PERM => " (be root, or of the group that may open it)",
                Errno::MFILE => {
                    " (too many sessions: end one, or load the module with max_sessions=N)"
                }
                _ => "",
            };
            refused(NODE, errno, &format!("cannot be opened: {e}{help}"))
        })?;
        Ok(Self {
            file: file.into(),
            timing,
            state: Mutex::default(),
        })
    }

    fn add(&self, device: &Path, writes: bool, job: &mut AddJob) -> Result<(), Failure> {
        let mut state = lock(&self.state);
        let key = (device.to_owned(), writes);
        job.device = if let Some(index) = state.devices.get(&key) {
            *index
        } else {
            let index = self.add_device(device, writes)?;
            state.devices.insert(key, index);
            index
        };
        let shown = device.display().to_string();
        job.call(&self.file)
            .map_err(|errno| refused(&shown, errno, &text(&job.message)))
    }

    fn add_device(&self, device: &Path, writes: bool) -> Result<u32, Failure> {
        let shown = device.display().to_string();
        let bytes = device.as_os_str().as_encoded_bytes();
        let mut added: AddDev = abi::message();
        if bytes.len() >= PATH {
            return Err(refused(&shown, Errno::NAMETOOLONG, "its path is too long"));
        }
        added.path[..bytes.len()].copy_from_slice(bytes);
        added.flags = if writes { DEV_WRITE | DEV_EXCL } else { 0 };
        added
            .call(&self.file)
            .map_err(|errno| refused(&shown, errno, &text(&added.message)))?;
        Ok(added.index)
    }

    /// Starts all jobs, once: whoever comes first does.
    pub(super) fn start(&self) -> Result<(), Failure> {
        let mut state = lock(&self.state);
        let start = || {
            let mut start: Start = abi::message();
            start.runtime_ns = self.timing.runtime_ns;
            start.ramp_ns = self.timing.ramp_ns;
            start.error_limit = self.timing.error_limit;
            start
                .call(&self.file)
                .map_err(|errno| refused(NODE, errno, &text(&start.message)))
        };
        state.started.get_or_insert_with(start).clone()
    }

    /// Ends the run of all jobs; they are drained when it comes back.
    pub(super) fn stop(&self) {
        let mut stop: Stop = abi::message();
        // What did not end is seen in the job's state.
        let _ = stop.call(&self.file);
    }

    /// Statistics of a job so far.
    pub(super) fn stats(&self, job: u32) -> Result<Stats, Errno> {
        let mut stats: Stats = abi::message();
        stats.job = job;
        stats.call(&self.file)?;
        Ok(stats)
    }

    pub(super) fn file(&self) -> &OwnedFd {
        &self.file
    }
}

/// The text of a message, up to its first zero byte.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0);
    let bytes = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}
