//! Job files at random: fio and weir make the same of them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::allowed;
use crate::beside::{Case, Kind, both, no_fio};
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
const TRIES: usize = 20;

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |text| text.parse().unwrap())
}

/// Cases in a hundred in which fio may fail to end: it serves files at random for ever where none
/// has room for a block.
const ENDLESS: usize = 2;

/// What differs and no row of the book's table allows.
pub(crate) fn unlisted(case: &Case) -> Vec<Difference> {
    let (theirs, ours) = both(case);
    // It also dies of errors of its own now and then, or one of its processes does.
    let died = theirs.said.code.is_none()
        || format!("{}{}", theirs.said.err, theirs.said.out).contains("got signal=");
    if !theirs.ended || died {
        skip(
            &format!("case {} of seed {}", case.number, case.seed),
            "fio does not end well",
        );
        ENDED_NOT.fetch_add(1, Ordering::Relaxed);
        return Vec::new();
    }
    let mut found = differences(case, &theirs, &ours);
    found.retain(|d| allowed::row(case, d).is_none());
    found
}

/// Compares cases, some at a time, and gives those in which something differs.
pub(crate) fn differing(cases: &[Case]) -> Vec<(&Case, Vec<Difference>)> {
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = unlisted(case);
                    if !found.is_empty() {
                        failed.lock().unwrap().push((case, found));
                    }
                }
            });
        }
    });
    let mut failed = failed.into_inner().unwrap();
    failed.sort_by_key(|(case, _)| case.number);
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
    for (case, found) in failed
        .iter()
        .take(usize::try_from(number("WEIR_SHOWN", SHOWN)).unwrap())
    {
        tell(case, found);
    }
    let endless = ENDED_NOT.load(Ordering::Relaxed);
    assert!(
        endless * 100 <= cases.len() * ENDLESS,
        "fio did not end {endless} times"
    );
    let numbers: Vec<u64> = failed.iter().map(|(case, _)| case.number).collect();
    assert!(
        failed.is_empty(),
        "seed {seed}: cases {numbers:?} differ and no row of the table says so"
    );
}

fn tell(case: &Case, found: &[Difference]) {
    let kept = case.keep("differs");
    let (small, found) = shrink(case, found);
    println!(
        "\n==== seed {} case {}: kept in {kept}",
        case.seed, case.number
    );
    println!("{}\n{}", small.command(), small.files[0].1);
    for difference in &found {
        println!("{difference}");
    }
}

/// Leaves out lines of the first file, ever fewer at once, as long as the first difference stays
/// of the same kind.
fn shrink(case: &Case, found: &[Difference]) -> (Case, Vec<Difference>) {
    let mut best = (case.clone(), found.to_vec());
    let mut tries = 0;
    let mut chunk = case.files[0].1.lines().count().div_ceil(2);
    while chunk > 0 {
        let mut at = 0;
        while at < best.0.files[0].1.lines().count() && tries < TRIES {
            tries += 1;
            let lines = best.0.files[0].1.lines().enumerate();
            let left = lines.filter(|(i, _)| !(at..at + chunk).contains(i));
            let text: Vec<&str> = left.map(|(_, line)| line).collect();
            let mut shorter = best.0.clone();
            let holds_a_job = text
                .iter()
                .any(|l| l.trim().starts_with('[') && !l.contains("[global"));
            if !holds_a_job {
                at += chunk;
                continue;
            }
            shorter.files[0].1 = text.join("\n") + "\n";
            let left = unlisted(&shorter);
            if left.first().map(|d| d.topic) == found.first().map(|d| d.topic) {
                best = (shorter, left);
            } else {
                at += chunk;
            }
        }
        chunk /= 2;
    }
    best
}

#[test]
fn files_at_random_run_alike() {
    if let Some(reason) = no_fio() {
        return skip("files_at_random_run_alike", &reason);
    }
    compare(Kind::Run, number("WEIR_CASES", 300));
}

#[test]
fn files_at_random_are_read_alike() {
    if let Some(reason) = no_fio() {
        return skip("files_at_random_are_read_alike", &reason);
    }
    compare(Kind::Parse, number("WEIR_CASES", 150));
}
