//! fio's terse report: one line of fields per entry, for programs.
//!
//! In: a result and the version of the layout. Out: lines of fields separated by `;`, latencies
//! in microseconds and bandwidth in KiB per second, as fio 3.33 writes them. Not here: which
//! workers are one entry (`entry`).

use weir_jobfile::FioJob;
use weir_schema::{DiskCounters, Kind, RunResult};
use weir_stats::Histogram;

use super::disks::{below, utilisation};
use super::entry::{FioEntry, TOGETHER, Total, Totals, entries, totals};
use super::kind_sums::{KindSums, Latency};
use super::latency::{classes, percentiles, shares};
use super::{FioTextOptions, version_text};

/// Percentiles that a line has room for.
const PERCENTILES: usize = 20;

/// The layout of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TerseVersion {
    /// Without the program's version and disks, with trims.
    V2,
    /// Reads and writes.
    #[default]
    V3,
    /// With trims.
    V4,
    /// With samples of bandwidth and IOPS.
    V5,
}

impl TerseVersion {
    /// The version of a number.
    pub fn of(number: &str) -> Option<Self> {
        [Self::V2, Self::V3, Self::V4, Self::V5]
            .into_iter()
            .find(|v| v.number() == number)
    }

    const fn number(self) -> &'static str {
        match self {
            Self::V2 => "2",
            Self::V3 => "3",
            Self::V4 => "4",
            Self::V5 => "5",
        }
    }
}

/// The report as fio 3.33 writes it, a line per entry.
pub fn terse(result: &RunResult, options: FioTextOptions) -> String {
    let entries = entries(result);
    let totals: Vec<_> = (0..result.groups.len())
        .map(|g| totals(&entries, g))
        .collect();
    let mut out = String::new();
    for entry in &entries {
        let total = totals.get(entry.group).copied().unwrap_or_default();
        push_entry(&mut out, result, entry, &total, options);
    }
    out
}

fn push_entry(
    out: &mut String,
    result: &RunResult,
    entry: &FioEntry<'_>,
    totals: &Totals,
    options: FioTextOptions,
) {
    let version = options.terse;
    out.push_str(version.number());
    if version > TerseVersion::V2 {
        push!(out, ";{}", version_text(options, &result.weir_version, "-"));
    }
    let error = entry.errno();
    push!(
        out,
        ";{};{};{error}",
        one_line(&entry.job.name),
        entry.group
    );
    for (kind, _, figures) in entry.directions() {
        if kind != Kind::Trim || version != TerseVersion::V3 {
            push_direction(out, entry, figures, totals[kind.index()], version);
        }
    }
    if let Some(together) = &entry.together {
        push_direction(out, entry, together, totals[TOGETHER], version);
    }
    push_usage(out, entry);
    push_classes(out, entry);
    if version > TerseVersion::V2 {
        result.disks.iter().for_each(|disk| push_disk(out, disk));
    }
    if entry.goes_on() {
        push!(out, ";{};{}", entry.errors.total, entry.errors.code);
    }
    if let Some(text) = entry.job.description.as_deref().filter(|t| !t.is_empty()) {
        // fio puts it on a line of its own in the oldest layout.
        let before = if version == TerseVersion::V2 {
            "\n"
        } else {
            ""
        };
        push!(out, "{before};{}", one_line(text));
    }
    out.push('\n');
}

/// Control characters would end the line.
fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

fn push_direction(
    out: &mut String,
    entry: &FioEntry<'_>,
    figures: &KindSums,
    total: Option<Total>,
    version: TerseVersion,
) {
    push!(
        out,
        ";{};{};{};{}",
        figures.bytes >> 10,
        figures.bytes_per_s() / 1024,
        figures.ops_per_s(),
        figures.runtime_ms()
    );
    push_latency(out, figures.slat.as_ref());
    push_latency(out, figures.clat.as_ref());
    push_percentiles(out, entry, figures);
    push_latency(out, figures.lat.as_ref());
    let bw = &figures.bandwidth;
    let share = total
        .filter(|_| bw.count > 0)
        .map_or(0.0, |t| t.share_of(bw.mean));
    push!(
        out,
        ";{:.0};{:.0};{share:.6}%;{:.6};{:.6}",
        bw.min.floor(),
        bw.max.floor(),
        bw.mean,
        bw.deviation()
    );
    if version == TerseVersion::V5 {
        let iops = &figures.iops;
        push!(
            out,
            ";{};{:.0};{:.0};{:.6};{:.6};{}",
            bw.count,
            iops.min.floor(),
            iops.max.floor(),
            iops.mean,
            iops.deviation(),
            iops.count
        );
    }
}

fn push_latency(out: &mut String, histogram: Option<&Histogram>) {
    let l = Latency::of(histogram);
    push!(
        out,
        ";{};{};{:.6};{:.6}",
        l.min / 1000,
        l.max / 1000,
        l.mean / 1000.0,
        l.deviation / 1000.0
    );
}

/// Of the total latency where its percentiles were asked for, else of the completion latency.
fn push_percentiles(out: &mut String, entry: &FioEntry<'_>, figures: &KindSums) {
    let shown = FioJob::of(entry.last);
    let histogram = if shown.percentiles_of_lat {
        figures.lat.as_ref()
    } else {
        figures.clat.as_ref()
    };
    let wanted = shown.percentiles_of_lat || shown.percentiles_of_clat;
    let list = entry.percentile_list();
    let values = match histogram.filter(|_| wanted) {
        Some(histogram) => percentiles(histogram, &list),
        None if wanted => list.into_iter().map(|p| (p, 0)).collect(),
        None => Vec::new(),
    };
    for (percent, ns) in values.iter().take(PERCENTILES) {
        push!(out, ";{percent:.6}%={}", ns / 1000);
    }
    out.push_str(&";0%=0".repeat(PERCENTILES.saturating_sub(values.len())));
}

fn push_usage(out: &mut String, entry: &FioEntry<'_>) {
    let cpu = &entry.cpu;
    push!(
        out,
        ";{:.6}%;{:.6}%;{};{};{}",
        entry.cpu_percent(cpu.user_ns.0),
        entry.cpu_percent(cpu.system_ns.0),
        cpu.voluntary_switches + cpu.involuntary_switches,
        cpu.major_faults,
        cpu.minor_faults
    );
    for share in shares(&entry.depth.in_flight, entry.issued(), 0.1) {
        push!(out, ";{share:3.1}%");
    }
}

/// Latencies below a microsecond count to the first class of microseconds.
fn push_classes(out: &mut String, entry: &FioEntry<'_>) {
    let mut classes = classes(entry.total_latency().as_ref());
    classes.usec[0] += classes.nsec.iter().sum::<f64>();
    for share in classes.usec.iter().chain(&classes.msec) {
        push!(out, ";{share:3.2}%");
    }
}

fn push_disk(out: &mut String, disk: &DiskCounters) {
    push_counters(out, &disk.device, disk, utilisation(disk));
    if !disk.members.is_empty() {
        let (mean, most) = below(disk);
        push_counters(out, "slaves", &mean, most);
    }
}

fn push_counters(out: &mut String, name: &str, disk: &DiskCounters, util: f64) {
    const MS: u64 = 1_000_000;
    push!(
        out,
        ";{name};{};{};{};{};{};{};{};{util:3.2}%",
        disk.read_operations,
        disk.write_operations,
        disk.read_merges,
        disk.write_merges,
        disk.read_ns.0 / MS,
        disk.write_ns.0 / MS,
        disk.in_queue_ns.0 / MS
    );
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use weir_schema::sample::JobSample;

    fn line(version: TerseVersion, change: impl FnOnce(&mut RunResult)) -> String {
        let mut result = sample::mixed();
        result.plan.groups[0].jobs[0].description = None;
        change(&mut result);
        let options = FioTextOptions {
            terse: version,
            ..FioTextOptions::default()
        };
        terse(&result, options)
    }

    #[test]
    fn each_version_has_its_number_of_fields() {
        for (number, fields) in [("2", 161), ("3", 121), ("4", 162), ("5", 180)] {
            let version = TerseVersion::of(number).unwrap();
            let text = line(version, |_| ());
            assert_eq!(text.trim_end().split(';').count(), fields, "{text}");
            assert!(text.starts_with(&format!("{number};")), "{text}");
        }
        assert_eq!(TerseVersion::of("6"), None);
    }

    #[test]
    fn fields_hold_the_figures_in_fios_units() {
        let text = line(TerseVersion::V3, |_| ());
        let fields: Vec<&str> = text.trim_end().split(';').collect();
        assert_eq!(fields[..5], ["3", "weir-1.2.3", "mix", "0", "0"]);
        // 2000 reads of 4 KiB in 2001 ms.
        assert_eq!(fields[5..9], ["8000", "3998", "999", "2001"]);
        assert_eq!(fields[9..11], ["0", "2"]);
        assert_eq!(fields[17], "1.000000%=51");
        assert_eq!(fields[33..37], ["99.990000%=250", "0%=0", "0%=0", "0%=0"]);
        assert_eq!(fields[41..44], ["4000", "5236", "100.000000%"]);
    }

    #[test]
    fn errors_disks_and_descriptions_follow_at_the_end() {
        let text = line(TerseVersion::V3, |result| {
            let job = &mut result.plan.groups[0].jobs[0];
            job.description = Some("two\nlines".to_owned());
            job.load_mut().errors.go_on = weir_schema::Kind::DATA.map(Into::into).into();
            result.disks = vec![DiskCounters {
                device: "vda".to_owned(),
                read_operations: 3,
                members: vec![DiskCounters::default()],
                ..DiskCounters::default()
            }];
        });
        let end = ";vda;3;0;0;0;0;0;0;0.00%;slaves;0;0;0;0;0;0;0;0.00%;0;0;two lines\n";
        assert!(text.ends_with(end), "{text}");
    }

    #[test]
    fn unified_kinds_are_one_block() {
        let text = line(TerseVersion::V4, |result| {
            result.plan.groups[0].jobs[0]
                .load_mut()
                .recording
                .unify_kinds = true;
        });
        assert_eq!(text.split(';').count(), 162 - 82, "{text}");
    }
}
