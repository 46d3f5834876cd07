//! The shape of our texts beside fio's own for the same words: the same lines, keys and value
//! types in the same order. Skipped, loudly, where fio 3.33 is missing.

use std::io::Write as _;
use std::process::Command;

use serde_json::Value;
use weir_jobfile::{Context, Files};
use weir_schema::catalogue::{Catalogue, EngineInfo, Environment};
use weir_schema::{Kind, KindResult, RunResult, SampleStatistics, Stage, Workload};
use weir_stats::Histogram;

use super::sample::{kind, latencies, worker};
use super::{FioTextOptions, TerseVersion, banner, json, normal, terse};
use crate::args::read_given;
use crate::fio::{DOOR, jobs};

const COMPAT: FioTextOptions = FioTextOptions {
    compat_banner: true,
    utc_offset_s: 0,
    bins: false,
    one_line: false,
    partial: false,
    terse: TerseVersion::V3,
};

/// fio's standard output, or nothing where it is missing.
fn fio(words: &[&str]) -> Option<String> {
    let output = Command::new("fio").args(words).output().ok()?;
    let version = Command::new("fio").arg("--version").output().ok()?.stdout;
    let known = version.starts_with(super::FIO_VERSION.as_bytes());
    known.then(|| String::from_utf8(output.stdout).unwrap())
}

fn skip(test: &str) {
    let line = format!("{test}: fio 3.33 is not installed");
    println!("SKIPPED: {line}");
    if let Some(path) = std::env::var_os("WEIR_SKIP_LOG") {
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(path);
        writeln!(log.unwrap(), "{line}").unwrap();
    }
}

struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _: &str) -> std::io::Result<Vec<u8>> {
        Err(std::io::ErrorKind::NotFound.into())
    }
}

fn catalogue() -> Catalogue {
    let null = EngineInfo {
        name: "null",
        summary: "moves no data",
        settings: &[],
        synchronous: false,
        acts_on: weir_schema::catalogue::ActsOn::Size,
    };
    Catalogue {
        engines: vec![null],
    }
}

/// Result that a run of these words would have given: every job does 3000 operations of each of its
/// kinds in two seconds, with samples; at depth 1 there is no slat, as in fio.
fn imagined(words: &[&str]) -> RunResult {
    let words: Vec<String> = words.iter().map(ToString::to_string).collect();
    let given = read_given(&DOOR, &words).unwrap();
    let environment = Environment {
        cpus: 2,
        page_bytes: 4096,
        memory_mib: 1024,
        ..Environment::default()
    };
    let context = Context {
        environment: &environment,
        catalogue: &catalogue(),
        files: &NoFiles,
    };
    let plan = weir_jobfile::compile(&jobs(&given), &context)
        .map_err(|e| e[0].render())
        .unwrap()
        .plan;
    let mut groups = Vec::new();
    for group in &plan.groups {
        let jobs = group.jobs.iter().map(|job| {
            let clones = (0..job.clones).map(|number| worker(number, 2000, kinds(job)));
            (job.clone(), clones.collect())
        });
        groups.push(jobs.collect());
    }
    let mut result = super::sample::result(groups);
    result.plan = plan;
    result
}

fn kinds(job: &weir_schema::Job) -> Vec<KindResult> {
    let Workload::Block(work) = &job.workload else {
        panic!("block I/O")
    };
    let mut stages = vec![(Stage::Lat, latencies(100, 1, 3000))];
    if job.load().depth.queue_depth.0 > 1 {
        stages.push((Stage::Slat, latencies(20, 0, 3000)));
        stages.push((Stage::Clat, latencies(80, 1, 3000)));
    }
    let samples = SampleStatistics {
        count: 3,
        min: 3e6,
        max: 4e6,
        mean: 3.5e6,
        deviation: 1e4,
    };
    let mut found = Vec::new();
    for k in Kind::DATA.into_iter().filter(|k| work.mix.has(*k)) {
        let mut one = kind(k, 3000, 2000, &stages);
        (one.bandwidth_samples, one.iops_samples) = (Some(samples), Some(samples));
        found.push(one);
    }
    if work.flush.fsync_every.is_some() {
        found.push(kind(
            Kind::Sync,
            100,
            2000,
            &[(Stage::Lat, latencies(200, 1, 100))],
        ));
    }
    found
}

/// The document with each value replaced by its type.
fn skeleton(document: &str) -> Vec<String> {
    document
        .lines()
        .map(|line| {
            let Some((key, value)) = line.split_once(" : ") else {
                return line.to_owned();
            };
            let (value, comma) = value.strip_suffix(',').map_or((value, ""), |v| (v, ","));
            let kind = match value.chars().next() {
                Some('{' | '[') => value,
                Some('"') => "text",
                _ if value.contains('.') => "float",
                _ => "integer",
            };
            format!("{key} : {kind}{comma}")
        })
        .collect()
}

/// A text with numbers and the units before them reduced, and the lines left out whose number
/// depends on where latencies fell.
fn template(text: &str) -> Vec<String> {
    let varies = |line: &&str| line.starts_with("  lat (") || line.starts_with("     |");
    text.lines()
        .filter(|line| !varies(line))
        .map(|line| {
            let mut out = String::new();
            let line = match line.split_once(" pid=") {
                Some((head, _)) => head.to_owned(),
                None => line.replace("usec)", "nsec)").replace("msec)", "nsec)"),
            };
            let mut in_number = false;
            for c in line.chars() {
                let number =
                    c.is_ascii_digit() || (in_number && (c == '.' || "kKMGiB".contains(c)));
                if number && !in_number {
                    // However wide the column before it is.
                    let bare = out.trim_end_matches(' ');
                    if bare.ends_with('=') {
                        out.truncate(bare.len());
                    }
                    out.push('#');
                } else if !number {
                    out.push(c);
                }
                in_number = number;
            }
            out.replace("process", "thread")
                .replace("MiB", "KiB")
                .replace("  KiB", "KiB")
        })
        .collect()
}

/// The same lines; of those that differ the first is shown, for there may be hundreds.
fn assert_same(ours: &[String], theirs: &[String], words: &[&str]) {
    let differ = (0..ours.len().max(theirs.len())).find(|at| ours.get(*at) != theirs.get(*at));
    if let Some(at) = differ {
        panic!(
            "{words:?}\n  line {}\n  ours:  {:?}\n  fio's: {:?}",
            at + 1,
            ours.get(at),
            theirs.get(at)
        );
    }
}

const RUN: [&str; 5] = [
    "--ioengine=null",
    "--size=64m",
    "--runtime=2",
    "--time_based",
    "--thread",
];

/// Words for a run of two seconds, so that fio prints its samples.
fn with<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let mut all = vec![words[0]];
    all.extend(RUN);
    all.extend(&words[1..]);
    all
}

/// Figures of one kind from fio's document: counts, histogram, samples.
fn counted(direction: &Value, what: Kind) -> KindResult {
    let number = |key: &str| direction[key].as_f64().unwrap();
    let whole = |key: &str| direction[key].as_u64().unwrap();
    let mut histogram = Histogram::new();
    for (ns, count) in direction["clat_ns"]["bins"].as_object().unwrap() {
        histogram.record_n(ns.parse().unwrap(), count.as_u64().unwrap());
    }
    let mut one = kind(
        what,
        whole("total_ios"),
        whole("runtime"),
        &[(Stage::Clat, histogram)],
    );
    let samples = |of: &str, deviation: &str, unit: f64| SampleStatistics {
        count: whole(&format!("{of}_samples")),
        min: number(&format!("{of}_min")) * unit,
        max: number(&format!("{of}_max")) * unit,
        mean: number(&format!("{of}_mean")) * unit,
        deviation: number(deviation) * unit,
    };
    one.bandwidth_samples = Some(samples("bw", "bw_dev", 1024.0));
    one.iops_samples = Some(samples("iops", "iops_stddev", 1.0));
    one
}

/// The document, and the text after it.
fn split_json(output: &str) -> (Value, &str) {
    let (document, text) = output.split_once("\n}\n").unwrap();
    let document = document.split_once('{').unwrap().1;
    let document = serde_json::from_str(&format!("{{{document}}}")).unwrap();
    (document, text)
}

#[test]
fn the_figures_of_fio_are_printed_as_fio_prints_them() {
    let mut words = with(&["--name=a", "--rw=randrw", "--iodepth=4"]);
    let mut result = imagined(&words);
    words.push("--output-format=json+,normal");
    let Some(theirs) = fio(&words) else {
        return skip("the_figures_of_fio");
    };
    let (document, text) = split_json(&theirs);
    let job = &document["jobs"][0];
    let kinds = vec![
        counted(&job["read"], Kind::Read),
        counted(&job["write"], Kind::Write),
    ];
    result.groups[0].jobs[0].workers_mut()[0].kinds = kinds;
    let ours = normal(&result, COMPAT);
    // Rates, percentiles, samples and group lines; extremes and means are not in the document's
    // histogram, and the order of events decides the rest.
    let compared = |text: &str| -> Vec<String> {
        let starts = [
            "  read: ",
            "  write: ",
            "    clat percentiles",
            "     |",
            "   bw ",
            "   iops ",
            "   READ: ",
            "  WRITE: ",
        ];
        let chosen = text
            .lines()
            .filter(|l| starts.iter().any(|s| l.starts_with(s)));
        chosen.map(str::to_owned).collect()
    };
    assert_same(&compared(&ours), &compared(text), &words);
    assert!(compared(text).len() > 15, "{text}");
    let (ours, _) = split_json(&json(&result, COMPAT, None));
    for direction in ["read", "write"] {
        let share = |document: &Value| document["jobs"][0][direction]["bw_agg"].clone();
        assert_eq!(share(&ours), share(&document), "{direction}");
    }
}

#[test]
fn a_share_is_of_whole_kilobytes() {
    // As fio 3.33 printed it for these.
    let total = super::entry::Total {
        bytes: 6_719_873_024,
        runtimes_ns: (2_000_000_000, 2_000_000_000),
        ..Default::default()
    };
    assert_eq!(
        format!("{:.6}", total.share_of(2_901_442.666_667)),
        "88.426570"
    );
}

/// A terse line with each field replaced by its shape: whole or how many decimals, percent sign.
fn shapes(line: &str) -> Vec<String> {
    let field = |field: &str| {
        let (name, value) = field.rsplit_once('=').unwrap_or(("", field));
        let number = value.strip_suffix('%').unwrap_or(value);
        if number.parse::<f64>().is_err() {
            return field.to_owned();
        }
        let decimals = number.split_once('.').map_or(0, |(_, d)| d.len());
        let unit = &value[number.len()..];
        format!("{name} {decimals} {unit}")
    };
    line.split(';').map(field).collect()
}

/// Tests beside the peer.
mod slow {
    use super::*;

    #[test]
    fn the_json_has_the_keys_and_types_of_fio() {
        for words in [
            with(&["--name=a", "--rw=randrw", "--iodepth=4", "--fsync=64"]),
            with(&[
                "--name=a",
                "--rw=read",
                "--unified_rw_reporting=1",
                "--description=hello",
            ]),
            with(&[
                "--name=a",
                "--rw=trim",
                "--lat_percentiles=1",
                "--percentile_list=50:99.9",
            ]),
        ] {
            let mut with_json = words.clone();
            with_json.push("--output-format=json");
            let Some(theirs) = fio(&with_json) else {
                return skip("the_json_has_the_keys_of_fio");
            };
            let mut result = imagined(&words);
            // fio leaves out of its echo what was given without a value.
            for job in result.plan.groups.iter_mut().flat_map(|g| &mut g.jobs) {
                job.words.retain(|w| w.value.is_some());
            }
            let ours = json(&result, COMPAT, None);
            let (body, _) = ours.split_once(",\n  \"weir\"").unwrap();
            assert_same(
                &skeleton(&format!("{body}\n}}\n")),
                &skeleton(&theirs),
                &words,
            );
        }
    }

    #[test]
    fn the_text_has_the_lines_of_fio() {
        for words in [
            with(&[
                "--name=a",
                "--rw=randrw",
                "--iodepth=4",
                "--numjobs=2",
                "--group_reporting",
            ]),
            with(&[
                "--name=a",
                "--rw=write",
                "--fsync=64",
                "--description=hello",
                "--new_group",
            ]),
            with(&[
                "--name=a",
                "--rw=read",
                "--continue_on_error=all",
                "--slat_percentiles=1",
            ]),
        ] {
            let Some(theirs) = fio(&words) else {
                return skip("the_text_has_the_lines_of_fio");
            };
            let result = imagined(&words);
            let ours = banner(&result.plan, COMPAT, "0") + &normal(&result, COMPAT);
            assert_same(&template(&ours), &template(&theirs), &words);
        }
    }

    #[test]
    fn terse_lines_have_the_fields_of_fio() {
        let described = ["--description=hello there", "--continue_on_error=all"];
        for more in [
            &["--rw=read"][..],
            &["--rw=randrw", described[0], described[1]],
            &["--rw=trim", "--percentile_list=50:99.9", "--iodepth=4"],
            &["--rw=write", "--clat_percentiles=0", "--fsync=64"],
            &[
                "--rw=randrw",
                "--unified_rw_reporting=1",
                "--lat_percentiles=1",
            ],
        ] {
            for (number, version) in ["2", "3", "4", "5"].map(|n| (n, TerseVersion::of(n).unwrap()))
            {
                let mut words = vec!["--name=a", "--ioengine=null", "--size=64k", "--thread"];
                words.extend(more);
                let terse_version = format!("--terse-version={number}");
                let mut with_terse = words.clone();
                with_terse.extend(["--minimal", terse_version.as_str()]);
                let Some(theirs) = fio(&with_terse) else {
                    return skip("terse_lines_have_the_fields_of_fio");
                };
                let options = FioTextOptions {
                    terse: version,
                    ..COMPAT
                };
                let ours = terse(&imagined(&words), options);
                let lines = |text: &str| text.lines().flat_map(shapes).collect::<Vec<_>>();
                assert_same(&lines(&ours), &lines(&theirs), &with_terse);
            }
        }
    }
}
