//! The log of a packet path: its tables of stages.
//!
//! In: the whole log, colours included. Out: a [`StageTable`] per iteration with the lines of the
//! workspaces before it. A table that the log ends in the middle of is left out, and a note says so; an
//! older title of the tables is taken too. Not here: which table counts.

use weir_schema::PathStage;

use crate::counted::CountedFigures;
use crate::inputs::row::{Row, row};
use crate::inputs::workspace_lines::add_line;
use crate::inputs::{InputError, LOG_HELP};
use crate::reading::Reading;
use crate::stage_tables::{StageRow, StageTable, StageTables, WorkspaceFigures};

/// Title in the head of every table.
const TITLE: &str = "Perf Statistics";
/// The line above the table of a log that has both sides.
const SERVER: &str = "Server";
/// The row of the whole path.
const END_TO_END: &str = "End-to-end";

impl StageTables {
    /// Reads a log.
    ///
    /// # Errors
    /// There is no whole table, or a row cannot be read.
    pub fn of_log(text: &str) -> Result<Self, InputError> {
        let mut log = Self::default();
        let mut open: Option<OpenTable> = None;
        let mut workspaces = Vec::new();
        let (mut of_server, mut is_server) = (Vec::new(), false);
        let mut last = 1;
        for (at, raw) in text.lines().enumerate() {
            last = at + 1;
            let line = plain(raw);
            if line.contains(TITLE) {
                log.leave_out(open.take());
                open = Some(OpenTable::new(last, std::mem::take(&mut workspaces)));
            } else if let Some(mut table) = open.take() {
                if table.takes(&line, last, &mut log.notes)? {
                    let all = if std::mem::take(&mut is_server) {
                        &mut of_server
                    } else {
                        &mut log.tables
                    };
                    all.push(table.closed()?);
                } else {
                    open = Some(table);
                }
            } else {
                is_server |= line.trim() == SERVER;
                add_line(&mut workspaces, &line, last)?;
            }
        }
        log.leave_out(open);
        if log.tables.is_empty() {
            log.tables = of_server;
        } else if !of_server.is_empty() {
            let count = of_server.len();
            log.notes
                .push(format!("{count} tables of the server are left out"));
        }
        if log.tables.is_empty() {
            let message = format!("no whole table (`{TITLE}`) in it");
            return Err(InputError::new(last, message, LOG_HELP));
        }
        Ok(log)
    }

    fn leave_out(&mut self, open: Option<OpenTable>) {
        if let Some(table) = open {
            let line = table.line;
            self.notes
                .push(format!("the table at line {line} is cut and left out"));
        }
    }
}

/// A line without the codes that colour it.
fn plain(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, code)) = rest.split_once("\u{1b}[") {
        out.push_str(before);
        let end = code.find(|c: char| c.is_ascii_alphabetic());
        rest = end.map_or("", |end| &code[end + 1..]);
    }
    out.push_str(rest);
    out
}

/// A table whose last line has not come yet.
struct OpenTable {
    line: usize,
    rows: Vec<(String, Row)>,
    workspaces: Vec<WorkspaceFigures>,
}

impl OpenTable {
    fn new(line: usize, workspaces: Vec<WorkspaceFigures>) -> Self {
        Self {
            line,
            rows: Vec::new(),
            workspaces,
        }
    }

    /// Takes a line of the table; whether it was the last one.
    fn takes(
        &mut self,
        line: &str,
        number: usize,
        notes: &mut Vec<String>,
    ) -> Result<bool, InputError> {
        let line = line.trim();
        if line.len() > 3 && line.bytes().all(|b| b == b'-') {
            return Ok(!self.rows.is_empty());
        }
        let label = line.split_whitespace().next().unwrap_or_default();
        let names = PathStage::ROWS.map(PathStage::row);
        if label != END_TO_END && !names.contains(&label) {
            if !line.is_empty() {
                notes.push(format!(
                    "line {number} stands in a table and is no row of it"
                ));
            }
            return Ok(false);
        }
        if self.row(label).is_some() {
            let message = format!("`{label}` stands twice in the table of line {}", self.line);
            return Err(InputError::new(number, message, LOG_HELP));
        }
        self.rows.push((label.to_owned(), row(line, number)?));
        Ok(false)
    }

    fn row(&self, label: &str) -> Option<&Row> {
        let mut rows = self.rows.iter();
        rows.find(|(name, _)| name == label).map(|(_, row)| row)
    }

    fn closed(self) -> Result<StageTable, InputError> {
        let missing = || Reading::missing("the table has no such column");
        let find = |label: &str| {
            self.row(label).ok_or_else(|| {
                let message = format!("the table has no row `{label}`");
                InputError::new(self.line, message, LOG_HELP)
            })
        };
        let mut stages = Vec::new();
        for stage in PathStage::ROWS {
            let row = find(stage.row())?;
            let has_stall = !matches!(stage, PathStage::LinkTx | PathStage::LinkRx);
            stages.push(StageRow {
                throughput_mpps: row.cell(0).unwrap_or_else(missing),
                average_us: row.cell(1).unwrap_or_else(missing),
                stall_us: row.cell(2).filter(|_| has_stall).unwrap_or_else(missing),
            });
        }
        Ok(StageTable {
            line: self.line,
            throughput_mpps: find(END_TO_END)?.cell(0).unwrap_or_else(missing),
            pool_use: find(PathStage::ApplicationTx.row())?
                .in_brackets
                .clone()
                .unwrap_or_else(|| Reading::missing("the table does not say how full the pool is")),
            stages,
            workspaces: self.workspaces,
            counted: CountedFigures::not_in_log(),
        })
    }
}
