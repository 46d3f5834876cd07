//! Tests of the door's arguments, its help, and its lines for a result made by hand.

use weir_schema::{
    LatencyBandwidthResult, MessageTestResult, PairResult, Plan, RingResult, RunResult, Spawn,
    Workload, sample,
};
use weir_units::{Bytes, Nanos};

use super::*;
use crate::USAGE;
use crate::args::read_given;
use crate::house::Input;
use crate::machine::SampleMachine;
use crate::request::Action;

fn request(text: &str, launcher: Option<u32>) -> Result<Request, Refusal> {
    let args: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    super::request(&read_given(&DOOR, &args)?, &SampleMachine(launcher))
}

fn plan(text: &str, launcher: Option<u32>) -> Plan {
    match request(text, launcher).map(|request| request.action) {
        Ok(Action::Measure(Input::Made(plan))) => *plan,
        other => panic!("{text}: {other:?}"),
    }
}

fn refused(text: &str, launcher: Option<u32>) -> String {
    let refusal = request(text, launcher).unwrap_err();
    assert_eq!(refusal.code, USAGE, "{refusal}");
    refusal.message
}

#[test]
fn without_words_two_threads_measure_what_hpcc_measures() {
    let plan = plan("lat-bw", None);
    let ranks = plan.ranks.unwrap();
    assert_eq!((ranks.count, ranks.spawn), (2, Spawn::Threads));
    let job = &plan.groups[0].jobs[0];
    assert_eq!(job.engine.name, "shm");
    let Workload::LatencyBandwidth(work) = &job.workload else {
        panic!("{job:?}")
    };
    assert_eq!(
        (work.latency.bytes, work.bandwidth.bytes),
        (Bytes(8), Bytes(2_000_000))
    );
    assert_eq!(
        (work.latency.random_rings, work.bandwidth.random_rings),
        (30, 10)
    );
    let again = Plan::from_json(&plan.to_json().unwrap()).unwrap();
    assert_eq!(again, plan);
}

#[test]
fn words_become_settings_of_the_plan() {
    let plan = plan(
        "lat-bw --ranks 5 --spawn=procs --seed 9 --min-time 0.5 --max-time 60 --timeout 3s",
        None,
    );
    let ranks = plan.ranks.unwrap();
    assert_eq!((ranks.count, ranks.spawn), (5, Spawn::Processes));
    let Workload::LatencyBandwidth(work) = &plan.groups[0].jobs[0].workload else {
        panic!("{plan:?}")
    };
    assert_eq!(work.seed, 9);
    assert_eq!(work.min_time_ns, Some(Nanos::from_millis(500)));
    assert_eq!(work.max_time_ns, Some(Nanos::from_secs(60)));
    assert_eq!(work.timeout_ns, Nanos::from_secs(3));
}

#[test]
fn a_launcher_says_how_many_ranks_there_are() {
    let under = plan("lat-bw", Some(4));
    let ranks = under.ranks.unwrap();
    assert_eq!((ranks.count, ranks.spawn), (4, Spawn::Launcher));
    assert_eq!(under.groups[0].jobs[0].engine.name, "mpi");
    let memory = plan("lat-bw --comm-type SHM --ranks 4", Some(4));
    assert_eq!(memory.groups[0].jobs[0].engine.name, "shm");
    assert!(refused("lat-bw --ranks 3", Some(4)).contains("the launcher started 4"));
    assert!(refused("lat-bw --spawn procs", Some(4)).contains("has started the ranks"));
    assert!(refused("lat-bw", Some(1)).contains("needs at least 2 ranks"));
}

#[test]
fn ranks_have_a_cpu_each_unless_a_launcher_places_them() {
    let share = |text: &str, launcher| {
        let place = plan(text, launcher).groups[0].jobs[0].placement.clone();
        (place.share == weir_schema::ShareCpus::Split, place.cpus)
    };
    assert_eq!(share("lat-bw", None), (true, None));
    assert_eq!(share("lat-bw --pin none", None), (false, None));
    assert_eq!(share("lat-bw --pin 0,2", None), (true, Some(vec![0, 2])));
    assert_eq!(share("lat-bw", Some(2)), (false, None));
    assert_eq!(share("lat-bw --pin auto", Some(2)), (true, None));
}

#[test]
fn wrong_words_are_refused_with_what_is_right() {
    for (args, want) in [
        ("", "`weir net` needs a test (there is lat-bw)"),
        ("lat-wb", "did you mean `weir net lat-bw`?"),
        (
            "osu latency",
            "`weir net osu` is not in this build (there is lat-bw)",
        ),
        ("beff-full", "`weir net beff-full` is not in this build"),
        (
            "lat-bw --ranks 1",
            "--ranks 1: it takes a whole number from 2 to 1024",
        ),
        (
            "lat-bw --ranks many",
            "it takes a whole number from 2 to 1024",
        ),
        (
            "lat-bw --ranks 9999",
            "it takes a whole number from 2 to 1024",
        ),
        ("lat-bw --seed -", "--seed -: it takes a whole number"),
        (
            "lat-bw --min-time 0",
            "--min-time 0: it takes seconds above 0",
        ),
        (
            "lat-bw --timeout x",
            "--timeout x: it takes seconds above 0",
        ),
        (
            "lat-bw --format xml",
            "--format xml: it takes one of text, json",
        ),
        ("lat-bw --comm-type mpi", "mpirun -n 2 weir net lat-bw"),
        (
            "lat-bw --comm-type IEC",
            "`file` carries no messages between any two ranks (mpi, shm do)",
        ),
        ("lat-bw --comm-type shn", "did you mean `shm`?"),
        ("lat-bw --comm-type ofi", "it takes AUTO, mpi, shm"),
        ("lat-bw --pin x", "--pin x: it takes auto, none, or CPUs"),
        ("lat-bw --rank 2", "--ranks"),
        ("lat-bw osu", "stray word `osu`"),
    ] {
        let message = refused(args, None);
        assert!(message.contains(want), "{args}: {message}");
    }
}

fn measurement(times: [u64; 3]) -> MessageTestResult {
    let pair = |client: u32, time| PairResult {
        client,
        server: 1 - client,
        loop_length: 1,
        times_ns: vec![Nanos(time)],
    };
    let ring = RingResult {
        order: vec![0, 1],
        loop_length: 1,
        sendrecv_ns: vec![Nanos(times[2])],
        nonblocking_ns: vec![Nanos(times[2] + 1)],
    };
    MessageTestResult {
        bytes: Bytes(2_000_000),
        stride: Some(1),
        pairs: vec![pair(0, times[0]), pair(1, times[1])],
        natural: Some(ring.clone()),
        random: vec![ring],
    }
}

fn result() -> RunResult {
    let measured = LatencyBandwidthResult {
        transport: "shm".to_owned(),
        latency: measurement([200, 400, 300]),
        bandwidth: measurement([250_000, 500_000, 400_000]),
        ..LatencyBandwidthResult::default()
    };
    let mut result = sample::result(plan("lat-bw", None));
    result.groups[0].jobs[0] = sample::latency_bandwidth_result("lat-bw", measured);
    result
}

#[test]
fn the_lines_are_those_of_hpcc() {
    let text = output::stdout(&result(), NetFormat::Text).unwrap();
    assert_eq!(
        text,
        "\
Begin of LatencyBandwidth section.

Major Benchmark results:
------------------------

Max Ping Pong Latency:                 0.000200 msecs
Randomly Ordered Ring Latency:         0.000150 msecs
Min Ping Pong Bandwidth:            8000.000000 MB/s
Naturally Ordered Ring Bandwidth:  10000.000000 MB/s
Randomly  Ordered Ring Bandwidth:  10000.000000 MB/s

Detailed benchmark results:
Ping Pong:
Latency   min / avg / max:   0.000100 /   0.000150 /   0.000200 msecs
Bandwidth min / avg / max:   8000.000 /  12000.000 /  16000.000 MByte/s
Ring:
On naturally ordered ring: latency=      0.000150 msec, bandwidth=  10000.000000 MB/s
On randomly  ordered ring: latency=      0.000150 msec, bandwidth=  10000.000000 MB/s

MaxPingPongLatency_usec=0.2
RandomlyOrderedRingLatency_usec=0.15
MinPingPongBandwidth_GBytes=8
NaturallyOrderedRingBandwidth_GBytes=10
RandomlyOrderedRingBandwidth_GBytes=10
MinPingPongLatency_usec=0.1
AvgPingPongLatency_usec=0.15
MaxPingPongBandwidth_GBytes=16
AvgPingPongBandwidth_GBytes=12
NaturallyOrderedRingLatency_usec=0.15

End of LatencyBandwidth section.
"
    );
}

#[test]
fn json_has_the_summary_and_the_result() {
    let text = output::stdout(&result(), NetFormat::Json).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let close = |key: &str, wanted: f64| {
        let value = json[key].as_f64().unwrap();
        assert!((value / wanted - 1.0).abs() < 1e-12, "{key}: {value}");
    };
    close("MaxPingPongLatency_usec", 0.2);
    close("AvgPingPongBandwidth_GBytes", 12.0);
    let again: RunResult = serde_json::from_value(json["weir"].clone()).unwrap();
    assert_eq!(again, result());
}

#[test]
fn wrong_bytes_and_early_ends_are_named() {
    let mut wrong = result();
    assert_eq!((exit_code(&wrong), complaints(&wrong).as_str()), (0, ""));
    let mut done = |change: fn(&mut LatencyBandwidthResult)| {
        change(sample::latency_bandwidth_of(&mut wrong.groups[0].jobs[0]));
        (
            exit_code(&wrong),
            complaints(&wrong),
            output::stdout(&wrong, NetFormat::Text),
        )
    };
    let (code, text, _) = done(|d| d.wrong_bytes = 3);
    assert_eq!(code, 1);
    assert!(text.contains("error: 3 first or last bytes"), "{text}");
    let (_, text, out) = done(|d| d.bandwidth.natural = None);
    assert!(text.contains("ended before all was measured"), "{text}");
    assert_eq!(out, None);
}
