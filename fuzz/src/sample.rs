//! A result with something in each of its places, from which hostile ones are made.

use weir_jobfile::{CompileRequest, Dialect, JobSource};
use weir_schema::{Plan, RunResult, sample};

use crate::machine::{Memory, compile_in};

const JOBS: &str = "\
[global]
ioengine=io_uring
filename=/dev/weir0
size=1g
group_reporting
percentile_list=50:99.9
[mix]
rw=randrw
iodepth=16
bssplit=4k/60:64k/40
random_distribution=zoned:60/10:40/90
rate_iops=1000,500
rate_process=poisson
thinktime=1ms
numjobs=2
runtime=10s
[alone]
stonewall
rw=write
bs=1m
wait_for=mix
significant_figures=6
unit_base=1
kb_base=1000
verify=xxhash
latency_target=5ms
latency_window=10ms
";

/// The plan of the sample.
pub fn plan() -> Plan {
    let files = Memory([("sample.fio".to_owned(), JOBS.into())].into());
    let request = CompileRequest {
        dialect: Dialect::Fio,
        command: ["fio", "sample.fio"].map(str::to_owned).into(),
        sources: vec![JobSource::File("sample.fio".to_owned())],
        sets: Vec::new(),
        maps: Vec::new(),
        sections: Vec::new(),
        read_only: false,
    };
    match compile_in(&request, &files) {
        Ok(compiled) => compiled.plan,
        Err(errors) => panic!("{}", errors[0].render()),
    }
}

/// A result of that plan.
pub fn result() -> RunResult {
    sample::everything(plan())
}
