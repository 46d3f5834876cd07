//! The database as a whole: several writers, one that is killed, older and newer forms, the indexes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rusqlite::Connection;
use weir_schema::{Kind, RunResult, sample};
use weir_units::Nanos;

use crate::tables::STEPS;
use crate::trend::SERIES;
use crate::{Entry, History, HistoryError, ListFilter, PruneRule, RunName, new_id};

/// A directory that vanishes.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("weir-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn file(&self) -> PathBuf {
        self.0.join("history.db")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn result(started_s: u64, rate: u64) -> RunResult {
    let second = Nanos::from_secs(1);
    let reads = sample::kind(Kind::Read, rate, second, &[]);
    let mut job = sample::job_result("a", vec![sample::worker(0, second, vec![reads])]);
    job.conclude();
    let mut result = sample::run(vec![vec![(sample::block_job("a"), job)]]);
    result.started_unix_ns = started_s * 1_000_000_000;
    result
}

fn entry(started_s: u64, rate: u64) -> Entry {
    let result = result(started_s, rate);
    Entry::of_result(&new_id(result.started_unix_ns), &result, None).unwrap()
}

/// The file that a process of this program writes to, and how many runs.
const WRITER: &str = "WEIR_TEST_WRITER";

/// Work of the processes that the tests below start; alone it does nothing.
#[test]
fn a_writer_adds_its_runs() {
    let Ok(words) = std::env::var(WRITER) else {
        return;
    };
    let (runs, file) = words.split_once(' ').unwrap();
    for run in 0..runs.parse().unwrap() {
        // As each run of weir does.
        let mut history = History::open(Path::new(file)).unwrap();
        history.insert(&entry(run, 100)).unwrap();
    }
}

fn writer(file: &Path, runs: u32) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "tests::a_writer_adds_its_runs", "--nocapture"]);
    command.env(WRITER, format!("{runs} {}", file.display()));
    command.stdout(Stdio::null()).spawn().unwrap()
}

fn count(file: &Path) -> u64 {
    let history = History::open_existing(file).unwrap().unwrap();
    assert_eq!(history.faults().unwrap(), [""; 0]);
    history.count().unwrap()
}

#[test]
fn eight_processes_lose_no_run() {
    let folder = Folder::new("eight");
    let writers: Vec<Child> = (0..8).map(|_| writer(&folder.file(), 50)).collect();
    for mut writer in writers {
        assert!(writer.wait().unwrap().success());
    }
    assert_eq!(count(&folder.file()), 400);
}

#[test]
fn a_killed_writer_leaves_whole_runs() {
    let folder = Folder::new("killed");
    for runs in 1..=12 {
        let watch = History::open(&folder.file()).unwrap();
        let before = watch.count().unwrap();
        let mut writer = writer(&folder.file(), 200);
        // At once, so that the end falls into the middle of a run that is kept in several steps.
        while watch.count().unwrap() < before + runs {
            assert!(writer.try_wait().unwrap().is_none(), "it ended by itself");
        }
        writer.kill().unwrap();
        writer.wait().unwrap();
        let left = count(&folder.file());
        let listed = History::open_existing(&folder.file()).unwrap().unwrap();
        let rows = listed.runs(&ListFilter::default()).unwrap();
        // Each run is there with its result and its figures, or not at all.
        for row in &rows {
            assert!(listed.json(&row.id).is_ok() && !listed.metrics(&row.id).unwrap().is_empty());
        }
        assert!(left >= before + runs && left == rows.len() as u64);
    }
}

#[test]
fn a_run_is_kept_in_a_log_without_a_wait_for_the_disk() {
    let folder = Folder::new("log");
    let history = History::open(&folder.file()).unwrap();
    let connection = &history.connection;
    let mode: rusqlite::Result<String> =
        connection.pragma_query_value(None, "journal_mode", |row| row.get(0));
    assert_eq!(mode.unwrap(), "wal");
    let synchronous: rusqlite::Result<u32> =
        connection.pragma_query_value(None, "synchronous", |row| row.get(0));
    // NORMAL: the log is written to the disk before its pages go into the file, not at each run.
    assert_eq!(synchronous.unwrap(), 1);
}

#[test]
fn the_log_stays_short_however_many_processes_leave_it() {
    let folder = Folder::new("short-log");
    let log = folder.0.join("history.db-wal");
    let mut longest = 0;
    for run in 0..100 {
        let mut history = History::open(&folder.file()).unwrap();
        history.insert(&entry(run, 100)).unwrap();
        history.leave_log();
        drop(history);
        longest = longest.max(fs::metadata(&log).map_or(0, |log| log.len()));
    }
    // 128 pages, and what one run adds to them.
    assert!((1..256 * 4096).contains(&longest), "{longest} bytes");
    assert_eq!(count(&folder.file()), 100);
}

#[test]
fn an_older_form_is_backed_up_and_brought_to_the_newest() {
    let folder = Folder::new("older");
    let file = folder.file();
    let mut history = History::open(&file).unwrap();
    history.insert(&entry(1, 100)).unwrap();
    drop(history);
    let later = [STEPS, &["ALTER TABLE run ADD COLUMN later TEXT"]].concat();
    // A step that fails leaves the form as it was.
    let wrong = [later.as_slice(), &["CREATE TABLE run(x)"]].concat();
    assert!(matches!(
        History::open_with(&file, &wrong),
        Err(HistoryError::Database { .. })
    ));
    assert_eq!(count(&file), 1);
    let history = History::open_with(&file, &later).unwrap();
    let later_values: i64 = history
        .connection
        .query_row("SELECT count(*) FROM run WHERE later IS NULL", [], |row| {
            row.get(0)
        })
        .unwrap();
    assert_eq!(later_values, 1);
    drop(history);
    let backup = folder.0.join("history.db.v1.bak");
    assert_eq!(count(&backup), 1);
    // For this program that form is a newer one.
    let mut newer = History::open(&file).unwrap();
    assert_eq!(newer.count().unwrap(), 1);
    let refused = newer.insert(&entry(2, 100));
    assert!(matches!(
        refused,
        Err(HistoryError::Newer {
            found: 2,
            known: 1,
            ..
        })
    ));
}

#[test]
fn other_files_are_left_alone() {
    let folder = Folder::new("other");
    let file = folder.file();
    let other = Connection::open(&file).unwrap();
    other.execute_batch("CREATE TABLE x(y)").unwrap();
    drop(other);
    let before = fs::read(&file).unwrap();
    assert!(matches!(
        History::open(&file),
        Err(HistoryError::NoHistory(_))
    ));
    assert_eq!(fs::read(&file).unwrap(), before);
    assert!(
        History::open_existing(&folder.0.join("none"))
            .unwrap()
            .is_none()
    );
}

#[test]
fn a_trend_reads_indexes_alone() {
    let folder = Folder::new("explain");
    let history = History::open(&folder.file()).unwrap();
    let sql = format!("EXPLAIN QUERY PLAN {SERIES}");
    let steps = history
        .all(&sql, (1, 1, "a", "read", "rate", 100), |row| {
            row.get::<_, String>(3)
        })
        .unwrap();
    assert_eq!(
        steps,
        [
            "SEARCH run USING INDEX run_series (plan_id=? AND machine_id=?)",
            "SEARCH metric USING PRIMARY KEY (run_id=? AND job=? AND kind=? AND name=?)",
        ]
    );
}

#[test]
fn runs_are_found_by_the_beginning_of_their_ids() {
    let folder = Folder::new("prefix");
    let mut history = History::open(&folder.file()).unwrap();
    let mut first = entry(1, 100);
    first.id = "01AAAAAAAA0000000000000001".to_owned();
    let second = Entry {
        id: "01AAAAAAAB0000000000000002".to_owned(),
        started_ns: 5,
        ..first.clone()
    };
    assert!(history.insert(&first).unwrap() && history.insert(&second).unwrap());
    assert!(!history.insert(&first).unwrap());
    assert_eq!(history.resolve("01aaaaaaaa").unwrap(), [first.id.clone()]);
    assert_eq!(history.resolve("@-1").unwrap(), [first.id.clone()]);
    assert_eq!(
        history.resolve("@-2").unwrap(),
        std::slice::from_ref(&second.id)
    );
    let several = history.resolve("01AAAA").unwrap_err().to_string();
    assert!(
        several.contains("the beginning of 2 runs: 01AAAAAAAB"),
        "{several}"
    );
    for word in ["01AAAAAAAC", "@-3", "label:x", "baseline"] {
        let none = history.resolve(word);
        assert!(matches!(none, Err(HistoryError::NoRun { .. })), "{word}");
    }
    let short = history.resolve("01A").unwrap_err().to_string();
    assert!(short.contains("at least 4 characters"), "{short}");
    for word in ["@-0", "@-", "label:", "base", "1234", "a.json"] {
        assert_eq!(RunName::of(word), None, "{word}");
    }
}

#[test]
fn what_is_pruned_is_what_neither_number_nor_age_keeps() {
    let folder = Folder::new("prune");
    let mut history = History::open(&folder.file()).unwrap();
    for started in 1..=6 {
        history.insert(&entry(started, 100)).unwrap();
    }
    let pruned = |history: &History, keep, before_s: Option<u64>| {
        let rule = PruneRule {
            keep,
            before_ns: before_s.map(|s| s * 1_000_000_000),
            metrics_too: false,
        };
        let pruned = history.prunable(&rule).unwrap();
        (pruned.runs.len(), pruned.spared)
    };
    assert_eq!(pruned(&history, Some(4), None), (2, 0));
    assert_eq!(pruned(&history, None, Some(4)), (3, 0));
    assert_eq!(pruned(&history, Some(5), Some(4)), (1, 0));
    let oldest = history.resolve("@-6").unwrap().remove(0);
    history.set_baseline(&oldest, 7).unwrap();
    let next = history.resolve("@-5").unwrap().remove(0);
    history.set_tag(&next, "keep", Some("")).unwrap();
    assert_eq!(pruned(&history, Some(3), None), (1, 2));
}
