//! The text: what stands before the results, the blocks, what weir adds below them.

use weir_schema::Span;
use weir_units::Nanos;

use super::*;

#[test]
fn the_golden_example_is_printed_to_the_letter() {
    let (_, text) = replayed(GOLDEN, &[]);
    assert_eq!(
        text,
        "\
##################################################
Results for message size (0-EMPTY 1048578-BULK_PUT) (max_inflight_rpcs = 16):

Master Endpoint 1:0
-------------------
\tRPC Bandwidth (MB/sec): 2000.00
\tRPC Throughput (RPCs/sec): 2000
\tRPC Latencies (us):
\t\tMin    : 10
\t\t25th  %: 31
\t\tMedian : 52
\t\t75th  %: 73
\t\tMax    : 84
\t\tAverage: 47
\t\tStd Dev: 24.06
\tRPC Failures: 0

\tEndpoint results (rank:tag - Median Latency (us)):
\t\t0:2 - 31
\t\t1:2 - 42

"
    );
    let (_, mbits) = replayed(GOLDEN, &["-b"]);
    assert!(
        mbits.contains("\tRPC Bandwidth (Mbits/sec): 16777.25\n"),
        "{mbits}"
    );
    let (_, ns) = replayed(GOLDEN, &["--time-unit", "ns"]);
    assert!(
        ns.contains("\t\tMedian : 52500\n") && ns.contains("Latencies (ns)"),
        "{ns}"
    );
    let short = GOLDEN.replace("00,", ",");
    let (_, auto) = replayed(&short, &["--time-unit", "auto"]);
    assert!(auto.contains("\t\tMedian : 0.525\n"), "{auto}");
}

#[test]
fn rpcs_that_failed_or_were_not_sent_are_neither_work_nor_latency() {
    let some = GOLDEN
        .replace("84000,1,2,0", "84000,1,2,-1011")
        .replace("73500,0,2,0", ",,,unsent")
        .replace("63000,1,2,0", "9,1,2,-1006")
        .replace("42000,1,2,0", "9,1,2,-1011");
    let (result, text) = replayed(&some, &[]);
    for line in [
        "\tRPC Throughput (RPCs/sec): 1000\n",
        "\t\tMin    : 10\n",
        "\t\tMax    : 52\n",
        "\tRPC Failures: 3\n",
        "\t\t1:2 - 21\n\t\t\tFailures: 3/4\n\t\t\t2: -DER_TIMEDOUT (-1011)\n\t\t\t1: -DER_UNREACH (-1006)\n",
        "\t+ Not sent: 1\n",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert_eq!(code(&result), 1);
    assert_eq!(in_style_of(1, Some(&result), true), 13);
    assert_eq!(in_style_of(1, Some(&result), false), 1);
    // An endpoint of which nothing came back.
    let (_, none) = replayed(&GOLDEN.replace(",1,2,0", ",1,2,-1999"), &[]);
    assert!(
        none.contains("\t\t1:2 - NA\n\t\t\tFailures: 4/4\n\t\t\t4: -DER_UNKNOWN (-1999)\n"),
        "{none}"
    );
}

#[test]
fn a_run_of_which_nothing_came_back_has_the_short_form() {
    let lines: Vec<String> = (0_u64..)
        .zip(GOLDEN.lines())
        .map(|(at, line)| match at {
            3..=6 => line.replace(",2,0", ",2,-1006"),
            7.. => ",,,unsent".to_owned(),
            _ => line.to_owned(),
        })
        .collect();
    let (result, text) = replayed(&lines.join("\n"), &[]);
    let block = "\tRPC Bandwidth (MB/sec): 0.00\n\tRPC Throughput (RPCs/sec): 0\n\tAll RPCs for this \
                 message size failed\n\t+ Failures of 0:2: 2 -DER_UNREACH (-1006)\n\t+ Failures of 1:2: \
                 2 -DER_UNREACH (-1006)\n\t+ Not sent: 4\n";
    assert!(text.contains(block), "{text}");
    assert!(!text.contains("0:0"), "{text}");
    assert_eq!(code(&result), 1);
}

#[test]
fn further_lines_stand_below_the_block() {
    let (_, text) = replayed(GOLDEN, &["--percentiles", "99,90"]);
    let (_, plain) = replayed(GOLDEN, &[]);
    let below = text.strip_prefix(&plain).unwrap();
    assert_eq!(
        below,
        "\t+ Closed loop: an RPC is sent when another has ended, and its latency counts from then\n\
         \t+ 90th  %: 84 us\n\t+ 99th  %: 84 us\n\n"
    );
    let (_, text) = replayed(GOLDEN, &["--percentiles", "50,91,99.99"]);
    // The same as the median of the block.
    let lines = "\t+ 50th    %: 52 us\n\t+ 91st    %: 84 us\n\t+ 99.99th %: 84 us\n\n";
    assert!(text.ends_with(lines), "{text}");
}

#[test]
fn several_masters_are_added_up_where_it_is_known_when_they_were_at_work() {
    let two = format!(
        "{GOLDEN}{}",
        GOLDEN
            .lines()
            .skip(1)
            .collect::<Vec<_>>()
            .join("\n")
            .replace("master=1:0", "master=1:1")
    );
    let (_, text) = replayed(&two, &[]);
    assert_eq!(text.matches("Results for").count(), 1);
    let unknown = "Aggregate of 2 masters\n\t+ Samples do not say when each was at work";
    assert!(text.contains(unknown), "{text}");
    let mut result = samples::read(&two).unwrap().0;
    let job = &mut result.groups[0].jobs[0];
    let weir_schema::Outcome::Rpc(done) = &mut job.outcome else {
        panic!("{job:?}")
    };
    for master in &mut done.masters {
        master.span = Some(Span {
            start_ns: Nanos::ZERO,
            end_ns: master.duration_ns,
        });
    }
    let mut one_failed = result.clone();
    let text = output::text(&result, &options(&[]));
    let sum = "Aggregate of 2 masters\n\t+ RPC Bandwidth (MB/sec): 4000.01\n\t+ RPC Throughput \
               (RPCs/sec): 4000\n";
    assert!(text.contains(sum), "{text}");
    let weir_schema::Outcome::Rpc(done) = &mut one_failed.groups[0].jobs[0].outcome else {
        panic!("{one_failed:?}")
    };
    done.masters[1].failure = Some(weir_schema::Failure::new("lost", "gone"));
    let text = output::text(&one_failed, &options(&[]));
    let head = "Aggregate of 1 of 2 masters: 1 failed\n";
    assert!(text.contains(head), "{text}");
}

#[test]
fn a_failed_master_is_named() {
    let mut master = RpcMaster::new(RpcEndpoint { rank: 3, tag: 1 }, "tcp");
    master.failure = Some(weir_schema::Failure::new("missing", "no such rank"));
    let job = JobResult::of_masters("a", vec![master], Bytes(0));
    let mut result = RunResult::of(run_of(&["-u", "-s", "0"]).plan);
    result.groups[0].jobs = vec![job];
    let options = options(&[]);
    result.ended_by = Some(weir_schema::EndedBy { signal: 2 });
    let text = output::text(&result, &options);
    let ending = "+ Interrupted by signal 2: not all was measured\n";
    assert!(text.ends_with(ending), "{text}");
    assert_eq!(code(&result), 130);
    result.ended_by = None;
    assert!(
        text.contains("Master Endpoint 3:1 FAILED: no such rank\n"),
        "{text}"
    );
    assert_eq!(code(&result), 3);
    assert_eq!(in_style_of(3, Some(&result), true), 18);
}

#[test]
fn what_stands_before_the_results_is_in_the_order_of_the_reference() {
    assert_eq!(
        head_of(&["-s", "0 b1048578", "-r", "1000"]),
        "\
Warning: running without daos_agent connection (-u option); Using attachment file \
/g/daos_server.attach_info_tmp instead
Warning: no --group-name specified; using 'daos_server'
Warning: No --master-endpoint specified; using this command line application as the master endpoint
Warning: No --endpoint specified; using 0:0 default
Self Test Parameters:
  Group name to test against: daos_server
  # endpoints:                1
  Message sizes:              [(0-EMPTY 1048578-BULK_PUT)]
  Buffer addresses end with:  <Default>
  Repetitions per size:       1000
  Max in-flight RPCs:          16

"
    );
    let all = head_of(&[
        "-u",
        "-g",
        "daos_server",
        "-m",
        "0:0",
        "-e",
        "1-3,2:1-0",
        "-a",
        "3",
        "-r100",
        "-s",
        "0,1",
    ]);
    assert_eq!(
        all,
        "\
Adding endpoints:
  ranks: 0 (# ranks = 1)
  tags: 0 (# tags = 1)
Adding endpoints:
  ranks: 1-3,2 (# ranks = 4)
  tags: 0-1 (# tags = 2)
Self Test Parameters:
  Group name to test against: daos_server
  # endpoints:                8
  Message sizes:              [(0-EMPTY 0-EMPTY), (1-IOV 1-IOV)]
  Buffer addresses end with:  3
  Repetitions per size:       800
  Max in-flight RPCs:          16

"
    );
}

#[test]
fn the_order_that_is_drawn_and_an_odd_alignment_are_told() {
    let shuffled = head_of(&["-u", "-q", "-e", "0-4:0", "--seed", "3"]);
    assert!(
        shuffled.contains("Randomizing order of endpoints\nNew order:\n"),
        "{shuffled}"
    );
    let order = shuffled.lines().find(|line| line.ends_with(":0 ")).unwrap();
    let mut order: Vec<&str> = order.split_whitespace().collect();
    order.sort_unstable();
    assert_eq!(order, ["0:0", "1:0", "2:0", "3:0", "4:0"]);
    let odd = head_of(&["-u", "-a", "256"]);
    assert!(
        odd.starts_with("Warning: Invalid align value 256; Expected value in range [0:255]\n"),
        "{odd}"
    );
    assert!(
        odd.contains("ends with:  <Default>") || odd.contains("end with:  <Default>"),
        "{odd}"
    );
}

#[test]
fn what_limits_a_master_is_said_below_its_block() {
    let (mut result, plain) = replayed(GOLDEN, &[]);
    let options = options(&[]);
    let mut with = |change: &dyn Fn(&mut RpcMaster)| {
        let Outcome::Rpc(outcome) = &mut result.groups[0].jobs[0].outcome else {
            panic!("no RPCs");
        };
        let before = outcome.masters[0].clone();
        change(&mut outcome.masters[0]);
        let text = output::text(&result, &options);
        let Outcome::Rpc(outcome) = &mut result.groups[0].jobs[0].outcome else {
            panic!("no RPCs");
        };
        outcome.masters[0] = before;
        text
    };
    let limited = with(&|master| {
        (master.credits, master.effective_in_flight) = (Some(4), Some(3.9));
        master.credit_wait_ns = Nanos(7_654_321);
    });
    let lines = "\t+ A server allows no more RPCs at once than 4\n\t+ Effective in-flight: 3.90\n\
                 \t+ Waits for credits: together 7654 us\n\n";
    assert_eq!(limited, format!("{plain}{lines}"));
    let bound = with(&|master| (master.busy, master.client_bound) = (Some(0.972), true));
    let line =
        "\t+ Client-bound: its threads worked 97 % of the time (more of them: --threads)\n\n";
    assert_eq!(bound, format!("{plain}{line}"));
    assert_eq!(with(&|master| master.busy = Some(0.5)), plain);
}

#[test]
fn endpoints_without_a_reply_have_no_median() {
    let mut master = RpcMaster::new(RpcEndpoint { rank: 0, tag: 0 }, "tcp");
    master
        .endpoints
        .push(RpcEndpointResult::new(RpcEndpoint { rank: 0, tag: 0 }));
    master.conclude();
    assert_eq!(
        (master.endpoints[0].median_ns, master.figures),
        (None, None)
    );
}

#[test]
fn where_nothing_was_sent_the_block_says_what_happened_instead() {
    let mut result = RunResult::of(run_of(&["-u", "-s", "0", "-r", "10"]).plan);
    let mut master = RpcMaster::new(RpcEndpoint { rank: 1, tag: 0 }, "tcp");
    master.requested = 10;
    master.conclude();
    let options = options(&[]);
    let mut with = |state, failure| {
        let mut job = JobResult::of_masters("a", vec![master.clone()], Bytes(0));
        (job.state, job.failure) = (state, failure);
        result.groups[0].jobs = vec![job];
        output::text(&result, &options)
    };
    let refused = weir_schema::Failure::new("authentication", "the token is another");
    let text = with(weir_schema::State::Failed, Some(refused));
    let line = "\tNo RPC for this message size was sent: the token is another\n\t+ Not sent: 10\n";
    assert!(text.contains(line), "{text}");
    let text = with(weir_schema::State::Stopped, None);
    assert!(
        text.contains(" was sent: the run was interrupted before\n"),
        "{text}"
    );
    assert!(!text.contains("failed"), "{text}");
}

#[test]
fn an_open_loop_and_threads_are_said_in_further_lines() {
    let (mut result, plain) = replayed(GOLDEN, &[]);
    assert!(!plain.contains("loop"), "{plain}");
    let Outcome::Rpc(outcome) = &mut result.groups[0].jobs[0].outcome else {
        panic!("no RPCs");
    };
    outcome.masters[0].interface = Some(weir_schema::RpcInterface {
        name: "lo".to_owned(),
        client_cpus: "0-1,4".to_owned(),
        ..weir_schema::RpcInterface::default()
    });
    let options = options(&["--verbose"]);
    let text = output::text(&result, &options);
    assert!(text.contains("\t+ Closed loop: "), "{text}");
    let line = "\t+ Threads: 1, not pinned: they may move among 3 CPUs (taskset limits them)\n";
    assert!(text.contains(line), "{text}");
    result.plan.groups[0].jobs[0].clones = 3;
    let run = run_of(&["-u", "-s", "0", "--rate", "5"]);
    let (paced, Workload::Rpc(work)) = (
        works(&run).remove(0),
        &mut result.plan.groups[0].jobs[0].workload,
    ) else {
        panic!("no RPCs");
    };
    work.load.pacing = paced.load.pacing;
    let text = output::text(&result, &options);
    assert!(text.contains("\t+ Open loop: "), "{text}");
    assert!(
        text.contains("\t+ Threads: 3, each pinned to a CPU\n"),
        "{text}"
    );
}
