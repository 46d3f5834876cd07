//! The command lines of the seed against two servers with the tags of engines, over each transport: what is
//! printed, line by line, and how many RPCs each master had with each endpoint.

mod slow;

use std::fmt::Write as _;

use serde_json::Value;

use rustix::process::Signal;

use crate::servers::{Server, self_test, split};
use crate::stage::{Running, Said, Stage, masked, skip, until};

/// Tags of a server with 16 targets and 4 helpers.
const TAGS: u32 = 22;

type Endpoints = Vec<(u32, u32)>;

/// A command line, and what its report is about.
struct SeedLine {
    words: &'static str,
    adding: &'static str,
    pairs: &'static [&'static str],
    repetitions: u64,
    masters: Endpoints,
    endpoints: Endpoints,
}

fn every(tags: u32) -> Endpoints {
    let rank = |rank| (0..tags).map(move |tag| (rank, tag));
    (0..2).flat_map(rank).collect()
}

const GET: &str = "(1048578-BULK_GET 0-EMPTY)";
const PUT: &str = "(0-EMPTY 1048578-BULK_PUT)";
const EMPTY: &str = "(0-EMPTY 0-EMPTY)";

const OF_ONE: &str = "Adding endpoints:
  ranks: 0 (# ranks = 1)
  tags: 2 (# tags = 1)
";
const OF_ALL: &str = "Adding endpoints:
  ranks: 0-1 (# ranks = 2)
  tags: 0-21 (# tags = 22)
";
const CROSS: &str = "Adding endpoints:
  ranks: 0-1 (# ranks = 2)
  tags: 0 (# tags = 1)
Adding endpoints:
  ranks: 0-1 (# ranks = 2)
  tags: 0-21 (# tags = 22)
";
/// Line that is printed where this command itself asks.
const ALONE: &str = "Warning: No --master-endpoint specified; using this command line application as the \
                     master endpoint\n";

/// The seed's lines without that of `--help`, each with few repetitions.
fn seed_lines() -> Vec<SeedLine> {
    let alone = |words, pairs| SeedLine {
        words,
        adding: OF_ONE,
        pairs,
        repetitions: 20,
        masters: vec![(2, 0)],
        endpoints: vec![(0, 2)],
    };
    vec![
        alone("--endpoint 0:2 --message-size '(0 b1048578)'", &[PUT]),
        alone("--endpoint 0:2 --message-size '(b1048578 0)'", &[GET]),
        alone("--endpoint 0:2 --message-size '(0 0)'", &[EMPTY]),
        alone(
            "--endpoint 0:2 --message-size '(0 0) (b1048578 0) (0 b1048578)'",
            &[EMPTY, GET, PUT],
        ),
        SeedLine {
            words: "--endpoint 0-1:0-21 --message-size '(0 0) (b1048578 0) (0 b1048578)'",
            adding: OF_ALL,
            pairs: &[EMPTY, GET, PUT],
            repetitions: 3,
            masters: vec![(2, 0)],
            endpoints: every(TAGS),
        },
        SeedLine {
            words: "--endpoint 0-1:0 --master-endpoint 0-1:0-21 --message-sizes \
                    'b1048576,b1048576 0,0 b1048576,i2048,i2048 0,0 i2048'",
            adding: CROSS,
            pairs: &[
                "(1048576-BULK_GET 1048576-BULK_PUT)",
                "(1048576-BULK_GET 0-EMPTY)",
                "(0-EMPTY 1048576-BULK_PUT)",
                "(2048-IOV 2048-IOV)",
                "(2048-IOV 0-EMPTY)",
                "(0-EMPTY 2048-IOV)",
            ],
            repetitions: 2,
            masters: every(TAGS),
            endpoints: every(1),
        },
    ]
}

impl SeedLine {
    /// More in flight than there are RPCs is as many.
    fn in_flight(&self) -> u64 {
        16.min(self.repetitions * self.endpoints.len() as u64)
    }

    /// Expected output, with `#` in place of each measured value.
    fn report(&self) -> String {
        let mut out = self.adding.to_owned();
        if self.masters.len() == 1 {
            out += ALONE;
        }
        let (count, repetitions) = (self.endpoints.len() as u64, self.repetitions);
        let _ = write!(
            out,
            "Self Test Parameters:
  Group name to test against: daos_server
  # endpoints:                {count}
  Message sizes:              [{}]
  Buffer addresses end with:  <Default>
  Repetitions per size:       {}
  Max in-flight RPCs:          {}

",
            self.pairs.join(", "),
            repetitions * count,
            self.in_flight()
        );
        for pair in self.pairs {
            out += &self.block(pair);
        }
        out
    }

    fn block(&self, pair: &str) -> String {
        let title = "#".repeat(50);
        let depth = self.in_flight();
        let mut out =
            format!("{title}\nResults for message size {pair} (max_inflight_rpcs = {depth}):\n\n");
        for (rank, tag) in &self.masters {
            let name = format!("Master Endpoint {rank}:{tag}");
            let line = "-".repeat(name.len());
            let _ = write!(
                out,
                "{name}\n{line}
\tRPC Bandwidth (MB/sec): #
\tRPC Throughput (RPCs/sec): #
\tRPC Latencies (us):
\t\tMin    : #
\t\t25th  %: #
\t\tMedian : #
\t\t75th  %: #
\t\tMax    : #
\t\tAverage: #
\t\tStd Dev: #
\tRPC Failures: 0

\tEndpoint results (rank:tag - Median Latency (us)):
"
            );
            for (rank, tag) in &self.endpoints {
                let _ = writeln!(out, "\t\t{rank}:{tag} - #");
            }
            out += "\n";
        }
        out
    }
}

/// A report with `#` for what was measured, and without the lines that weir adds below blocks.
fn shape(report: &str) -> String {
    let measured = |line: &str| {
        let labels = ["\tRPC Bandwidth", "\tRPC Throughput", "\t\t"];
        let split = if line.contains(" - ") { " - " } else { ": " };
        match line.split_once(split) {
            Some((label, figure)) if labels.iter().any(|l| line.starts_with(l)) => {
                format!("{label}{split}{}", masked(figure))
            }
            _ => line.to_owned(),
        }
    };
    let own = |line: &&str| !line.starts_with("\t+ ") && !line.starts_with("Aggregate of ");
    let mut out = String::new();
    for line in report.lines().filter(own) {
        // What is left around lines that were added.
        if !(line.is_empty() && out.ends_with("\n\n")) {
            out += &measured(line);
            out += "\n";
        }
    }
    out
}

/// Each master has called each endpoint as often as it was told, and nothing failed.
fn counts_are_right(stored: &str, line: &SeedLine) {
    let stored: Value = serde_json::from_str(stored).unwrap();
    let groups = stored["groups"].as_array().unwrap();
    assert_eq!(groups.len(), line.pairs.len());
    for group in groups {
        let masters = group["jobs"][0]["outcome"]["masters"].as_array().unwrap();
        let name = |one: &Value| {
            let of = |part: &str| u32::try_from(one["endpoint"][part].as_u64().unwrap()).unwrap();
            (of("rank"), of("tag"))
        };
        assert_eq!(
            masters.iter().map(name).collect::<Endpoints>(),
            line.masters
        );
        for master in masters {
            let endpoints = master["endpoints"].as_array().unwrap();
            let called: Endpoints = endpoints.iter().map(name).collect();
            assert_eq!(called, line.endpoints);
            for endpoint in endpoints {
                assert_eq!(endpoint["succeeded"], line.repetitions, "{endpoint}");
                assert_eq!(endpoint["failed"], serde_json::json!({}));
            }
            assert_eq!(
                (&master["failed"], &master["not_sent"]),
                (&0.into(), &0.into())
            );
        }
    }
}

fn run_seed_lines(transport: &str) -> Vec<Said> {
    let stage = Stage::new();
    let start = |rank| {
        let layout = "--layout daos,targets=16,helpers=4 --pollers 2";
        Server::start(
            &stage,
            &format!("--rank {rank} {layout} --transport {transport}"),
        )
    };
    let servers = [start(0), start(1)];
    let run = |line: &SeedLine| {
        let words = format!(
            "--group-name daos_server {} --max-inflight-rpcs 16 --repetitions {} --store-result r.json",
            line.words, line.repetitions
        );
        let said = self_test(&stage, &words).code(0);
        assert_eq!(shape(&said.out), line.report(), "{words}");
        counts_are_right(&stage.read("r.json"), line);
        said
    };
    let said = seed_lines().iter().map(run).collect();
    for server in servers {
        assert_eq!(server.end(), Some(0));
    }
    let table = stage.read("daos_server.attach_info_tmp");
    assert!(!table.contains("://"), "{table}");
    said
}

fn has_fabric() -> bool {
    let words = "self_test --loopback=1 --transport ofi+tcp -e 0:0 -s 0 -r 10";
    let trial = Stage::new().peer_says(&split(words));
    if trial.err.contains("libfabric not found") {
        return false;
    }
    trial.code(0);
    true
}
