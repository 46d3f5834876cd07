//! The operations of a pattern one after the other, for one worker.
//!
//! In: a pattern. Out: its operations in their order, from memory or from the pattern's file,
//! which is read in pieces: then nothing grows with the length of the pattern. Not here: what a
//! line means.

use std::fs::File;
use std::io::BufReader;
use std::sync::Arc;

use weir_run::RecordedStarts;
use weir_units::Nanos;

use super::read::{Reader, wrong};
use super::{Recorded, RecordedPattern, Unreadable};

/// Bytes of a piece.
const PIECE: usize = 1 << 16;

/// A place in a pattern.
#[derive(Debug)]
pub struct PatternReader {
    pattern: Arc<RecordedPattern>,
    /// Operations that were given.
    given: u64,
    reader: Option<Box<Reader<BufReader<File>>>>,
}

impl PatternReader {
    /// From the first operation on.
    ///
    /// # Errors
    /// The pattern's file cannot be read any more.
    pub fn new(pattern: &Arc<RecordedPattern>) -> Result<Self, Unreadable> {
        let open = |(path, rule): &(_, _)| {
            let file = File::open(path).map_err(|error| wrong(1, error.to_string()))?;
            let pieces = BufReader::with_capacity(PIECE, file);
            Ok(Box::new(Reader::new(pieces, rule)?))
        };
        Ok(Self {
            reader: pattern.pieces.as_ref().map(open).transpose()?,
            pattern: Arc::clone(pattern),
            given: 0,
        })
    }

    /// The next operation; none at the end, or where the pattern is not what it was.
    pub(crate) fn next(&mut self) -> Option<Recorded> {
        let op = match &mut self.reader {
            None => {
                let index = usize::try_from(self.given).ok()?;
                self.pattern.operations.get(index).copied()
            }
            Some(reader) => match checked(reader, &self.pattern, self.given) {
                Ok(op) => op,
                Err(unreadable) => {
                    // What another worker has found is as good.
                    let _ = self.pattern.trouble.set(unreadable);
                    None
                }
            },
        };
        self.given += u64::from(op.is_some());
        op
    }

    /// The times of its operations alone.
    pub(crate) fn starts(mut self) -> RecordedStarts {
        let next = move || self.next().map(|op| Nanos(op.at_ns));
        RecordedStarts(Box::new(std::iter::from_fn(next)))
    }

    /// Each operation is read from a file, which takes time.
    pub(crate) fn is_read_in_pieces(&self) -> bool {
        self.reader.is_some()
    }
}

/// The next operation of a file, which may have changed since it was looked at.
fn checked(
    reader: &mut Reader<BufReader<File>>,
    pattern: &RecordedPattern,
    given: u64,
) -> Result<Option<Recorded>, Unreadable> {
    let op = reader.next()?;
    let is_as_it_was = match &op {
        Some(op) => given < pattern.count && pattern.covers(op),
        None => given == pattern.count,
    };
    if is_as_it_was {
        return Ok(op);
    }
    let reason = "the pattern was changed while it was carried out";
    Err(wrong(reader.line_number().max(1), reason))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use weir_schema::Replay;
    use weir_units::Bytes;

    use super::super::{read, survey};
    use super::*;

    fn rule() -> Replay {
        Replay {
            path: String::new(),
            no_pauses: false,
            onto: None,
            divide_offsets: 1,
            align_bytes: Bytes(0),
            rate_percent: 100,
            leave_out: Vec::new(),
            in_pieces: true,
        }
    }

    /// More than a piece.
    fn text() -> String {
        let lines = (0..10_000_u64).map(|n| format!("{n} f{} read {} 512\n", n % 3, n * 512));
        let add = "0 f0 add\n0 f1 add\n0 f2 add\n";
        format!("fio version 3 iolog\n{add}{}", lines.collect::<String>())
    }

    fn file(name: &str, text: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("weir-tape-{name}-{}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        path
    }

    fn all(pattern: &Arc<RecordedPattern>) -> Vec<Recorded> {
        let mut tape = PatternReader::new(pattern).unwrap();
        std::iter::from_fn(|| tape.next()).collect()
    }

    #[test]
    fn pieces_give_the_operations_of_the_whole() {
        let path = file("whole", &text());
        let whole = Arc::new(read(text().as_bytes(), &rule()).unwrap());
        let pieces = Arc::new(survey(&path, &rule()).unwrap());
        assert!(pieces.operations.is_empty());
        assert_eq!(pieces.files, whole.files);
        assert_eq!(pieces.ends(), whole.ends());
        assert_eq!(pieces.is_timed(), whole.is_timed());
        assert_eq!(all(&pieces), all(&whole));
        assert_eq!(all(&pieces).len(), 10_000);
        assert!(pieces.trouble().is_none());
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_pattern_that_changes_while_it_is_carried_out_is_noticed() {
        let path = file("changed", &text());
        for changed in [
            text().replace(" 4096000 512", " 40960000000 512"),
            text().replace(" 4096000 512", " 4096000 1024"),
            text().replace("8000 f2 read", "8000 f2 write"),
            text().replace("8000 f2 read", "8000 f2 blah"),
            text() + "10000 f1 read 0 512\n",
            text().lines().take(9000).collect::<Vec<_>>().join("\n"),
        ] {
            std::fs::write(&path, text()).unwrap();
            let pattern = Arc::new(survey(&path, &rule()).unwrap());
            std::fs::write(&path, &changed).unwrap();
            assert!(all(&pattern).len() <= 10_000);
            let trouble = pattern.trouble().expect("it is noticed");
            assert!(trouble.line > 3, "{trouble}");
        }
        std::fs::remove_file(path).unwrap();
    }
}
