//! Files of rows that several runs add to, one after the other or at the same time.
//!
//! In: a path and rows with their head. Out: the file with the rows behind those that are there, all of them
//! or none, the head once. Runs of weir that add at the same time wait for each other (`flock`); others see
//! one write at the end of the file. Not here: what rows are made of, and which flags refuse a file.

use std::fs::{self, File};
use std::io::{self, BufRead, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use weir_doors::rows::UnfitRows;

use crate::destination::Destination;
use crate::output::write_file;

/// The longest head that is read of a file.
const LONGEST_HEAD: u64 = 1 << 16;

/// Adds rows to a file; `text` begins with their head. Where nothing is, and where a file cannot be looked
/// into, all of it is written.
pub(crate) fn append_rows(path: &str, text: &str) -> Result<(), String> {
    let refuse = |why: UnfitRows| format!("error: {path}: {why}\n");
    let destination = Destination::of(Path::new(path)).map_err(|e| refuse(e.into()))?;
    let Destination::Replaced(target) = destination else {
        return write_file(path, text);
    };
    append_to(&target, text).map_err(refuse)
}

/// Finds out whether rows with this head can be added to the file.
pub(crate) fn check_rows(path: &str, head: &str) -> Result<(), UnfitRows> {
    let Destination::Replaced(target) = Destination::of(Path::new(path))? else {
        return Ok(());
    };
    match File::open(target) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(e.into()),
        Ok(mut file) => {
            // Nobody is in the middle of a row now.
            locked(&file, File::lock_shared)?;
            fits(&mut file, head).map(|_| ())
        }
    }
}

fn append_to(target: &Path, text: &str) -> Result<(), UnfitRows> {
    let head = text.split_inclusive('\n').next().unwrap_or_default();
    let mut file = open(target)?;
    let is_new = fits(&mut file, head)?;
    let rows = if is_new { text } else { &text[head.len()..] };
    let before = file.metadata()?.len();
    let added = file
        .write_all(rows.as_bytes())
        .and_then(|()| file.sync_all());
    if added.is_err() {
        // The error that matters is the one being reported.
        let _ = file.set_len(before);
        if is_new {
            let _ = fs::remove_file(target);
        }
    }
    Ok(added?)
}

/// The file of this name, locked until it is closed.
fn open(target: &Path) -> io::Result<File> {
    loop {
        let mut options = fs::OpenOptions::new();
        let file = options.read(true).append(true).create(true).open(target)?;
        locked(&file, File::lock)?;
        let held = file.metadata()?;
        // Who held it may have put another one in its place.
        match fs::metadata(target) {
            Ok(found) if (found.dev(), found.ino()) == (held.dev(), held.ino()) => {
                return Ok(file);
            }
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
    }
}

/// Waits for the lock. On a file system without locks a single write at the end has to do.
fn locked(file: &File, lock: impl Fn(&File) -> io::Result<()>) -> io::Result<()> {
    loop {
        match lock(file) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) if is_without_locks(&e) => return Ok(()),
            done => return done,
        }
    }
}

fn is_without_locks(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let without = [Errno::NOLCK, Errno::OPNOTSUPP, Errno::NOSYS, Errno::INVAL];
    Errno::from_io_error(error).is_some_and(|error| without.contains(&error))
}

/// True if the file is empty. Refuses one with another head or without an end of line.
fn fits(file: &mut File, head: &str) -> Result<bool, UnfitRows> {
    let mut found = Vec::new();
    io::BufReader::new((&*file).take(LONGEST_HEAD)).read_until(b'\n', &mut found)?;
    if found.is_empty() {
        return Ok(true);
    }
    if found == head.trim_end().as_bytes() {
        return Err(UnfitRows::OpenEnd);
    }
    if found != head.as_bytes() {
        let is_text = |line: &String| !line.trim_end().contains(char::is_control);
        let found = String::from_utf8(found).ok().filter(is_text);
        return Err(found.map_or(UnfitRows::NoRows, UnfitRows::OtherHead));
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    if last == *b"\n" {
        Ok(false)
    } else {
        Err(UnfitRows::OpenEnd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(format!("weir-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn rows_of_many_at_once_are_all_there_under_one_head() {
        let folder = folder("rows");
        for round in 0..20 {
            let path = folder.join(format!("{round}.csv")).display().to_string();
            let barrier = std::sync::Barrier::new(8);
            std::thread::scope(|scope| {
                for number in 0..8 {
                    let (path, barrier) = (&path, &barrier);
                    scope.spawn(move || {
                        barrier.wait();
                        append_rows(path, &format!("n,m\r\n{number},0\r\n")).unwrap();
                    });
                }
            });
            let text = fs::read_to_string(&path).unwrap();
            let mut lines: Vec<&str> = text.split_terminator("\r\n").collect();
            assert_eq!(lines.remove(0), "n,m");
            lines.sort_unstable();
            let all: Vec<String> = (0..8).map(|number| format!("{number},0")).collect();
            assert_eq!(lines, all);
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_does_not_fit_is_found_and_left_as_it_is() {
        let folder = folder("unfit");
        let path = folder.join("r.csv").display().to_string();
        let head = "a,b\r\n";
        assert!(check_rows(&path, head).is_ok(), "there is none yet");
        for (text, why) in [
            ("a,b\n1,2\n", "not the head"),
            ("a,b", "no end"),
            ("a,b\r\n1,2", "no end"),
            ("x", "not the head"),
            ("\u{1}key\n", "no rows"),
        ] {
            fs::write(&path, text).unwrap();
            let refusal = check_rows(&path, head).unwrap_err().to_string();
            assert!(refusal.contains(why), "{text}: {refusal}");
            let refusal = append_rows(&path, "a,b\r\n3,4\r\n").unwrap_err();
            assert!(refusal.contains(why), "{text}: {refusal}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        for text in ["", "a,b\r\n", "a,b\r\n1,2\r\n"] {
            fs::write(&path, text).unwrap();
            check_rows(&path, head).unwrap();
            append_rows(&path, "a,b\r\n3,4\r\n").unwrap();
            let after = fs::read_to_string(&path).unwrap();
            let before = if text.is_empty() { head } else { text };
            assert_eq!(after, format!("{before}3,4\r\n"));
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
