//! Changes of the history: runs that are added, notes and tags of the user, runs that are removed.
//!
//! In: an [`Entry`], or the id of a run. Out: nothing; each call is a transaction that takes the right
//! to write first, as one that reads before may lose it to another process whatever it waits. Not
//! here: which runs are too many (`prune`).

use rusqlite::{ErrorCode, OptionalExtension as _, Transaction, TransactionBehavior, params};

use crate::entry::Entry;
use crate::error::HistoryError;
use crate::open::History;
use crate::rows::signed;

impl History {
    /// Adds a run; whether it was not there yet.
    ///
    /// # Errors
    /// The database's error: no room, no right; a history that is only read.
    pub fn insert(&mut self, entry: &Entry) -> Result<bool, HistoryError> {
        self.change(|change| insert(change, entry))
    }

    /// Adds runs, all or none; how many were not there yet.
    ///
    /// # Errors
    /// As of [`History::insert`].
    pub fn insert_all(&mut self, entries: &[Entry]) -> Result<usize, HistoryError> {
        self.change(|change| {
            let mut added = 0;
            for entry in entries {
                added += usize::from(insert(change, entry)?);
            }
            Ok(added)
        })
    }

    /// Corrects what a run left for the shell.
    ///
    /// # Errors
    /// As of [`History::insert`].
    pub fn set_exit_code(&mut self, id: &str, code: u8) -> Result<(), HistoryError> {
        self.change(|change| {
            change.execute("UPDATE run SET exit_code = ?2 WHERE id = ?1", (id, code))
        })?;
        Ok(())
    }

    /// Gives a run a label, or takes it.
    ///
    /// # Errors
    /// As of [`History::insert`].
    pub fn set_label(&mut self, id: &str, label: Option<&str>) -> Result<(), HistoryError> {
        self.change(|change| {
            change.execute("UPDATE run SET label = ?2 WHERE id = ?1", (id, label))
        })?;
        Ok(())
    }

    /// Notes something about a run, or takes it back.
    ///
    /// # Errors
    /// As of [`History::insert`].
    pub fn set_note(&mut self, id: &str, note: Option<&str>) -> Result<(), HistoryError> {
        self.change(|change| change.execute("UPDATE run SET note = ?2 WHERE id = ?1", (id, note)))?;
        Ok(())
    }

    /// Gives a run a tag, or takes it.
    ///
    /// # Errors
    /// As of [`History::insert`].
    pub fn set_tag(
        &mut self,
        id: &str,
        key: &str,
        value: Option<&str>,
    ) -> Result<(), HistoryError> {
        self.change(|change| match value {
            Some(value) => change.execute(
                "INSERT INTO tag VALUES(?1, ?2, ?3)
                 ON CONFLICT DO UPDATE SET value = excluded.value",
                (id, key, value),
            ),
            None => change.execute("DELETE FROM tag WHERE run_id = ?1 AND key = ?2", (id, key)),
        })?;
        Ok(())
    }

    /// Makes a run the baseline of its plan on its machine.
    ///
    /// # Errors
    /// As of [`History::insert`].
    pub fn set_baseline(&mut self, id: &str, now_ns: u64) -> Result<(), HistoryError> {
        self.change(|change| {
            change.execute(
                "INSERT INTO baseline SELECT plan_id, machine_id, id, ?2 FROM run WHERE id = ?1
                 ON CONFLICT DO UPDATE SET run_id = excluded.run_id, set_ns = excluded.set_ns",
                (id, signed(now_ns)),
            )
        })?;
        Ok(())
    }

    /// Makes it one no longer; whether it was.
    ///
    /// # Errors
    /// As of [`History::insert`].
    pub fn clear_baseline(&mut self, id: &str) -> Result<bool, HistoryError> {
        let cleared =
            self.change(|change| change.execute("DELETE FROM baseline WHERE run_id = ?1", [id]))?;
        Ok(cleared > 0)
    }

    /// Removes runs with all that is known of them, all or none.
    ///
    /// # Errors
    /// As of [`History::insert`]; one of them is a baseline.
    pub fn remove(&mut self, ids: &[String]) -> Result<(), HistoryError> {
        let mut last = String::new();
        let removed = self.change(|change| {
            for id in ids {
                last.clone_from(id);
                change.execute("DELETE FROM run WHERE id = ?1", [id])?;
            }
            forget_unused(change)
        });
        if let Err(HistoryError::Database { source, .. }) = &removed
            && source.sqlite_error_code() == Some(ErrorCode::ConstraintViolation)
        {
            return Err(HistoryError::IsBaseline(last));
        }
        removed?;
        self.give_room_back()
    }

    /// Gives the room of what was removed back to the file system.
    pub(crate) fn give_room_back(&self) -> Result<(), HistoryError> {
        // It has a row for each page, and works as they are asked for.
        let freed = self
            .connection
            .prepare("PRAGMA incremental_vacuum")
            .and_then(|mut pages| {
                let mut rows = pages.query([])?;
                while rows.next()?.is_some() {}
                Ok(())
            });
        freed.map_err(|e| self.said(e))
    }

    pub(crate) fn change<T>(
        &mut self,
        change: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, HistoryError> {
        self.check_writable()?;
        let begin = TransactionBehavior::Immediate;
        let changed = self
            .connection
            .transaction_with_behavior(begin)
            .and_then(|transaction| {
                let value = change(&transaction)?;
                transaction.commit()?;
                Ok(value)
            });
        changed.map_err(|e| crate::open::said(&self.path, e))
    }
}

/// Plans and machines of runs that are gone.
pub(crate) fn forget_unused(change: &Transaction<'_>) -> rusqlite::Result<()> {
    change.execute_batch(
        "DELETE FROM plan WHERE NOT EXISTS (SELECT 1 FROM run WHERE plan_id = plan.id);
         DELETE FROM machine WHERE NOT EXISTS (SELECT 1 FROM run WHERE machine_id = machine.id);",
    )
}

/// Adds a run; whether it was not there yet.
pub(crate) fn insert(change: &Transaction<'_>, entry: &Entry) -> rusqlite::Result<bool> {
    let known: Option<i64> = change
        .query_row("SELECT 1 FROM run WHERE id = ?1", [&entry.id], |row| {
            row.get(0)
        })
        .optional()?;
    if known.is_some() {
        return Ok(false);
    }
    // What a plan is called may change; the last name is the one that people know.
    let plan: i64 = change.query_row(
        "INSERT INTO plan(fingerprint, name, json) VALUES(?1, ?2, ?3)
         ON CONFLICT DO UPDATE SET name = excluded.name RETURNING id",
        (&entry.plan_fingerprint, &entry.plan_name, &entry.plan_json),
        |row| row.get(0),
    )?;
    let machine: i64 = change.query_row(
        "INSERT INTO machine(key, facts) VALUES(?1, ?2)
         ON CONFLICT DO UPDATE SET facts = excluded.facts RETURNING id",
        (&entry.machine_key, &entry.machine_facts),
        |row| row.get(0),
    )?;
    change.execute(
        "INSERT INTO run VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        params![
            entry.id,
            signed(entry.started_ns),
            signed(entry.duration_ns.0),
            plan,
            machine,
            entry.verb,
            entry.label,
            entry.note,
            entry.source,
            entry.weir_version,
            entry.complete,
            entry.exit_code,
            entry.warnings.join(" "),
        ],
    )?;
    insert_parts(change, entry)?;
    Ok(true)
}

/// Inserts the parts of a run: its result, its tags, its figures.
fn insert_parts(change: &Transaction<'_>, entry: &Entry) -> rusqlite::Result<()> {
    if let Some(json) = &entry.json {
        change.execute(
            "INSERT INTO result VALUES(?1, ?2, ?3)",
            (&entry.id, &entry.schema, json.as_bytes()),
        )?;
    }
    for (key, value) in &entry.tags {
        change.execute(
            "INSERT INTO tag VALUES(?1, ?2, ?3)",
            (&entry.id, key, value),
        )?;
    }
    let mut metric =
        change.prepare("INSERT INTO metric VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)")?;
    for row in &entry.metrics {
        let (low, high) = row.interval.unzip();
        metric.execute(params![
            entry.id,
            row.job,
            row.kind,
            row.name,
            row.value,
            low,
            high,
            row.unit,
            row.better,
            row.is_of_few,
        ])?;
    }
    Ok(())
}
