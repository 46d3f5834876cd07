//! Standard input that holds a configuration, and keeps the run alive.
//!
//! In: the text to its end, or to a line `end`. Out: its text; after such a line the end of the run, once
//! standard input ends, which a killed `ssh` brings about too. Not here: what the configuration says.

use std::io::{self, BufRead, Read};
use std::thread;

use rustix::process::{Signal, getpid, kill_process};

use crate::stopping::PATIENCE;

/// Line behind a configuration after which standard input is held open.
pub(crate) const END: &str = "end";

/// Reads a text of at most this many bytes, and whether standard input is held open after it.
///
/// # Errors
/// It is too long, no text, or cannot be read.
pub(crate) fn read(longest: u64) -> Result<(String, bool), String> {
    let mut input = io::stdin().lock().take(longest);
    let mut text = String::new();
    loop {
        let before = text.len();
        let read = input.read_line(&mut text);
        if read.map_err(|why| why.to_string())? == 0 {
            return if input.limit() > 0 {
                Ok((text, false))
            } else {
                Err(format!("it has more than {longest} bytes"))
            };
        }
        if text[before..].trim_end() == END {
            text.truncate(before);
            return Ok((text, true));
        }
    }
}

/// Ends this process once standard input has ended: in order, and at once where that takes too long.
pub(crate) fn end_with_input() {
    thread::spawn(|| {
        // What cannot be read any more has ended too.
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        let _ = kill_process(getpid(), Signal::TERM);
        thread::sleep(PATIENCE);
        let _ = kill_process(getpid(), Signal::KILL);
    });
}
