//! The tables, and the steps from each version of them to the next.
//!
//! In: a connection. Out: tables of this version, and a copy of the file as it was before. Not here:
//! how a connection is opened (`open`), what stands in the tables.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, TransactionBehavior};

/// `WEIR`: marks the file as ours.
pub(crate) const APPLICATION_ID: i32 = 0x5745_4952;

/// Steps that make each version from the one before; the number of steps is the version.
pub(crate) const STEPS: &[&str] = &[FIRST];

const FIRST: &str = "
CREATE TABLE machine(
    id INTEGER PRIMARY KEY NOT NULL,
    key TEXT NOT NULL UNIQUE,
    facts TEXT NOT NULL
) STRICT;
CREATE TABLE plan(
    id INTEGER PRIMARY KEY NOT NULL,
    fingerprint TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    json TEXT NOT NULL
) STRICT;
CREATE TABLE run(
    id TEXT PRIMARY KEY NOT NULL,
    started_ns INTEGER NOT NULL,
    duration_ns INTEGER NOT NULL,
    plan_id INTEGER NOT NULL REFERENCES plan(id),
    machine_id INTEGER NOT NULL REFERENCES machine(id),
    verb TEXT NOT NULL,
    label TEXT,
    note TEXT,
    source TEXT,
    weir_version TEXT NOT NULL,
    complete INTEGER NOT NULL,
    exit_code INTEGER NOT NULL,
    warnings TEXT NOT NULL
) STRICT;
CREATE TABLE result(
    run_id TEXT PRIMARY KEY NOT NULL REFERENCES run(id) ON DELETE CASCADE,
    schema TEXT NOT NULL,
    json BLOB NOT NULL
) STRICT;
CREATE TABLE tag(
    run_id TEXT NOT NULL REFERENCES run(id) ON DELETE CASCADE,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY(run_id, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE metric(
    run_id TEXT NOT NULL REFERENCES run(id) ON DELETE CASCADE,
    job TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    value REAL NOT NULL,
    low REAL,
    high REAL,
    unit TEXT NOT NULL,
    better INTEGER NOT NULL CHECK(better IN (-1, 0, 1)),
    few INTEGER NOT NULL,
    PRIMARY KEY(run_id, job, kind, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE baseline(
    plan_id INTEGER NOT NULL REFERENCES plan(id),
    machine_id INTEGER NOT NULL REFERENCES machine(id),
    run_id TEXT NOT NULL REFERENCES run(id) ON DELETE RESTRICT,
    set_ns INTEGER NOT NULL,
    PRIMARY KEY(plan_id, machine_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX run_started ON run(started_ns);
CREATE INDEX run_series ON run(plan_id, machine_id, started_ns);
CREATE INDEX tag_value ON tag(key, value);
CREATE INDEX run_label ON run(label, started_ns) WHERE label IS NOT NULL;
";

/// The version of the tables.
pub(crate) fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Takes the remaining steps, all or none. Another process may take them first.
pub(crate) fn migrate(
    connection: &mut Connection,
    path: &Path,
    steps: &[&str],
) -> rusqlite::Result<()> {
    let newest = u32::try_from(steps.len()).unwrap_or(u32::MAX);
    let found = version(connection)?;
    if found >= newest {
        return Ok(());
    }
    if found > 0 {
        back_up(connection, path, found)?;
    }
    let step = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = version(&step)?;
    for sql in steps.iter().skip(found as usize) {
        step.execute_batch(sql)?;
    }
    if found < newest {
        step.pragma_update(None, "application_id", APPLICATION_ID)?;
        step.pragma_update(None, "user_version", newest)?;
    }
    step.commit()
}

/// The file as it is, beside it. It appears whole or not at all.
fn back_up(connection: &Connection, path: &Path, version: u32) -> rusqlite::Result<()> {
    let backup = beside(path, &format!("v{version}.bak"));
    let partial = beside(path, &format!("v{version}.bak.{}", std::process::id()));
    // What another process left when it was killed.
    let _ = fs::remove_file(&partial);
    copy(connection, &partial)?;
    fs::rename(&partial, &backup).map_err(|_| rusqlite::Error::InvalidPath(backup))
}

/// All that is in the database, in another file, which must not be there yet.
pub(crate) fn copy(connection: &Connection, to: &Path) -> rusqlite::Result<()> {
    let name = to.to_string_lossy();
    connection.execute("VACUUM INTO ?1", [name.as_ref()])?;
    Ok(())
}

/// `history.db.SUFFIX`.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    PathBuf::from(name)
}
