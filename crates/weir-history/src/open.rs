//! Opening of the database: made where it is missing, brought to this version where it is older,
//! only read where it is newer or cannot be written.
//!
//! In: a path. Out: a [`History`]. Not here: what is done with it.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::error::HistoryError;
use crate::tables::{self, APPLICATION_ID, STEPS};

/// Longest wait of one process for the others.
const PATIENCE: Duration = Duration::from_secs(10);
/// Interval between tries of an action that has no time-out of its own.
const AGAIN: Duration = Duration::from_millis(10);
/// The log is moved into the file at so many pages: whoever opens the file reads the log first, and
/// a run is to end soon.
const LONGEST_LOG: u32 = 128;
/// Pages of 4 KiB.
const LONGEST_LOG_BYTES: u64 = LONGEST_LOG as u64 * 4096;

/// File systems of networks, by the numbers of statfs(2): processes on other machines do not see
/// the memory that a write-ahead log is shared in. NFS, SMB and its successors, Lustre, GPFS, FUSE,
/// 9P, Ceph, AFS.
const NETWORK_FILE_SYSTEMS: [u32; 10] = [
    0x6969,
    0x517b,
    0xff53_4d42,
    0xfe53_4d42,
    0x0bd0_0bd0,
    0x4750_4653,
    0x6573_5546,
    0x0102_1997,
    0x00c3_6400,
    0x5346_414f,
];

/// A history that is open.
#[derive(Debug)]
pub struct History {
    pub(crate) connection: Connection,
    pub(crate) path: PathBuf,
    /// Reason that it is only read.
    read_only: Option<ReadOnly>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReadOnly {
    Newer(u32),
    System,
}

impl History {
    /// Opens it to be written; makes it where it is not.
    ///
    /// # Errors
    /// A file that cannot be opened or made, some other file. What it finds to be only readable says
    /// so when it is written.
    pub fn open(path: &Path) -> Result<Self, HistoryError> {
        make(path).map_err(|source| HistoryError::File {
            path: path.to_owned(),
            source,
        })?;
        Self::open_with(path, STEPS)
    }

    /// Opens what is there; nothing where there is none.
    ///
    /// # Errors
    /// A file that cannot be opened, some other file.
    pub fn open_existing(path: &Path) -> Result<Option<Self>, HistoryError> {
        match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(HistoryError::File {
                path: path.to_owned(),
                source,
            }),
            Ok(_) => Self::open_with(path, STEPS).map(Some),
        }
    }

    /// Ends without moving what was written from the log into the file, which costs more than the
    /// writing, unless the log is long: each process reads it anew, and it begins again only after an
    /// end that moves all of it.
    pub fn leave_log(&self) {
        let mut log = self.path.clone().into_os_string();
        log.push("-wal");
        let is_long = fs::metadata(log).is_ok_and(|log| log.len() > LONGEST_LOG_BYTES);
        // Without it the end takes longer, and nothing else.
        let _ = self
            .connection
            .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, !is_long);
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// # Errors
    /// It is only read.
    pub(crate) fn check_writable(&self) -> Result<(), HistoryError> {
        match self.read_only {
            None => Ok(()),
            Some(ReadOnly::System) => Err(HistoryError::ReadOnly(self.path.clone())),
            Some(ReadOnly::Newer(found)) => Err(HistoryError::Newer {
                path: self.path.clone(),
                found,
                known: newest(STEPS),
            }),
        }
    }

    /// Error of the database, with its file.
    pub(crate) fn said(&self, source: rusqlite::Error) -> HistoryError {
        said(&self.path, source)
    }

    pub(crate) fn open_with(path: &Path, steps: &[&str]) -> Result<Self, HistoryError> {
        let begin = Instant::now();
        loop {
            match Self::try_open(path, steps) {
                // The first change to a write-ahead log does not wait by itself.
                Err(HistoryError::Database { source, .. })
                    if is_busy(&source) && begin.elapsed() < PATIENCE =>
                {
                    thread::sleep(AGAIN);
                }
                opened => return opened,
            }
        }
    }

    fn try_open(path: &Path, steps: &[&str]) -> Result<Self, HistoryError> {
        let said = |source| said(path, source);
        let (mut connection, is_immutable) = connect(path)?;
        if !is_ours_or_empty(&mut connection).map_err(said)? {
            return Err(HistoryError::NoHistory(path.to_owned()));
        }
        let found = tables::version(&connection).map_err(said)?;
        let is_read_only = is_immutable || connection.is_readonly("main").map_err(said)?;
        let read_only = match found {
            newer if newer > newest(steps) => Some(ReadOnly::Newer(newer)),
            _ => is_read_only.then_some(ReadOnly::System),
        };
        if read_only.is_none() {
            prepare(&mut connection, path, steps).map_err(said)?;
        } else if found < newest(steps) {
            return Err(HistoryError::ReadOnly(path.to_owned()));
        }
        Ok(Self {
            connection,
            path: path.to_owned(),
            read_only,
        })
    }
}

/// True if the file is a database, as a history is, by its first bytes. Whose it is may still stand
/// in its log alone.
pub fn is_database(path: &Path) -> bool {
    const BEGIN: &[u8] = b"SQLite format 3\0";
    let mut head = [0; BEGIN.len()];
    let read = fs::File::open(path).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && head == *BEGIN
}

/// True if the tables are those of a history, or there are none yet.
fn is_ours_or_empty(connection: &mut Connection) -> rusqlite::Result<bool> {
    // One look at both: between two of them another process may make the tables.
    let look = connection.transaction()?;
    let id: i32 = look.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let tables: i64 = look.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(id == APPLICATION_ID || (id == 0 && tables == 0))
}

fn newest(steps: &[&str]) -> u32 {
    u32::try_from(steps.len()).unwrap_or(u32::MAX)
}

/// Error of the database, with its file.
pub(crate) fn said(path: &Path, source: rusqlite::Error) -> HistoryError {
    if source.sqlite_error_code() == Some(ErrorCode::NotADatabase) {
        return HistoryError::NoHistory(path.to_owned());
    }
    HistoryError::Database {
        path: path.to_owned(),
        source,
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(
        code,
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}

/// Nobody else reads it: it says what was measured on which machine, with which words.
fn make(path: &Path) -> io::Result<()> {
    if let Some(directory) = path.parent().filter(|d| !d.as_os_str().is_empty()) {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)?;
    }
    let mut create = OpenOptions::new();
    create.write(true).create_new(true).mode(0o600);
    match create.open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// A connection that can be read, and whether the file is taken to be one that nobody changes: in a
/// directory that cannot be written there is no room for what readers and writers share.
fn connect(path: &Path) -> Result<(Connection, bool), HistoryError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connect = |connection: Connection| {
        connection.busy_timeout(PATIENCE)?;
        tables::version(&connection)?;
        Ok(connection)
    };
    let error = match Connection::open_with_flags(path, flags).and_then(connect) {
        Ok(connection) => return Ok((connection, false)),
        Err(error) => error,
    };
    let code = error.sqlite_error_code();
    let is_closed = matches!(code, Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly));
    let Some(name) = unchanging(path).filter(|_| is_closed) else {
        return Err(said(path, error));
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    let opened = Connection::open_with_flags(name, flags).and_then(connect);
    // The first error says what is wrong with the file as it is.
    let connection = opened.map_err(|_| said(path, error))?;
    Ok((connection, true))
}

/// `file:/path?immutable=1`.
fn unchanging(path: &Path) -> Option<String> {
    let path = fs::canonicalize(path).ok()?;
    let name = path.to_str()?.replace('%', "%25");
    let name = name.replace('?', "%3f").replace('#', "%23");
    Some(format!("file:{name}?immutable=1"))
}

fn prepare(connection: &mut Connection, path: &Path, steps: &[&str]) -> rusqlite::Result<()> {
    // Before there is a first page: later it has no effect but a write of its own.
    if tables::version(connection)? == 0 {
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    }
    let wanted = if is_on_network(path) { "delete" } else { "wal" };
    let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    if mode != wanted {
        connection.pragma_update(None, "journal_mode", wanted)?;
    }
    // With a write-ahead log NORMAL loses the last runs at a power failure and nothing else, also not
    // at the end of a process. FULL waits for the disk twice in each run.
    let synchronous = if wanted == "wal" { "NORMAL" } else { "FULL" };
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "wal_autocheckpoint", LONGEST_LOG)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    tables::migrate(connection, path, steps)
}

fn is_on_network(path: &Path) -> bool {
    rustix::fs::statfs(path).is_ok_and(|found| {
        // The kernel's type differs between machines; the number has 32 bits.
        let magic = u32::try_from(i128::from(found.f_type) & 0xffff_ffff).unwrap_or(0);
        NETWORK_FILE_SYSTEMS.contains(&magic)
    })
}
