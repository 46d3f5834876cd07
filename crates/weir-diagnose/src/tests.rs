//! From recorded texts to diagnoses; every rule holds where it should and nowhere else.

use proptest::prelude::*;
use weir_schema::PathStage;

use crate::counted::CountedFigures;
use crate::diagnosis::judged;
use crate::evidence::PathEvidence;
use crate::inputs::{HostReport, PcieCounts, PerfCounts, node_bandwidths, node_traffic};
use crate::reading::Reading;
use crate::reference::PathClass;
use crate::{Diagnosis, PathContext, RuleState, StageTables, text};

const TABLE: &str = include_str!("../../../tests/results/diagnose/seed-table.txt");
const WORKSPACES: &str = include_str!("../../../tests/results/diagnose/seed-workspaces.txt");
const REPORT: &str = include_str!("../../../tests/results/diagnose/seed-report.rpt");

fn seed_log(tables: usize) -> String {
    format!("{WORKSPACES}{TABLE}").repeat(tables)
}

fn context() -> PathContext {
    PathContext {
        iterations: Some(30),
        report: Some(HostReport::read(REPORT).unwrap()),
        socket: Some(1),
        ..PathContext::default()
    }
}

fn tables(log: &str) -> StageTables {
    StageTables::of_log(log).unwrap()
}

fn diagnosed(log: &str) -> Diagnosis {
    Diagnosis::of(&tables(log), &context())
}

fn state<'a>(diagnosis: &'a Diagnosis, id: &str) -> &'a RuleState {
    &diagnosis.rules.iter().find(|r| r.id == id).unwrap().state
}

/// The figures of the reference's example.
const EXAMPLE: &str = "[INFO] Diagnosing the contention point for local......\n\
    ==========Performance Statistics==========\n\
    [DEBUG] End-to-end Throughput: 20.188\n\
    [DEBUG] Completion time: [0.0, 0.021, 0.015, 0.027, 0.008, 0]\n\
    [DEBUG] Stall time: [0.0, 0.0, 0.008, 0.014]\n\
    [DEBUG] IO Read Miss Rate: 0.0\n\
    [DEBUG] IO Write Miss Rate: 0.89\n\
    [DEBUG] LLC Read Miss Rate: 0.11\n\
    [DEBUG] LLC Write Miss Rate: 0.1\n\
    [INFO] The most critical pipe phase is: disp_rx\n\
    [INFO] The completion time < stall time. Contention point is C1.\n";

#[test]
fn the_example_of_the_reference_gives_its_answer_and_what_could_not_be_asked() {
    for log in [
        seed_log(30),
        seed_log(30).replace("Perf Stat", "DPerf Stat"),
    ] {
        let diagnosis = diagnosed(&log);
        assert_eq!((diagnosis.table, diagnosis.tables), (15, 30));
        let printed = text(&diagnosis, true);
        let rest = printed
            .strip_prefix(EXAMPLE)
            .unwrap_or_else(|| panic!("{printed}"));
        let lines: Vec<&str> = rest.lines().collect();
        assert_eq!(
            lines[0],
            "[WEIR] verdict: C1, cause not found (not evaluated: D4, D7, D8, D9, D10)"
        );
        assert_eq!(
            lines[1],
            "[WEIR] also D14 DDIO thrash: IO write misses 0.89 ≥ 0.3 → rings half as big, fewer \
             queues, smaller batches (medium)"
        );
        let burst = "[WEIR] D9 RX poll-bound: not evaluated (no burst sizes in the log)";
        assert!(lines.contains(&burst), "{rest}");
        assert!(!rest.contains("D11"), "{rest}");
        assert_eq!(diagnosis.verdict, None);
    }
}

#[test]
fn half_of_the_iterations_is_the_table_that_counts() {
    let of = |count: usize, iterations: Option<u32>, table: Option<u32>| {
        let diagnosis = Diagnosis::of(
            &tables(&seed_log(count)),
            &PathContext {
                iterations,
                table,
                ..context()
            },
        );
        (diagnosis.table, diagnosis.notes.len())
    };
    assert_eq!(of(30, Some(29), None), (14, 0));
    assert_eq!(of(1, Some(1), None), (1, 0));
    assert_eq!(of(3, Some(30), None), (2, 1));
    assert_eq!(of(4, None, None), (2, 0));
    assert_eq!(of(4, Some(2), Some(4)), (4, 0));
    assert_eq!(of(4, None, Some(5)), (2, 1));
}

#[test]
fn a_socket_has_its_own_rates_and_one_without_has_none() {
    let rate = |socket| {
        Diagnosis::of(
            &tables(TABLE),
            &PathContext {
                socket,
                ..context()
            },
        )
        .io_write_miss
    };
    assert_eq!(rate(Some(1)).value, Some(0.89));
    assert_eq!(rate(Some(0)).reason(), "the device wrote nothing");
    assert_eq!(
        rate(Some(2)).reason(),
        "the report has sockets 0, 1, none 2"
    );
    assert_eq!(rate(None).reason(), "nothing says which socket counts");
}

#[test]
fn a_counter_that_there_is_not_is_unavailable_and_never_zero() {
    let cut = REPORT
        .replace("LLC-loads: 812345678", "LLC-loads: <not")
        .replace("LLC-load-misses-rate: 0.11", "LLC-load-misses-rate: ")
        .replace("0.10", "unavailable (EACCES: perf_event_paranoid=4)");
    let report = HostReport::read(&cut).unwrap();
    assert_eq!(
        report.llc_load_miss.reason(),
        "LLC-loads: `<not` was recorded"
    );
    assert_eq!(
        report.llc_store_miss.reason(),
        "EACCES: perf_event_paranoid=4"
    );
    let diagnosis = Diagnosis::of(
        &tables(TABLE),
        &PathContext {
            report: Some(report),
            ..context()
        },
    );
    let printed = text(&diagnosis, true);
    assert!(printed.contains("LLC Read Miss Rate: unavailable (LLC-loads: `<not` was recorded)\n"));
}

fn with_stage(row: &str, cells: &str) -> String {
    let lines = TABLE.lines().map(|line| {
        if line.starts_with(row) {
            format!("{row:20}{cells}\n")
        } else {
            format!("{line}\n")
        }
    });
    lines.collect()
}

#[test]
fn the_sending_of_the_device_may_be_the_critical_stage() {
    let diagnosis = diagnosed(&with_stage("nic_tx", "20.046 0.050"));
    assert_eq!(diagnosis.critical.as_deref(), Some("nic_tx"));
    assert_eq!(diagnosis.class, Some(PathClass::Working));
    assert!(
        diagnosis.notes[1].contains("nic_tx waits"),
        "{:?}",
        diagnosis.notes
    );
}

#[test]
fn a_stage_that_waits_exactly_half_of_its_time_works() {
    let diagnosis = diagnosed(&with_stage("disp_rx", "20.046 0.028 0.014"));
    assert_eq!(diagnosis.class, Some(PathClass::Working));
    let printed = text(&diagnosis, false);
    assert!(printed.contains("The completion time > stall time. Contention point is C2 or C4.\n"));
    // Writes that miss the cache explain a stage that works.
    assert_eq!(diagnosis.verdict.as_deref(), Some("D14"));
    assert!(
        printed.contains("[WEIR] verdict: C2 or C4, D14 DDIO thrash\n"),
        "{printed}"
    );
}

#[test]
fn a_table_that_is_cut_is_left_out_and_a_log_without_any_is_refused() {
    let log = seed_log(2) + &TABLE[..TABLE.len() / 2];
    let read = StageTables::of_log(&log).unwrap();
    assert_eq!(read.tables.len(), 2);
    assert!(
        read.notes[0].ends_with("is cut and left out"),
        "{:?}",
        read.notes
    );
    let none = StageTables::of_log("Total launched 4 threads!\n").unwrap_err();
    assert_eq!(
        (none.line, none.message.contains("no whole table")),
        (1, true)
    );
    let odd = StageTables::of_log(&with_stage("disp_tx", "20.046 many")).unwrap_err();
    assert_eq!(
        (odd.line, odd.message.as_str()),
        (7, "disp_tx: `many` is no number")
    );
    let without = TABLE.replace("disp_tx", "dispatc");
    let missing = StageTables::of_log(&without).unwrap_err();
    assert_eq!(missing.message, "the table has no row `disp_tx`");
}

#[test]
fn a_row_without_a_figure_says_why_and_colours_are_no_part_of_it() {
    let log = with_stage("nic_rx", "38.854 n/a (the driver cannot count)");
    let log = log.replace("app_rx ", "\u{1b}[33mapp_rx\u{1b}[0m ");
    let table = &StageTables::of_log(&log).unwrap().tables[0];
    let nic = table.stage(PathStage::LinkRx);
    assert_eq!(nic.average_us.reason(), "the driver cannot count");
    assert_eq!(
        table.stage(PathStage::ApplicationRx).average_us.value,
        Some(0.021)
    );
    assert_eq!(table.pool_use.value, Some(0.0));
}

/// Output of perf, with an event that it counted half of the time and one that it could not count.
const PERF: &str = " Performance counter stats for process id '7':\n\n\
    \x20    1,000,000      LLC-loads            #    1.2 M/sec      (49.90%)\n\
    \x20      250,000      LLC-load-misses:u    #   25.00% of all LL-cache accesses\n\
    \x20  <not supported>      LLC-stores\n\
    \x20        12.50 msec task-clock\n\
    \x20    3,000,000      cycles\n     6,000,000      instructions\n\n\
    \x20    3.000123 seconds time elapsed\n";

#[test]
fn perf_counts_are_read_as_text_and_with_separators() {
    let counts = PerfCounts::read(PERF).unwrap();
    assert_eq!(
        counts.ratio("LLC-load-misses", "LLC-loads").value,
        Some(0.25)
    );
    assert_eq!(counts.ratio("instructions", "cycles").value, Some(2.0));
    let stores = counts.ratio("LLC-store-misses", "LLC-stores");
    assert_eq!(stores.reason(), "perf did not count LLC-store-misses");
    assert_eq!(
        counts.count("LLC-stores").reason(),
        "LLC-stores: perf says `not supported`"
    );
    assert_eq!(counts.count("task-clock").value, Some(12.5));
    assert_eq!(
        counts.notes,
        ["LLC-loads was counted during 49.9 % of the time and scaled"]
    );
    let separated =
        PerfCounts::read("100,,LLC-loads,300,100.00,,\n7,,LLC-load-misses,300,100.00,,\n").unwrap();
    assert_eq!(
        separated.ratio("LLC-load-misses", "LLC-loads").value,
        Some(0.07)
    );
}

#[test]
fn pcm_counts_are_summed_and_bandwidths_are_means() {
    let pcie = "Skt,PCIRdCur,ItoM,PCIe Rd (B),PCIe Wr (B)\n\
                0,100,200,6400,12800(Total)\n0,10,50,640,3200(Miss)\n0,90,150,5760,9600(Hit)\n\
                0,100,200,6400,12800(Total)\n0,30,30,640,3200(Miss)\n0,70,170,5760,9600(Hit)\n";
    let rates = PcieCounts::read(pcie).unwrap().rates(0);
    assert_eq!(
        (rates.read_miss.value, rates.write_miss.value),
        (Some(0.2), Some(0.2))
    );
    let wrong = PcieCounts::read("Skt,PCIRdCur,ItoM\n0,1,x(Total)\n").unwrap_err();
    assert_eq!(
        (wrong.line, wrong.message.as_str()),
        (2, "column 3: `x` is no number")
    );

    let memory = "|-- NODE 0 Mem Read (MB/s) :   160.87 --||-- NODE 1 Mem Read (MB/s) :  98.97 --|\n\
                  |-- NODE 0 Memory (MB/s):    200.00 --||-- NODE 1 Memory (MB/s):   180.00 --|\n\
                  |-- NODE 0 Memory (MB/s):    400.00 --||-- NODE 1 Memory (MB/s):   180.00 --|\n";
    let nodes = node_bandwidths(memory).unwrap();
    assert_eq!(
        nodes.into_iter().collect::<Vec<_>>(),
        [(0, 300.0), (1, 180.0)]
    );
}

/// Two sockets in two intervals; the total of the system belongs to no node.
const MEMORY_CSV: &str = "Date,Time,SKT0,SKT0,SKT0,SKT1,SKT1,SKT1,System\n\
    ,,Mem Read (MB/s),Mem Write (MB/s), Memory (MB/s),Mem Read (MB/s),Mem Write (MB/s), Memory (MB/s),Memory\n\
    2026-01-01,10:00:00,10.5,2,12.5,1,2,3,15.5\n\
    2026-01-01,10:00:01,20.5,4,24.5,1,2,3,27.5\n";

#[test]
fn bandwidths_are_told_apart_in_both_forms_of_pcm_memory() {
    let nodes = node_traffic(MEMORY_CSV).unwrap();
    let parts = |node: u32| {
        let all = nodes[&node];
        (all.total, all.read, all.written)
    };
    assert_eq!(nodes.len(), 2);
    assert_eq!(parts(0), (18.5, Some(15.5), Some(3.0)));
    assert_eq!(parts(1), (3.0, Some(1.0), Some(2.0)));
    let totals = node_bandwidths(MEMORY_CSV).unwrap();
    assert_eq!(totals.get(&0), Some(&18.5));
    let text = "|-- NODE 0 Mem Read (MB/s) :   160.87 --|\n|-- NODE 0 Mem Write(MB/s) :    40.00 --|\n\
                |-- NODE 0 Memory (MB/s):    200.87 --|\n";
    let node = node_traffic(text).unwrap()[&0];
    assert_eq!((node.read, node.written), (Some(160.87), Some(40.0)));
    let odd = node_traffic(&MEMORY_CSV.replace("24.5", "many")).unwrap_err();
    assert_eq!((odd.line, odd.message.as_str()), (4, "`many` is no number"));
    let cut = node_traffic(&MEMORY_CSV[..MEMORY_CSV.len() - 20]).unwrap_err();
    assert_eq!(cut.line, 4);
}

#[test]
fn loads_and_stores_together_serve_where_loads_were_not_counted() {
    let cut = REPORT.replace("LLC-load-misses-rate: 0.11", "LLC-load-misses-rate: n/a");
    let rate = |text: &str| HostReport::read(text).unwrap().llc_load_miss.value;
    assert_eq!(rate(&cut), None);
    let more = cut + "cache-misses-rate: 0.30\nsource llc: perf cache-references, cache-misses\n";
    assert_eq!(rate(&more), Some(0.3));
    let both = format!("{REPORT}cache-misses-rate: 0.30\n");
    assert_eq!(rate(&both), Some(0.11));
}

#[test]
fn counters_of_perf_and_pcm_go_before_the_report() {
    let diagnosis = Diagnosis::of(
        &tables(&with_stage("disp_rx", "20.046 0.028 0.014")),
        &PathContext {
            perf: Some(PerfCounts::read(PERF).unwrap()),
            memory: Some([(1, 8500.0)].into()),
            triad_mb_per_s: Some(10_000.0),
            link_bits_per_s: Some(25e9),
            frame_bytes: Some(128),
            ..context()
        },
    );
    assert_eq!(diagnosis.llc_load_miss.value, Some(0.25));
    for id in ["D3", "D13", "D15"] {
        assert!(
            matches!(state(&diagnosis, id), RuleState::Holds { .. }),
            "{id}"
        );
    }
    assert_eq!(diagnosis.verdict.as_deref(), Some("D13"));
}

#[test]
fn drops_and_imbalance_come_from_the_lines_of_workspaces() {
    let log = seed_log(2).replace("Disp rx drop: 0", "Disp rx drop: 7");
    let log = log.replace("(App5.010", "(App3.010");
    let diagnosis = diagnosed(&log);
    for (id, says) in [("D11", "rings 28 > 0"), ("D16", "workspace 1.665 > 1.3")] {
        match state(&diagnosis, id) {
            RuleState::Holds { evidence, .. } => assert!(evidence.ends_with(says), "{evidence}"),
            other => panic!("{id}: {other:?}"),
        }
    }
}

#[test]
fn what_the_run_counted_and_what_the_host_reports_may_each_show_a_loss() {
    let drops = |report: &str, counted: Reading| {
        let mut tables = tables(TABLE);
        tables.tables[0].counted.missed_packets = counted;
        Diagnosis::of(
            &tables,
            &PathContext {
                report: Some(HostReport::read(&format!("{REPORT}{report}")).unwrap()),
                ..context()
            },
        )
    };
    let holds = |diagnosis: &Diagnosis| match state(diagnosis, "D10") {
        RuleState::Holds { evidence, .. } => evidence.clone(),
        other => panic!("{other:?}"),
    };
    let line = "interface_drops: 5\n";
    let none = || Reading::missing("the link counts nothing");
    let of = |report, counted| holds(&drops(report, counted));
    assert_eq!(of(line, Reading::known(0.0)), "missed packets 5 > 0");
    assert_eq!(of("", Reading::known(7.0)), "missed packets 7 > 0");
    assert_eq!(of(line, Reading::known(7.0)), "missed packets 7 > 0");
    assert_eq!(of(line, none()), "missed packets 5 > 0");
}

/// A path that nothing holds back and of which everything is known.
fn healthy() -> PathEvidence {
    let known = Reading::known;
    PathEvidence {
        critical: Some((PathStage::DispatchRx, PathClass::Waiting)),
        counted: CountedFigures {
            sent_share: known(1.0),
            share_without_credit: known(0.1),
            share_without_buffers: known(0.0),
            busiest_share: known(0.5),
            total_busy_share: known(0.8),
            tx_full_retries: known(0.0),
            packets_per_flush: known(32.0),
            burst_share: known(0.8),
            missed_packets: known(0.0),
            receive_ring_use: known(0.2),
            lost_cpu_share: known(0.001),
        },
        throughput_mpps: known(10.0),
        other_throughput_mpps: known(10.0),
        link_share: known(0.5),
        stall_shares: vec![known(0.1); 4],
        pool_use: known(0.7),
        ring_drops: known(0.0),
        llc_miss: known(0.3),
        instructions_per_cycle: known(1.0),
        io_write_miss: known(0.1),
        memory_share: known(0.4),
        workspace_spread: known(1.1),
    }
}

fn holding(evidence: &PathEvidence) -> Vec<String> {
    let rules = judged(evidence).into_iter();
    let holds = rules.filter(|rule| matches!(rule.state, RuleState::Holds { .. }));
    holds.map(|rule| rule.id).collect()
}

/// A change that makes rules hold, and the rules that hold then.
type RuleCase = (fn(&mut PathEvidence), &'static [&'static str]);

const CASES: &[RuleCase] = &[
    (
        |e| {
            e.throughput_mpps = Reading::known(0.0);
            e.other_throughput_mpps = Reading::known(0.0);
        },
        &["D1"],
    ),
    (|e| e.throughput_mpps = Reading::known(0.0), &[]),
    (|e| e.counted.sent_share = Reading::known(0.98), &["D2"]),
    (|e| e.link_share = Reading::known(0.97), &["D3"]),
    (
        |e| e.counted.share_without_credit = Reading::known(0.6),
        &["D4"],
    ),
    (
        |e| {
            e.counted.share_without_credit = Reading::known(0.6);
            e.counted.busiest_share = Reading::known(0.9);
        },
        &[],
    ),
    (
        |e| stall(e, 0, |e| e.pool_use = Reading::known(0.95)),
        &["D5"],
    ),
    (|e| stall(e, 0, |_| {}), &[]),
    // A pool that runs dry now and then is not full on the whole.
    (
        |e| e.counted.share_without_buffers = Reading::known(0.3),
        &["D5"],
    ),
    (
        |e| stall(e, 0, |e| e.pool_use = Reading::known(0.4)),
        &["D6"],
    ),
    (
        |e| stall(e, 2, |e| e.counted.tx_full_retries = Reading::known(3.0)),
        &["D7"],
    ),
    (
        |e| stall(e, 2, |e| e.counted.packets_per_flush = Reading::known(8.0)),
        &["D8"],
    ),
    (|e| stall(e, 2, |_| {}), &[]),
    (
        |e| stall(e, 3, |e| e.counted.burst_share = Reading::known(0.2)),
        &["D9"],
    ),
    (|e| e.counted.missed_packets = Reading::known(1.0), &["D10"]),
    (
        |e| e.counted.receive_ring_use = Reading::known(0.95),
        &["D10"],
    ),
    (|e| e.ring_drops = Reading::known(1.0), &["D11"]),
    (
        |e| {
            works(e, PathStage::ApplicationRx, |e| {
                e.llc_miss = Reading::known(0.1);
            });
        },
        &["D12"],
    ),
    (
        |e| {
            works(e, PathStage::ApplicationRx, |e| {
                e.instructions_per_cycle = Reading::known(1.6);
            });
        },
        &["D12", "D13"],
    ),
    (|e| works(e, PathStage::DispatchTx, |_| {}), &["D13"]),
    (
        |e| {
            works(e, PathStage::DispatchTx, |e| {
                e.llc_miss = Reading::known(0.1);
            });
        },
        &[],
    ),
    (|e| e.io_write_miss = Reading::known(0.3), &["D14"]),
    (|e| e.memory_share = Reading::known(0.8), &["D15"]),
    (|e| e.workspace_spread = Reading::known(1.4), &["D16"]),
    (
        |e| e.counted.lost_cpu_share = Reading::known(0.02),
        &["D17"],
    ),
    (
        |e| e.counted.total_busy_share = Reading::known(0.95),
        &["D18"],
    ),
    (
        |e| {
            e.counted.total_busy_share = Reading::known(0.95);
            e.ring_drops = Reading::known(1.0);
        },
        &["D11"],
    ),
];

fn stall(e: &mut PathEvidence, stage: usize, more: fn(&mut PathEvidence)) {
    e.stall_shares[stage] = Reading::known(0.6);
    more(e);
}

fn works(e: &mut PathEvidence, stage: PathStage, more: fn(&mut PathEvidence)) {
    e.critical = Some((stage, PathClass::Working));
    more(e);
}

#[test]
fn each_rule_holds_by_its_own_figures_alone() {
    assert_eq!(holding(&healthy()), [""; 0]);
    for (at, (change, rules)) in CASES.iter().enumerate() {
        let mut evidence = healthy();
        change(&mut evidence);
        assert_eq!(holding(&evidence), *rules, "case {at}");
    }
}

#[test]
fn a_rule_whose_figure_is_missing_is_not_evaluated() {
    let mut evidence = healthy();
    evidence.ring_drops = Reading::missing("nobody counted");
    let rules = judged(&evidence);
    let d11 = rules.iter().find(|rule| rule.id == "D11").unwrap();
    let reason = "nobody counted".to_owned();
    assert_eq!(d11.state, RuleState::NotEvaluated { reason });
    // As missing is what no rule asks for where another figure says no already.
    evidence.counted.packets_per_flush = Reading::missing("unknown");
    assert_eq!(
        judged(&evidence)
            .iter()
            .find(|r| r.id == "D8")
            .unwrap()
            .state,
        RuleState::DoesNotHold
    );
}

proptest! {
    #[test]
    fn whatever_the_text_it_is_read_or_refused_with_a_line_of_it(
        text in "([A-Za-z0-9_|:,.()<>%\\[\\] -]{0,40}\n){0,12}[ -~]{0,20}",
    ) {
        let lines = text.lines().count().max(1);
        let errors = [
            StageTables::of_log(&text).err(),
            HostReport::read(&text).err(),
            PerfCounts::read(&text).err(),
            PcieCounts::read(&text).err(),
            node_bandwidths(&text).err(),
        ];
        for error in errors.into_iter().flatten() {
            prop_assert!((1..=lines).contains(&error.line), "{}", error);
            prop_assert!(!error.message.is_empty() && !error.help.is_empty());
        }
    }

    #[test]
    fn a_log_with_any_numbers_gives_a_diagnosis_whose_json_reads_back(
        numbers in proptest::collection::vec(prop_oneof![
            Just(f64::NAN), Just(f64::INFINITY), Just(0.0), 0.0..1e6_f64,
        ], 26),
    ) {
        let mut left = numbers.iter();
        let mut row = |name: &str, cells: usize| {
            let cells: Vec<String> = left.by_ref().take(cells).map(|n| format!("{n:.3}")).collect();
            format!("{name} {}\n", cells.join(" "))
        };
        let rows: String = [
            ("End-to-end", 2), ("app_tx", 5), ("app_rx", 9), ("disp_tx", 3), ("disp_rx", 3),
            ("nic_tx", 2), ("nic_rx", 2),
        ].map(|(name, cells)| row(name, cells)).concat();
        let log = format!("Perf Statistics\n-----\n{rows}-----\n");
        let diagnosis = diagnosed(&log);
        let json = serde_json::to_string(&diagnosis).unwrap();
        let again: Diagnosis = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(&again, &diagnosis);
        prop_assert!(text(&diagnosis, true).ends_with('\n'));
    }
}
