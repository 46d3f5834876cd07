//! Standard streams and report files.
//!
//! A reader that goes away (`| head`) ends the printing and nothing else. A report file appears
//! whole or not at all: temporary name, fsync, rename. Not here: rows that are added to a file
//! (`rows`), where a path leads (`destination`).

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use weir_doors::Refusal;
use weir_doors::selftest::{LogLevel, LogSettings};
use weir_sys::closed_stdout;

use crate::destination::Destination;

/// The loss of standard output has been reported, which is done once.
static IS_LOSS_REPORTED: AtomicBool = AtomicBool::new(false);

fn report_loss(why: &str) {
    if !IS_LOSS_REPORTED.swap(true, Ordering::Relaxed) {
        error(why);
    }
}

/// Prints results. Reports a closed or full standard output on standard error; a reader
/// that stops early is no error.
pub(crate) fn print(text: &str) -> bool {
    print_bytes(text.as_bytes())
}

/// Prints bytes that are no text.
pub(crate) fn print_bytes(text: &[u8]) -> bool {
    if text.is_empty() {
        return true;
    }
    if closed_stdout::stdout_was_closed() {
        report_loss("error: standard output is closed, and what was to be printed is lost\n");
        return false;
    }
    let mut out = io::stdout().lock();
    match out.write_all(text).and_then(|()| out.flush()) {
        Ok(()) => true,
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => true,
        Err(e) => {
            report_loss(&format!("error: standard output: {e}\n"));
            false
        }
    }
}

/// Messages held back while the screen is drawn on, printed afterwards.
static HELD_BACK: Mutex<Option<String>> = Mutex::new(None);

fn held_back() -> MutexGuard<'static, Option<String>> {
    HELD_BACK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Holds messages back: from here on only frames go to standard error.
#[cfg(feature = "tui")]
pub(crate) fn hold_errors() {
    held_back().get_or_insert_default();
}

/// Messages held back so far.
#[cfg(feature = "tui")]
pub(crate) fn held_errors() -> String {
    held_back().clone().unwrap_or_default()
}

/// Prints the messages held back, once the screen is no longer drawn on.
#[cfg(feature = "tui")]
pub(crate) fn print_held_errors() {
    let text = held_back().take();
    error(&text.unwrap_or_default());
}

/// Prints everything that is not a result.
pub(crate) fn error(text: &str) {
    if let Some(held) = held_back().as_mut() {
        held.push_str(text);
        return;
    }
    // Nothing is left to report the loss of standard error to.
    let _ = io::stderr().lock().write_all(text.as_bytes());
    if let Some(log) = LOG.get().filter(|log| level_of(text) <= log.level)
        && let Err(why) = (&log.file).write_all(text.as_bytes())
        && !IS_LOG_LOSS_REPORTED.swap(true, Ordering::Relaxed)
    {
        let loss = format!(
            "warning: D_LOG_FILE: {}: {why}; lines of this log are missing\n",
            log.path
        );
        let _ = io::stderr().lock().write_all(loss.as_bytes());
    }
}

/// The loss of the log has been reported, which is done once.
static IS_LOG_LOSS_REPORTED: AtomicBool = AtomicBool::new(false);

/// File that gets the messages of standard error as well.
struct Log {
    path: String,
    file: File,
    level: LogLevel,
}

static LOG: OnceLock<Log> = OnceLock::new();

/// Opens a log: from here on a file gets the messages of standard error, up to its level.
///
/// # Errors
/// It cannot be opened.
pub(crate) fn log_to(settings: &LogSettings) -> Result<(), Refusal> {
    let file = fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(&settings.file)
        .map_err(|e| Refusal::usage(format!("the variable D_LOG_FILE: {}: {e}", settings.file)))?;
    let level = settings.level;
    // A second one is never asked for.
    let path = settings.file.clone();
    let _ = LOG.set(Log { path, file, level });
    Ok(())
}

fn level_of(text: &str) -> LogLevel {
    match text.split_once(':') {
        Some(("note", _)) => LogLevel::Notes,
        Some(("warning", _)) => LogLevel::Warnings,
        _ => LogLevel::Errors,
    }
}

/// A file that is due until it is written. A signal that ends this process meanwhile names it.
#[derive(Debug)]
pub(crate) struct DueFile(());

/// A file that is not whole yet.
#[derive(Debug)]
struct Unfinished {
    path: String,
    /// Temporary file with the part written so far.
    temporary: Option<PathBuf>,
}

static UNFINISHED: Mutex<Option<Unfinished>> = Mutex::new(None);

fn unfinished() -> MutexGuard<'static, Option<Unfinished>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl DueFile {
    pub(crate) fn of(path: &str) -> Self {
        *unfinished() = Some(Unfinished {
            path: path.to_owned(),
            temporary: None,
        });
        Self(())
    }
}

impl Drop for DueFile {
    fn drop(&mut self) {
        *unfinished() = None;
    }
}

/// Reports the file that is lost as this process ends at once, and removes its temporary file.
pub(crate) fn give_up_file() {
    let Some(Unfinished { path, temporary }) = unfinished().take() else {
        return;
    };
    if temporary.is_some_and(|part| fs::remove_file(part).is_err()) {
        // It has its name already.
        return;
    }
    error(&format!(
        "error: {path}: a signal came before it was written, and it is not stored\n  help: wait for the \
         end of the program after the first signal\n"
    ));
}

/// Writes a report file. A link stays, and its target is written.
pub(crate) fn write_file(path: &str, text: impl AsRef<[u8]>) -> Result<(), String> {
    let text = text.as_ref();
    let _due = DueFile::of(path);
    refuse_history(path)?;
    let written = Destination::of(Path::new(path)).and_then(|destination| match destination {
        Destination::Replaced(target) => replace(&target, text),
        Destination::Descriptor(number) => write_descriptor(path, number, text),
        // A device or pipe cannot be replaced, only written to.
        Destination::InPlace => fs::write(path, text),
    });
    written.map_err(|e| format!("error: {path}: {e}\n"))
}

fn replace(target: &Path, text: &[u8]) -> io::Result<()> {
    let temporary = beside(target);
    if let Some(due) = unfinished().as_mut() {
        due.temporary = Some(temporary.clone());
    }
    let written = File::create(&temporary).and_then(|mut file| {
        file.write_all(text)?;
        file.sync_all()?;
        fs::rename(&temporary, target)
    });
    if written.is_err() {
        // The error that matters is the one being reported.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Writes to a standard stream at its position, so that later output follows.
fn write_descriptor(path: &str, number: u32, text: &[u8]) -> io::Result<()> {
    match number {
        1 if closed_stdout::stdout_was_closed() => {
            Err(io::Error::other("standard output is closed"))
        }
        1 => {
            let mut out = io::stdout().lock();
            out.write_all(text).and_then(|()| out.flush())
        }
        2 => io::stderr().lock().write_all(text),
        _ => {
            let mut file = fs::OpenOptions::new().append(true).open(path)?;
            file.write_all(text)
        }
    }
}

/// Reason why a file of other bytes cannot be read.
pub(crate) const NO_TEXT: &str = "it is no text: there are bytes in it that are not UTF-8";

/// Character that some editors put before a text to mark its encoding.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Reads a file of at most this many bytes; why it cannot.
pub(crate) fn read_text(path: &str, longest: u64) -> Result<String, String> {
    let file = File::open(path).map_err(|e| e.to_string())?;
    let mut text = read_text_of(file, longest)?;
    // Some editors begin a file with it; what follows is the text.
    if text.starts_with(BYTE_ORDER_MARK) {
        text.drain(..BYTE_ORDER_MARK.len_utf8());
    }
    Ok(text)
}

/// Reads the text of an open file.
pub(crate) fn read_text_of(file: impl Read, longest: u64) -> Result<String, String> {
    let mut text = String::new();
    file.take(longest + 1)
        .read_to_string(&mut text)
        .map_err(|e| match e.kind() {
            io::ErrorKind::InvalidData => NO_TEXT.to_owned(),
            _ => e.to_string(),
        })?;
    if text.len() as u64 > longest {
        return Err(format!("it is longer than {longest} bytes"));
    }
    Ok(text)
}

/// True if two paths name one file, whether it exists or not.
pub(crate) fn are_same(one: &str, other: &str) -> bool {
    // Where nothing is yet, a name in a folder.
    let planned = |path: &str| match Destination::of(Path::new(path)) {
        Ok(Destination::Replaced(target)) => Some(target),
        _ => None,
    };
    let whole = |path: &str| fs::canonicalize(path).ok().or_else(|| planned(path));
    let one = whole(one);
    one.is_some() && one == whole(other)
}

/// Finds out before the run whether a report file can be written at all.
pub(crate) fn check_writable(path: &str) -> Result<(), String> {
    let target = Path::new(path);
    let refuse = |why: &dyn std::fmt::Display| {
        let path = weir_report::clean(path, false);
        Err(format!("error: {path} cannot be written: {why}\n"))
    };
    if path.is_empty() {
        return refuse(&"it has no name");
    }
    if target.is_dir() || path.ends_with('/') {
        return refuse(&"it is a directory");
    }
    if fs::metadata(target).is_ok_and(|found| found.file_type().is_block_device()) {
        return refuse(&"it is a block device");
    }
    refuse_history(path)?;
    let target = match Destination::of(target) {
        Ok(Destination::Replaced(target)) => target,
        Ok(_) => return Ok(()),
        Err(e) => return refuse(&e),
    };
    let temporary = beside(&target);
    match File::create(&temporary) {
        Ok(_) => fs::remove_file(&temporary).or_else(|e| refuse(&e)),
        Err(e) => refuse(&e),
    }
}

/// Refuses to replace a history by a report: many runs would be lost.
fn refuse_history(path: &str) -> Result<(), String> {
    if !is_plain(Path::new(path)) || !weir_history::is_database(Path::new(path)) {
        return Ok(());
    }
    Err(format!(
        "error: {path}: it is a database, as histories of runs are, and not replaced\n  help: name another file\n"
    ))
}

/// Temporary file in the same directory. Its name is short where that of the target has the greatest length.
fn beside(target: &Path) -> PathBuf {
    target.with_file_name(format!(".weir-{}.tmp", std::process::id()))
}

/// A regular file, or nothing yet.
pub(crate) fn is_plain(path: &Path) -> bool {
    fs::metadata(path).map_or(true, |m| m.is_file())
}
