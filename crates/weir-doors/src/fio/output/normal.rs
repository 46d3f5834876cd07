//! fio's normal report: entries, group lines, disk statistics.
//!
//! In: a result. Out: the text from the blank line before the first entry to the last disk.
//! Not here: banners and error lines, which are printed before (`banner`).

use weir_jobfile::FioJob;
use weir_schema::{Kind, RunResult};
use weir_stats::Histogram;

use super::course::{push_latency_target, push_steady};
use super::disks::push_disks;
use super::entry::{FioEntry, Formats, TOGETHER, Total, Totals, entries, totals};
use super::kind_sums::{KindSums, Latency, Samples, milliseconds};
use super::latency::{BATCHES, DEPTHS, LIMITS, classes, percentiles, precision, shares};
use super::numbers::{
    Base, FigureUnit, LatencyUnit, latency_unit, latency_unit_with_deviation, scaled,
};
use super::{FioTextOptions, strerror, verror};
use crate::date::ctime;

/// The report as fio 3.33 prints it after the run.
pub fn normal(result: &RunResult, options: FioTextOptions) -> String {
    let entries = entries(result);
    let date = ctime(options.local_seconds(result));
    let mut out = String::from("\n");
    let totals: Vec<_> = (0..result.groups.len())
        .map(|g| totals(&entries, g))
        .collect();
    for entry in entries.iter().filter(|e| !e.is_silent()) {
        let total = totals.get(entry.group).copied().unwrap_or_default();
        push_entry(&mut out, entry, &total, &date);
    }
    for (number, total) in totals.iter().enumerate() {
        let of_group = entries.iter().filter(|e| e.group == number);
        let of_group: Vec<&FioEntry<'_>> = of_group.collect();
        if let Some(last) = of_group.last() {
            // fio adds what a job does not tell apart to the reads of the others.
            let is_mixed = of_group.iter().any(|e| e.is_unified());
            push_group(&mut out, number, total, (last, is_mixed));
        }
    }
    push_disks(&mut out, &result.disks);
    out
}

fn push_entry(out: &mut String, entry: &FioEntry<'_>, totals: &Totals, date: &str) {
    let job = entry.job;
    let errno = entry.errno();
    let error = match entry.failure {
        Some(failure) => format!("{errno:2} ({})", verror(failure)),
        None if errno != 0 => {
            let text = strerror(errno);
            format!("{errno:2} (file:-, func=io_u error, error={text})")
        }
        None => format!("{:2}", 0),
    };
    push!(
        out,
        "{}: (groupid={}, jobs={}): err={error}: pid={}: {date}\n",
        job.name,
        entry.group,
        entry.members,
        entry.pid
    );
    if let Some(text) = job.description.as_deref().filter(|t| !t.is_empty()) {
        push!(out, "  Description  : [{text}]\n");
    }
    for (kind, name, figures) in entry.directions().filter(|(.., f)| f.bytes > 0) {
        push_direction(out, entry, (kind, name), figures);
        push_percentiles_of(out, entry, figures);
        push_samples(out, figures, totals[kind.index()], entry.formats);
    }
    if let Some(together) = entry.together.as_ref().filter(|f| f.bytes > 0) {
        push_direction(out, entry, (Kind::Read, "mixed"), together);
        push_percentiles_of(out, entry, together);
        push_samples(out, together, totals[TOGETHER], entry.formats);
    }
    push_classes(out, entry);
    push_sync(out, entry);
    push_rest(out, entry);
}

fn push_direction(out: &mut String, entry: &FioEntry<'_>, what: (Kind, &str), figures: &KindSums) {
    let Formats { base, rate, digits } = entry.formats;
    let (kind, name) = what;
    let speed = figures.bytes_per_s();
    push!(
        out,
        "  {name}: IOPS={}, BW={} ({})({}/{}msec){}\n",
        scaled(figures.ops_per_s(), digits, Base::Decimal, FigureUnit::None),
        scaled(speed, digits, base, rate),
        scaled(speed, digits, base.other(), rate),
        scaled(figures.bytes, digits, base, FigureUnit::Byte),
        figures.runtime_ms(),
        if kind == Kind::Write {
            "; 0 zone resets"
        } else {
            ""
        },
    );
    for (label, histogram) in [
        ("slat", &figures.slat),
        ("clat", &figures.clat),
        (" lat", &figures.lat),
    ] {
        push_latency(out, label, histogram.as_ref());
    }
    let (label, priorities) = of_priorities(entry, figures);
    for (class, level, histogram) in priorities {
        push_latency(
            out,
            &format!("{label} prio {class}/{level}"),
            Some(histogram),
        );
    }
}

/// Latencies by I/O priority, and which they are.
fn of_priorities<'a>(
    entry: &FioEntry<'_>,
    figures: &'a KindSums,
) -> (&'static str, Vec<(u16, u16, &'a Histogram)>) {
    let total = FioJob::of(entry.last).percentiles_of_lat;
    let label = if total { "lat" } else { "clat" };
    (label, figures.of_priorities(total))
}

#[expect(clippy::cast_precision_loss, reason = "a power of 1000")]
fn push_latency(out: &mut String, label: &str, histogram: Option<&Histogram>) {
    let Latency {
        min,
        max,
        mean,
        deviation,
        count,
    } = Latency::of(histogram);
    if count == 0 {
        return;
    }
    let unit = latency_unit_with_deviation(min, max, deviation);
    let whole = |ns: u64| scaled(ns / unit.ns, 6, Base::Decimal, FigureUnit::None);
    push!(
        out,
        "    {label} ({}): min={}, max={}, avg={:5.2}, stdev={:5.2}\n",
        unit.name,
        whole(min),
        whole(max),
        mean / unit.ns as f64,
        deviation / unit.ns as f64
    );
}

fn push_percentiles_of(out: &mut String, entry: &FioEntry<'_>, figures: &KindSums) {
    let (recording, shown) = (&entry.last.load().recording, FioJob::of(entry.last));
    for (wanted, label, histogram) in [
        (
            shown.percentiles_of_slat && recording.slat,
            "slat",
            &figures.slat,
        ),
        (
            shown.percentiles_of_clat && recording.clat,
            "clat",
            &figures.clat,
        ),
        (
            shown.percentiles_of_lat && recording.lat,
            "lat",
            &figures.lat,
        ),
    ] {
        if let Some(histogram) = histogram.as_ref().filter(|_| wanted) {
            push_percentiles(out, label, histogram, &entry.percentile_list());
        }
    }
    if !(shown.percentiles_of_clat || shown.percentiles_of_lat) {
        return;
    }
    let (label, priorities) = of_priorities(entry, figures);
    let all: u64 = priorities
        .iter()
        .map(|(.., histogram)| histogram.count())
        .sum();
    for (class, level, histogram) in priorities {
        #[expect(clippy::cast_precision_loss, reason = "printed with two decimals")]
        let share = 100.0 * histogram.count() as f64 / all as f64;
        let label = format!("{label} prio {class}/{level} ({share:.2}% of IOs)");
        push_percentiles(out, &label, histogram, &entry.percentile_list());
    }
}

fn push_percentiles(out: &mut String, label: &str, histogram: &Histogram, list: &[f64]) {
    const LINE: usize = 73;
    let values = percentiles(histogram, list);
    let (Some(min), Some(max)) = (
        values.iter().map(|v| v.1).min(),
        values.iter().map(|v| v.1).max(),
    ) else {
        return;
    };
    let unit = latency_unit(min, max);
    let places = precision(&values);
    let width = (max / unit.ns)
        .checked_ilog10()
        .map_or(1, |d| d as usize + 1)
        .max(5);
    let per_line = (LINE / (places + 10 + width)).max(1);
    push!(out, "    {label} percentiles ({}):\n", unit.name);
    for line in values.chunks(per_line) {
        let cells: Vec<String> = line
            .iter()
            .map(|(p, ns)| {
                let value = rounded_up(*ns, unit);
                format!(
                    " {p:percent$.places$}th=[{value:width$}]",
                    percent = places + 3
                )
            })
            .collect();
        push!(out, "     |{},\n", cells.join(","));
    }
    // The last entry has no comma.
    out.truncate(out.len() - 2);
    out.push('\n');
}

fn rounded_up(ns: u64, unit: LatencyUnit) -> u64 {
    (0..unit.steps).fold(ns, |value, _| value.div_ceil(1000))
}

fn push_samples(out: &mut String, figures: &KindSums, total: Option<Total>, formats: Formats) {
    if figures.bandwidth.count > 0 {
        push_bandwidth(out, &figures.bandwidth, total, formats);
    }
    let s = &figures.iops;
    if s.count > 0 {
        push!(
            out,
            "   iops        : min={:5.0}, max={:5.0}, avg={:5.2}, stdev={:5.2}, samples={}\n",
            s.min.floor(),
            s.max.floor(),
            s.mean,
            s.deviation(),
            s.count
        );
    }
}

fn push_bandwidth(out: &mut String, s: &Samples, total: Option<Total>, formats: Formats) {
    let bits = formats.rate == FigureUnit::BitPerSec;
    let step = if formats.base == Base::Binary {
        1024.0
    } else {
        1000.0
    };
    let (mut factor, mut name) = match (bits, formats.base) {
        (true, Base::Binary) => (8.0, "Kibit"),
        (true, Base::Decimal) => (8.0, "kbit"),
        (false, Base::Binary) => (1.0, "KiB"),
        (false, Base::Decimal) => (1.0, "kB"),
    };
    if s.mean * factor > step * step {
        factor /= step;
        name = if bits { "Mibit" } else { "MiB" };
    }
    push!(
        out,
        "   bw ({name:>5}/s): min={:5.0}, max={:5.0}, per={:3.2}%, avg={:5.2}, stdev={:5.2}, \
         samples={}\n",
        (s.min * factor).floor(),
        (s.max * factor).floor(),
        total.map_or(100.0, |t| t.share_of(s.mean)),
        s.mean * factor,
        s.deviation() * factor,
        s.count
    );
}

fn push_classes(out: &mut String, entry: &FioEntry<'_>) {
    let classes = classes(entry.total_latency().as_ref());
    let mut names: Vec<String> = LIMITS.map(|l| l.to_string()).to_vec();
    push_class_lines(out, "nsec", &names, &classes.nsec);
    push_class_lines(out, "usec", &names, &classes.usec);
    names.extend(["2000".to_owned(), ">=2000".to_owned()]);
    push_class_lines(out, "msec", &names, &classes.msec);
}

fn push_class_lines(out: &mut String, unit: &str, names: &[String], shares: &[f64]) {
    let shown: Vec<String> = names
        .iter()
        .zip(shares)
        .filter(|(_, share)| **share > 0.0)
        .map(|(name, share)| format!("{name}={share:3.2}%"))
        .collect();
    for line in shown.chunks(5) {
        push!(out, "  lat ({unit})   : {}\n", line.join(", "));
    }
}

fn push_sync(out: &mut String, entry: &FioEntry<'_>) {
    let figures = &entry.kinds[Kind::Sync.index()];
    if let Some(histogram) = figures.sync_latency() {
        out.push_str("  fsync/fdatasync/sync_file_range:\n");
        push_latency(out, "sync", Some(histogram));
        push_percentiles(out, "sync", histogram, &entry.percentile_list());
    }
}

fn push_rest(out: &mut String, entry: &FioEntry<'_>) {
    let cpu = &entry.cpu;
    push!(
        out,
        "  cpu          : usr={:3.2}%, sys={:3.2}%, ctx={}, majf={}, minf={}\n",
        entry.cpu_percent(cpu.user_ns.0),
        entry.cpu_percent(cpu.system_ns.0),
        cpu.voluntary_switches + cpu.involuntary_switches,
        cpu.major_faults,
        cpu.minor_faults
    );
    let depth = &entry.depth;
    push_shares(
        out,
        "  IO depths    : ",
        &DEPTHS,
        &depth.in_flight,
        entry.issued(),
    );
    push_shares(
        out,
        "     submit    : ",
        &BATCHES,
        &depth.submitted,
        depth.submitted.iter().sum(),
    );
    push_shares(
        out,
        "     complete  : ",
        &BATCHES,
        &depth.completed,
        depth.completed.iter().sum(),
    );
    let each = |get: fn(&KindSums) -> u64| -> String {
        Kind::DATA
            .map(|k| get(&entry.kinds[k.index()]).to_string())
            .join(",")
    };
    push!(
        out,
        "     issued rwts: total={},{} short={},0 dropped={},0\n",
        each(|f| f.issued),
        entry.kinds[Kind::Sync.index()].operations,
        each(|f| f.short),
        each(|f| f.dropped)
    );
    if entry.goes_on() {
        let errors = entry.errors;
        push!(
            out,
            "     errors    : total={}, first_error={}/<{}>\n",
            errors.total,
            errors.code,
            strerror(errors.code)
        );
    }
    if entry.started {
        push_latency_target(out, entry);
    }
    push_steady(out, entry);
}

fn push_shares(out: &mut String, label: &str, names: &[&str; 7], counts: &[u64; 7], total: u64) {
    let parts: Vec<String> = names
        .iter()
        .zip(shares(counts, total, 0.1))
        .map(|(name, share)| format!("{name}={share:3.1}%"))
        .collect();
    push!(out, "{label}{}\n", parts.join(", "));
}

fn push_group(
    out: &mut String,
    number: usize,
    totals: &Totals,
    (last, is_mixed): (&FioEntry<'_>, bool),
) {
    let Formats { base, rate, digits } = last.formats;
    push!(out, "\nRun status group {number} (all jobs):\n");
    for (label, total) in ["   READ", "  WRITE", "   TRIM", "  MIXED"]
        .iter()
        .zip(totals)
    {
        let Some(total) = total.filter(|t| t.bytes > 0) else {
            continue;
        };
        let label = if is_mixed { "  MIXED" } else { label };
        let speed = |base, value| scaled(value, digits, base, rate);
        let all = total.bytes_per_s();
        let (slow, fast) = total.rates;
        let other = base.other();
        push!(
            out,
            "{label}: bw={} ({}), {}-{} ({}-{}), io={} ({}), run={}-{}msec\n",
            speed(base, all),
            speed(other, all),
            speed(base, slow),
            speed(base, fast),
            speed(other, slow),
            speed(other, fast),
            scaled(total.bytes, digits, base, FigureUnit::Byte),
            scaled(total.bytes, digits, other, FigureUnit::Byte),
            milliseconds(total.runtimes_ns.0),
            milliseconds(total.runtimes_ns.1)
        );
    }
}
