//! The two pieces of plain data that walk through the house: a [`Plan`] says what shall be done,
//! a [`RunResult`] says what was. Doors write plans, runners turn a plan into a result, renderers
//! read results and nothing else.
//!
//! Units stand in the names (`_ns`, `_bytes`, `_per_s`). What could not be measured is absent,
//! never zero. The JSON Schema of both is generated from these types (`schemas/`).
#![forbid(unsafe_code)]

mod announcement;
mod block_workload;
mod bursts;
pub mod catalogue;
mod confidence;
mod constructors;
mod device_request;
pub mod errno;
mod error_code;
mod exchange;
mod exchange_figures;
mod exchange_model;
mod facts;
mod group_confidence;
pub mod json;
mod kind;
mod latency_bandwidth;
mod latency_bandwidth_figures;
mod latency_over_time;
mod load;
mod load_of_loop;
mod log;
mod memory;
mod merge;
mod metrics;
mod object_mix;
mod object_store;
mod object_store_result;
mod object_test;
mod outcome;
mod packet_path;
mod packet_path_result;
mod pair_matrix;
mod path_handlers;
mod phase;
mod plan;
mod prune;
mod rates;
mod recording;
mod replay;
mod result;
mod rpc;
mod rpc_endpoints;
mod rpc_error;
mod rpc_result;
mod rpc_samples;
mod rpc_serve;
mod rpc_together;
mod runs;
#[cfg(any(test, feature = "sample"))]
pub mod sample;
mod steady;
mod store_class;
mod target;
pub mod thresholds;
mod verify;
mod verify_state;
mod warning;
mod workload;
mod world;

pub use announcement::Announcement;
pub use block_workload::{
    Access, BlockSize, BlockSizes, BlockWorkload, Content, Distribution, Flush, Generator, HotZone,
    Mix, Part, Passes, RangeFlush, Region, SectorData, SequencerStep, Size, SplitEntry, Zones,
};
pub use bursts::Bursts;
pub use confidence::KindBatches;
pub use device_request::{DeviceRequest, NoSuchDevice};
pub use error_code::ErrorCode;
pub use exchange::{
    ExchangeResult, ExchangeWorkload, FaultKind, InjectedFault, LARGEST_EXPONENT, MessageSize,
    Method, Model, Pairing, RankTimes, SizeResult, Transfer, Validation,
};
pub use exchange_figures::{
    SizeFigures, effective_bytes_per_s, exchange_figures, exchange_warnings, size_figures,
    transfer_figures,
};
pub use exchange_model::{Fit, Prediction};
pub use facts::{
    ClockFacts, ClockSource, DeviceFacts, DiskCounters, ForeignSource, HostFacts, Instrument,
    ProgramFacts, QueueFacts,
};
pub use kind::{BLOCK_KINDS, ByKind, Kind, KindInfo, KindName, MOST_KINDS, Moves, PerKind};
pub use latency_bandwidth::{
    LatencyBandwidthResult, LatencyBandwidthWorkload, Loop, MessageTest, MessageTestResult,
    PairResult, RingResult,
};
pub use latency_bandwidth_figures::{
    LatencyBandwidthFigures, PairRange, latency_bandwidth_figures, latency_bandwidth_warnings,
};
pub use latency_over_time::{LatencyInterval, LatencyOverTime};
#[cfg(feature = "json-schema")]
pub use load::json_schemas;
pub use load::{PLAN_SCHEMA, RESULT_SCHEMA, RUNS_SCHEMA, SchemaError};
pub use load_of_loop::{
    Bounds, Depth, ErrorPolicy, Flow, Load, MinimumRate, Pacing, Schedule, Thinktime,
};
pub use log::{Log, LogFormat, LogMeasure, LogOperation, LogRecord, Logged, TotalLog};
pub use memory::{Memory, MemoryKind};
pub use merge::MergeError;
pub use metrics::{exchange_metrics, latency_bandwidth_metrics};
pub use object_mix::{KeyDistribution, MixShares, ObjectMix};
pub use object_store::{
    LARGEST_OBJECT_VALUE, OBJECT_KINDS, ObjectDurability, ObjectEngine, ObjectLayout,
    ObjectPayload, ObjectPrefault, ObjectValue, ObjectWorkload,
};
pub use object_store_result::{
    ObjectFailure, ObjectFigures, ObjectKey, ObjectKeys, ObjectOutcome, ObjectRank, ObjectRun,
};
pub use object_test::{ObjectAction, ObjectTest};
pub use outcome::{Better, Interval, LoopOutcome, Metric, Outcome};
pub use packet_path::{
    IdlePolicy, MESSAGE_HEADER_BYTES, MOST_PATH_THREADS, PACKET_HEADER_BYTES, PACKET_PATH_KINDS,
    PacketPathWorkload, PacketStream, PathCallers, PathGroup, PathStage, PoolPages, StageBatches,
};
pub use packet_path_result::{
    PacketPathOutcome, PathIteration, PathSide, PathThread, RequestSizeCount, StageFigures,
};
pub use pair_matrix::{PairFigure, PairMatrix, pair_matrices};
pub use path_handlers::{HandlerFacts, MessageHandler, PacketHandler};
pub use phase::{PartSpan, PhaseResult, RankSpan};
pub use plan::{
    EngineChoice, ExitAll, Extensions, Group, IoPriority, Job, JobEnd, JobReport, MemoryNodes,
    Placement, Plan, Setting, ShareCpus, ShellCommand, Start, StartDelay, Voice, Word,
};
pub use rates::{read_share, total_rate};
pub use recording::{Recording, Timing, Trace};
pub use replay::Replay;
pub use result::{
    ClassResult, Confidence, CpuUse, DepthUse, EndedBy, Failure, Finding, GroupResult,
    HistoryPlace, JobResult, KindResult, LatencyPercentile, Rates, RunResult, SampleStatistics,
    Span, Stage, StageHistogram, State, WorkerResult,
};
pub use rpc::{
    BulkPath, RPC_KINDS, RpcAddresses, RpcPayload, RpcPayloadKind, RpcPoll, RpcSpread, RpcVerify,
    RpcWarmup, RpcWorkload,
};
pub use rpc_endpoints::{
    EndpointError, EndpointSet, MOST_ENDPOINTS, Members, RankTags, RpcEndpoint, count_endpoints,
    expand_endpoints, expand_masters, shuffle_endpoints,
};
pub use rpc_error::{UNKNOWN_RPC_ERROR, rpc_error_code, rpc_error_name};
pub use rpc_result::{
    LatencyFigures, RPC_HISTOGRAM_BITS, RpcEndpointResult, RpcFirst, RpcInterface, RpcMaster,
    RpcOutcome, RpcServerUse, RpcTrouble, rpc_histogram, value_at,
};
pub use rpc_samples::RpcSample;
pub use rpc_serve::{RpcServe, RpcServiceTime, RpcTable};
pub use rpc_together::{RpcProgress, RpcTogether};
pub use runs::{
    ComparisonRule, FigureBetweenRuns, FigureThreshold, JobBetweenRuns, RunSeries, Runs,
};
pub use steady::{
    DepthFound, LatencyTarget, Steadiness, Steady, SteadyMeasure, SteadyRate, SteadySample,
};
pub use store_class::ObjectClass;
pub use target::{
    Advice, CreatePolicy, FileNames, FileOrder, FileService, Lifetime, OpenMode, Preallocate,
    SizedFile, Targets,
};
pub use verify::{
    BadByte, Damage, FailedCheck, Mismatch, RunIdentity, SaveState, Verify, VerifyMethod,
    VerifyPattern,
};
pub use verify_state::{StateError, VerifyState};
pub use warning::{Gravity, WARNINGS, Warning, WarningKind};
pub use workload::{UnknownWorkload, Workload, WorkloadFacts};
pub use world::{MpiFacts, RankFacts, RankSummary, Ranks, Spawn, TargetsPerRank};
