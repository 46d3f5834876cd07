//! Output of the guest's serial lines: the script's output, structured lines, notes of the guest's
//! init, and the kernel's log.
//!
//! In: bytes in any pieces. Out: [`Piece`]s and a [`Transcript`]; [`Complaint`]s of a kernel's log.
//! The script and the kernel have a line each, so neither can garble the other. A note of the init
//! begins with the byte 0x1e, which may follow output that has no end of line.
//! Not here: what it means for a run (`verdict`).

use serde_json::Value;

/// Begins a note of the guest's init.
const MARK: u8 = 0x1e;
/// Begins a line with one JSON object.
const STRUCTURED: &[u8] = b"@@weir ";
/// Begins the line by which the guest's init marks a case in the kernel's log.
pub(crate) const CASE_IN_LOG: &str = "weir-lab case ";

/// A part of what the script's line carried.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Piece {
    Output(Vec<u8>),
    Record(Value),
    Note(String),
}

/// Splits the bytes of the script's serial line, however they arrive.
#[derive(Debug, Default)]
pub(crate) struct Splitter {
    line: Vec<u8>,
}

impl Splitter {
    /// Takes bytes and gives what they complete.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                split_line(&std::mem::take(&mut self.line), &mut pieces);
            }
        }
        pieces
    }

    /// Rest that is left when nothing more comes.
    pub(crate) fn finish(&mut self) -> Vec<Piece> {
        let mut pieces = Vec::new();
        split_line(&std::mem::take(&mut self.line), &mut pieces);
        pieces
    }
}

fn split_line(line: &[u8], pieces: &mut Vec<Piece>) {
    let (text, note) = match line.iter().position(|byte| *byte == MARK) {
        Some(at) => (&line[..at], Some(&line[at + 1..])),
        None => (line, None),
    };
    let record = text
        .strip_prefix(STRUCTURED)
        .and_then(|json| serde_json::from_slice::<Value>(json).ok())
        .filter(Value::is_object);
    if let Some(record) = record {
        pieces.push(Piece::Record(record));
    } else if !text.is_empty() {
        pieces.push(Piece::Output(text.to_vec()));
    }
    if let Some(note) = note {
        let note = String::from_utf8_lossy(note).trim_end().to_owned();
        pieces.push(Piece::Note(note));
    }
}

/// A script of a batch, as far as it came.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct CaseNote {
    pub(crate) name: String,
    pub(crate) output: Vec<u8>,
    /// None: the guest ended within it.
    pub(crate) status: Option<i32>,
}

/// All that the script's line said.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Transcript {
    pub(crate) output: Vec<u8>,
    pub(crate) records: Vec<Value>,
    /// Seconds of the guest's clock when its init was ready.
    pub(crate) up_s: Option<f64>,
    /// The script's status.
    pub(crate) exit: Option<i32>,
    /// Failure of the guest's set-up.
    pub(crate) broken: Option<String>,
    /// Reason that results did not get out.
    pub(crate) lost: Option<String>,
    pub(crate) cases: Vec<CaseNote>,
}

impl Transcript {
    /// Reads a log that came in two pieces.
    pub fn of_two(first: &[u8], second: &[u8]) -> Self {
        let (mut splitter, mut transcript) = (Splitter::default(), Self::default());
        for bytes in [first, second] {
            for piece in splitter.feed(bytes) {
                transcript.take(piece);
            }
        }
        for piece in splitter.finish() {
            transcript.take(piece);
        }
        transcript
    }

    /// Reads a whole log.
    pub fn of(bytes: &[u8]) -> Self {
        Self::of_two(bytes, &[])
    }

    /// Takes one piece.
    pub(crate) fn take(&mut self, piece: Piece) {
        match piece {
            Piece::Output(bytes) => {
                self.output.extend_from_slice(&bytes);
                if let Some(case) = self.open_case() {
                    case.output.extend_from_slice(&bytes);
                }
            }
            Piece::Record(record) => self.records.push(record),
            Piece::Note(note) => self.take_note(&note),
        }
    }

    fn take_note(&mut self, note: &str) {
        let (word, rest) = note.split_once(' ').unwrap_or((note, ""));
        match word {
            "LAB-UP" => self.up_s = rest.parse().ok(),
            "LAB-EXIT" => self.exit = rest.parse().ok(),
            "LAB-BROKEN" => self.broken = Some(rest.to_owned()),
            "LAB-LOST" => self.lost = Some(rest.to_owned()),
            "@@begin" => self.cases.push(CaseNote {
                name: rest.to_owned(),
                ..CaseNote::default()
            }),
            "@@case" => {
                let status = rest.rsplit_once(" rc=").and_then(|(_, rc)| rc.parse().ok());
                if let Some(case) = self.open_case() {
                    case.status = status;
                }
            }
            _ => {}
        }
    }

    fn open_case(&mut self) -> Option<&mut CaseNote> {
        self.cases.last_mut().filter(|case| case.status.is_none())
    }
}

/// Cause of a complaint: the kernel or the emulator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComplaintGravity {
    /// The kernel found something wrong with itself or with a module.
    Kernel,
    /// The emulated device lost a command: the run is repeated once.
    Emulator,
}

/// A line of the kernel's log that must not be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    /// Cause of the complaint.
    pub gravity: ComplaintGravity,
    /// The line, without its time.
    pub line: String,
    /// The case of a batch within which it came.
    pub case: Option<String>,
}

const KERNEL: &[&str] = &[
    "Kernel panic",
    "Oops",
    "BUG:",
    "WARNING:",
    "rcu: INFO",
    "soft lockup",
    "self-detected stall",
    "blocked for more than",
    "general protection fault",
    "[Tainted",
];

/// The complaints of a kernel's log, without those that hold one of the `expected` words.
pub fn complaints(log: &str, expected: &[String]) -> Vec<Complaint> {
    let mut case = None;
    let mut found = Vec::new();
    for line in log.lines() {
        let text = without_time(line);
        if let Some(name) = text.strip_prefix(CASE_IN_LOG) {
            case = Some(name.trim().to_owned()).filter(|name| !name.is_empty());
        }
        let gravity = if text.contains("timeout, aborting") {
            ComplaintGravity::Emulator
        } else if KERNEL.iter().any(|word| text.contains(word)) || text.starts_with("BUG ") {
            ComplaintGravity::Kernel
        } else {
            continue;
        };
        if !expected.iter().any(|word| text.contains(word.as_str())) {
            found.push(Complaint {
                gravity,
                line: text.to_owned(),
                case: case.clone(),
            });
        }
    }
    found
}

/// `[    2.123456] text` without its time.
fn without_time(line: &str) -> &str {
    let line = line.trim_end();
    let stamp = line
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("] "))
        .filter(|(time, _)| time.trim().parse::<f64>().is_ok());
    stamp.map_or(line, |(_, text)| text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_script_the_records_and_the_notes_come_apart() {
        let log = b"\x1eLAB-UP 2.31\nhi\n@@weir {\"a\":1}\n@@weir broken\nno end\x1eLAB-EXIT 5\n";
        let transcript = Transcript::of(log);
        assert_eq!(transcript.output, b"hi\n@@weir broken\nno end");
        assert_eq!(transcript.records, [serde_json::json!({"a": 1})]);
        assert_eq!(transcript.up_s, Some(2.31));
        assert_eq!(transcript.exit, Some(5));
    }

    #[test]
    fn a_script_that_prints_the_words_of_a_note_says_nothing() {
        let transcript = Transcript::of(b"LAB-EXIT 0\n@@case a rc=0\n");
        assert_eq!(transcript.exit, None);
        assert!(transcript.cases.is_empty());
    }

    #[test]
    fn cases_keep_their_output_and_the_one_in_which_the_guest_died_has_no_status() {
        let log = b"\x1e@@begin a\none\n\x1e@@case a rc=3\nbetween\n\x1e@@begin b\ntwo\n";
        let cases = Transcript::of(log).cases;
        assert_eq!(cases.len(), 2);
        assert_eq!(
            (&cases[0].output[..], cases[0].status),
            (&b"one\n"[..], Some(3))
        );
        assert_eq!(
            (&cases[1].output[..], cases[1].status),
            (&b"two\n"[..], None)
        );
    }

    #[test]
    fn complaints_are_found_sorted_and_attributed() {
        let log = "\
[    1.0] module verification failed: signature and/or required key missing - tainting kernel
[    2.0] weir-lab case first
[    3.000001] WARNING: CPU: 0 PID: 7 at x.c:1 f+0x1/0x2 [kio]
[    4.0] weir-lab case second
[    5.0] nvme nvme0: I/O 3 QID 1 timeout, aborting
[    6.0] BUG kmalloc-64 (Tainted: G): Redzone overwritten
[    7.0] a DEBUG line
";
        let all = complaints(log, &[]);
        let seen: Vec<(ComplaintGravity, Option<&str>)> = all
            .iter()
            .map(|complaint| (complaint.gravity, complaint.case.as_deref()))
            .collect();
        assert_eq!(
            seen,
            [
                (ComplaintGravity::Kernel, Some("first")),
                (ComplaintGravity::Emulator, Some("second")),
                (ComplaintGravity::Kernel, Some("second")),
            ]
        );
        assert!(all[0].line.starts_with("WARNING: CPU: 0"));
        let expected = ["at x.c:1".to_owned(), "timeout".to_owned()];
        assert_eq!(complaints(log, &expected).len(), 1);
    }

    proptest! {
        #[test]
        fn the_pieces_in_which_bytes_arrive_do_not_matter(
            bytes in proptest::collection::vec(
                prop_oneof![Just(b'\n'), Just(MARK), Just(b'a'), any::<u8>()], 0..200
            ),
            cut in 0_usize..200,
        ) {
            let (first, second) = bytes.split_at(cut.min(bytes.len()));
            let transcript = Transcript::of_two(first, second);
            prop_assert_eq!(transcript, Transcript::of(&bytes));
        }

        #[test]
        fn output_without_marks_and_records_comes_out_as_it_was(text in "[^\u{1e}@]{0,200}") {
            prop_assert_eq!(Transcript::of(text.as_bytes()).output, text.as_bytes());
        }
    }
}
