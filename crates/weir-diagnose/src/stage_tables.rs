//! Tables of the stages of a packet path, by which it is diagnosed.
//!
//! In: nothing. Out: plain data, the same of a log ([`StageTables::of_log`]) and of a stored result
//! (`recorded_path`). Not here: which table counts.

use weir_schema::PathStage;

use crate::counted::CountedFigures;
use crate::reading::Reading;

/// Figures of a stage.
#[derive(Clone, Debug, PartialEq)]
pub struct StageRow {
    /// Millions of packets a second.
    pub throughput_mpps: Reading,
    /// Microseconds a packet.
    pub average_us: Reading,
    /// Of these, microseconds that the stage waited.
    pub stall_us: Reading,
}

/// Figures of a workspace in an iteration.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkspaceFigures {
    /// Number of the workspace.
    pub id: u32,
    /// Packets that found the ring to the dispatcher full.
    pub app_tx_drops: Reading,
    /// Packets that found the ring to a worker full.
    pub disp_rx_drops: Reading,
    /// Millions of packets a second that its worker handled.
    pub handled_mpps: Reading,
}

/// Table of an iteration of one side.
#[derive(Clone, Debug, PartialEq)]
pub struct StageTable {
    /// Line of its head, from 1.
    pub line: usize,
    /// Millions of packets a second from end to end.
    pub throughput_mpps: Reading,
    /// Stages, in the order of [`PathStage::ROWS`].
    pub stages: Vec<StageRow>,
    /// Share of the buffers that is in use.
    pub pool_use: Reading,
    /// Figures of each workspace.
    pub workspaces: Vec<WorkspaceFigures>,
    /// Figures that no log prints.
    pub counted: CountedFigures,
}

impl StageTable {
    /// The row of a stage.
    pub fn stage(&self, stage: PathStage) -> &StageRow {
        &self.stages[stage.row_place()]
    }
}

/// Tables of one side of a path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StageTables {
    /// One for each iteration, at least one.
    pub tables: Vec<StageTable>,
    /// Oddities of the record.
    pub notes: Vec<String>,
}
