//! Running of a plan: the engine trait, the one hot loop, generators, pacing, phases, recording.
//!
//! In: a [`weir_schema::Plan`] and the runners that carry its workloads out. Out: a
//! [`weir_schema::RunResult`]. Not here: engines (`weir-block` and its siblings), words of any
//! dialect, printing.
#![deny(unsafe_code)]

mod call;
mod clock;
mod cpu_use;
mod engine;
pub mod execute;
mod findings;
mod flow;
mod gate;
pub mod generate;
mod live;
mod live_target;
mod log;
mod lone_loop;
mod loop_plan;
pub mod null;
mod pacer;
pub mod runner;
mod service_channel;
pub mod sim;
mod source;
mod stage_recorder;
mod trace;
mod worker;
mod worker_context;

pub use call::{Call, Caller, Calls};
pub use clock::RunClock;
pub use engine::{Completed, Engine, OpTarget, Operation, Submit, Wait};
pub use execute::{InlineWork, Phase, PhaseEnd, SeriesEnd};
pub use findings::{Findings, MOST_KEPT};
pub use live::{Counter, KINDS, LiveKind, Measured, StageRecorder, WorkerLive};
pub use live_target::LiveTarget;
pub use log::inflate_log;
pub use lone_loop::LoneLoop;
pub use loop_plan::{measured, rates};
pub use pacer::{Pacer, PacerPlan, Pause, RecordedStarts};
pub use runner::{
    Amount, JobContext, OperationWriter, Prepared, PreparedJob, RankControl, RankJob, RankOutcome,
    RankPart, RankPosition, RankProgress, Runner, failure,
};
pub use service_channel::{BulkMemory, BulkPart, BulkUse, ServiceChannel};
pub use source::Source;
pub use trace::Traced;
pub use worker::{LoopContext, LoopPlan, LoopStop, OpFailure, OpFault, drive};
pub use worker_context::WorkerContext;
