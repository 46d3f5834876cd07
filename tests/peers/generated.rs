//! Job files at random: fio and weir make the same of them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::allowed;
use crate::beside::{Both, Case, Kind, Seen, both, no_fio};
use crate::differ::{Difference, differences};
use crate::generate::case;
use crate::stage::skip;

/// Cases in which fio did not end.
static ENDED_NOT: AtomicUsize = AtomicUsize::new(0);

/// Cases that run at the same time: fio sleeps for most of its quarter of a second.
const AT_ONCE: usize = 4;
/// Failures that are shown.
const SHOWN: u64 = 12;
/// Tries to make a failing file shorter.
const TRIES: usize = 60;

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |text| text.parse().unwrap())
}

/// Cases in a hundred in which fio may fail to end: it serves files at random for ever where none
/// has room for a block.
const ENDLESS: usize = 2;

/// A case of which something differs that no row of the book's table allows.
#[derive(Debug)]
pub(crate) struct Differing {
    pub(crate) case: Case,
    pub(crate) found: Vec<Difference>,
    both: Both,
}

/// Runs a case with both; something where it differs.
fn compared(case: &Case) -> Option<Differing> {
    let both = both(case);
    let theirs = &both.theirs;
    // It also dies of errors of its own now and then, or one of its processes does.
    let died = theirs.said.code.is_none()
        || format!("{}{}", theirs.said.err, theirs.said.out).contains("got signal=");
    if !theirs.ended || died {
        skip(
            &format!("case {} of seed {}", case.number, case.seed),
            "fio does not end well",
        );
        ENDED_NOT.fetch_add(1, Ordering::Relaxed);
        return None;
    }
    let found = unlisted(case, theirs, &both.ours);
    (!found.is_empty()).then(|| Differing {
        case: case.clone(),
        found,
        both,
    })
}

/// Differences that no row of the book's table allows.
pub(crate) fn unlisted(case: &Case, theirs: &Seen, ours: &Seen) -> Vec<Difference> {
    let mut found = differences(case, theirs, ours);
    found.retain(|d| allowed::row(case, d).is_none());
    found
}

/// Compares cases, some at a time, and gives those in which something differs.
pub(crate) fn differing(cases: &[Case]) -> Vec<Differing> {
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    failed.lock().unwrap().extend(compared(case));
                }
            });
        }
    });
    let mut failed = failed.into_inner().unwrap();
    failed.sort_by_key(|differing| differing.case.number);
    failed
}

fn compare(kind: Kind, count: u64) {
    let seed = number("WEIR_SEED", 1);
    let first = number("WEIR_FIRST", 0);
    let cases: Vec<Case> = (first..first + count)
        .map(|n| case(seed, n, kind))
        .collect();
    let failed = differing(&cases);
    println!(
        "{kind:?}: {count} cases from seed {seed}, {} differ",
        failed.len()
    );
    let numbers: Vec<u64> = failed
        .iter()
        .map(|differing| differing.case.number)
        .collect();
    let shown = usize::try_from(number("WEIR_SHOWN", SHOWN)).unwrap();
    failed.into_iter().take(shown).for_each(Differing::show);
    let endless = ENDED_NOT.load(Ordering::Relaxed);
    assert!(
        endless * 100 <= cases.len() * ENDLESS,
        "fio did not end {endless} times"
    );
    assert!(
        numbers.is_empty(),
        "seed {seed}: cases {numbers:?} differ and no row of the table says so"
    );
}

impl Differing {
    /// Keeps the case, and prints the shortest one that differs like it.
    fn show(self) {
        let kept = self.case.keep_with("differs", &self.both);
        let (seed, number) = (self.case.seed, self.case.number);
        let short = self.shrunk();
        let short_kept = short.case.keep_with("short", &short.both);
        println!("\n==== seed {seed} case {number}: kept in {kept}, shorter in {short_kept}");
        println!("{}\n{}", short.case.command(), short.case.files[0].1);
        for difference in &short.found {
            println!("{difference}");
        }
    }

    /// Without words, and without lines of the first file, ever fewer at once, as long as the first
    /// difference stays of the same kind.
    fn shrunk(mut self) -> Self {
        let mut tries = 0;
        for at in (0..self.case.words.len()).rev() {
            let mut shorter = self.case.clone();
            let word = shorter.words.remove(at);
            if !self.case.files.iter().any(|(name, _)| *name == word) {
                self.becomes(&shorter);
            }
        }
        let mut chunk = self.case.files[0].1.lines().count().div_ceil(2);
        while chunk > 0 {
            let (mut at, mut is_shorter) = (0, false);
            while at < self.case.files[0].1.lines().count() && tries < TRIES {
                tries += 1;
                if self
                    .case
                    .without_lines(at, chunk)
                    .is_some_and(|c| self.becomes(&c))
                {
                    is_shorter = true;
                } else {
                    at += chunk;
                }
            }
            // A line may have gone without which an earlier one is not needed either.
            chunk = if is_shorter && tries < TRIES {
                chunk
            } else {
                chunk / 2
            };
        }
        self
    }

    /// Takes a shorter case if it differs like this one.
    fn becomes(&mut self, shorter: &Case) -> bool {
        let like_this = |other: &Self| other.found[0].topic == self.found[0].topic;
        match compared(shorter).filter(like_this) {
            Some(other) => {
                *self = other;
                true
            }
            None => false,
        }
    }
}

impl Case {
    /// Without some lines of its first file; none where no job is left.
    fn without_lines(&self, at: usize, count: usize) -> Option<Self> {
        let lines = self.files[0].1.lines().enumerate();
        let left = lines.filter(|(i, _)| !(at..at + count).contains(i));
        let text: Vec<&str> = left.map(|(_, line)| line).collect();
        let is_job = |line: &&str| line.trim().starts_with('[') && !line.contains("[global");
        text.iter().any(is_job).then(|| {
            let mut shorter = self.clone();
            shorter.files[0].1 = text.join("\n") + "\n";
            shorter
        })
    }
}

/// True with `cargo xtask test --all --long`: all cases, and not a part of them.
pub(crate) fn is_long() -> bool {
    std::env::var_os("WEIR_LONG_TESTS").is_some()
}

/// Cases of a kind.
fn cases(part: u64, all: u64) -> u64 {
    number("WEIR_CASES", if is_long() { all } else { part })
}

#[test]
fn files_at_random_run_alike() {
    if let Some(reason) = no_fio() {
        return skip("files_at_random_run_alike", &reason);
    }
    compare(Kind::Run, cases(100, 300));
}

#[test]
fn files_at_random_are_read_alike() {
    if let Some(reason) = no_fio() {
        return skip("files_at_random_are_read_alike", &reason);
    }
    compare(Kind::Parse, cases(75, 150));
}
