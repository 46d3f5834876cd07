//! fio's JSON report: the same keys in the same order with the same number formats.
//!
//! In: a result. Out: one document that ends in a newline. What fio has no key for stands under
//! one extra key, `weir`, at the end; strict readers of fio's output are not disturbed.

use serde_json::{Map, Value, json};
use weir_jobfile::{FioJob, FioPlan};
use weir_schema::{DiskCounters, Job, Kind, Plan, RunResult, Word};
use weir_stats::Histogram;

use super::course::{put_latency_target, put_steady};
use super::disks::{below, utilisation};
use super::entry::{FioEntry, TOGETHER, Total, Totals, entries, totals};
use super::idleness::Idleness;
use super::kind_sums::{KindSums, Latency, milliseconds};
use super::latency::{BATCHES, DEPTHS, LIMITS, classes, percentiles, shares};
use super::{FioTextOptions, end_ns, version_text, write};
use crate::date::ctime;
use crate::fio::echo::{global_words, opened_by_word};

/// Value that fio prints for a time that it cannot estimate.
const NEVER: u64 = 2_147_483_647;

/// The document as fio 3.33 writes it; with the idleness of the CPUs where it was measured.
pub fn json(result: &RunResult, options: FioTextOptions, idleness: Option<&Idleness>) -> String {
    let entries = entries(result);
    let totals: Vec<_> = (0..result.groups.len())
        .map(|g| totals(&entries, g))
        .collect();
    let end = end_ns(result);
    let mut root = Map::new();
    put(
        &mut root,
        "fio version",
        version_text(options, &result.weir_version, "-"),
    );
    put(&mut root, "timestamp", end / 1_000_000_000);
    put(&mut root, "timestamp_ms", end / 1_000_000);
    put(&mut root, "time", ctime(options.local_seconds(result)));
    // Of several files fio repeats the last one's.
    let global = global_words(&result.plan).into_iter();
    let global = global.filter(|(_, reach)| reach.until.is_none());
    let global = global.map(|(word, _)| word);
    let global = words(global);
    if !global.is_empty() {
        put(&mut root, "global options", global);
    }
    let elapsed = result.duration_ns.0.div_ceil(1_000_000_000);
    let jobs = entries.iter().map(|e| {
        let total = totals.get(e.group).copied().unwrap_or_default();
        Value::Object(job(&result.plan, e, &total, elapsed, options.bins))
    });
    put(&mut root, "jobs", jobs.collect::<Vec<_>>());
    if !result.disks.is_empty() {
        put(
            &mut root,
            "disk_util",
            result.disks.iter().map(disk).collect::<Vec<_>>(),
        );
    }
    if let Some(idleness) = idleness {
        put(&mut root, "cpu_idleness", idleness.object());
    }
    put(&mut root, "weir", own(result, &entries, options));
    let document = Value::Object(root);
    if options.one_line {
        document.to_string() + "\n"
    } else {
        write::document(&document)
    }
}

fn put(into: &mut Map<String, Value>, key: &str, value: impl Into<Value>) {
    into.insert(key.to_owned(), value.into());
}

/// Options as given; a bare flag reads `1`.
fn words<'a>(words: impl Iterator<Item = &'a Word>) -> Map<String, Value> {
    let text = |w: &Word| w.value.clone().unwrap_or_else(|| "1".to_owned());
    words.map(|w| (w.key.clone(), text(w).into())).collect()
}

/// The job's own options; with its name first if the command line opened it.
fn job_options(plan: &Plan, job: &Job) -> Map<String, Value> {
    let mut out = Map::new();
    if opened_by_word(plan, &job.name) {
        put(&mut out, "name", job.name.as_str());
    }
    out.extend(words(job.words.iter()));
    out
}

fn job(
    plan: &Plan,
    entry: &FioEntry<'_>,
    totals: &Totals,
    elapsed: u64,
    bins: bool,
) -> Map<String, Value> {
    let mut out = Map::new();
    put(&mut out, "jobname", entry.job.name.as_str());
    put(&mut out, "groupid", entry.group);
    put(&mut out, "error", entry.errno());
    put(&mut out, "eta", NEVER);
    put(&mut out, "elapsed", elapsed);
    let options = job_options(plan, entry.last);
    if !options.is_empty() {
        put(&mut out, "job options", options);
    }
    for (kind, name, figures) in entry.directions() {
        put(
            &mut out,
            name,
            direction(entry, figures, totals[kind.index()], bins),
        );
    }
    if !entry.is_unified() {
        put(&mut out, "sync", sync(entry, bins));
    }
    if let Some(together) = &entry.together {
        let mixed = direction(entry, together, totals[TOGETHER], bins);
        put(&mut out, "mixed", mixed);
    }
    put_usage(&mut out, entry);
    put_classes(&mut out, entry);
    if entry.goes_on() {
        put(&mut out, "total_err", entry.errors.total);
        put(&mut out, "first_error", entry.errors.code);
    }
    if entry.started {
        put_latency_target(&mut out, entry);
    }
    if let Some(text) = entry.job.description.as_deref().filter(|t| !t.is_empty()) {
        put(&mut out, "desc", text);
    }
    put_steady(&mut out, entry);
    out
}

#[expect(
    clippy::cast_precision_loss,
    reason = "fio computes the same quotient in a double"
)]
fn direction(
    entry: &FioEntry<'_>,
    figures: &KindSums,
    total: Option<Total>,
    bins: bool,
) -> Map<String, Value> {
    let (recording, shown) = (&entry.last.load().recording, FioJob::of(entry.last));
    let seconds = figures.runtime_ns as f64 / 1e9;
    let mut out = Map::new();
    put(&mut out, "io_bytes", figures.bytes);
    put(&mut out, "io_kbytes", figures.bytes / 1024);
    put(&mut out, "bw_bytes", figures.bytes_per_s());
    put(&mut out, "bw", figures.bytes_per_s() / 1024);
    put(
        &mut out,
        "iops",
        if seconds > 0.0 {
            figures.operations as f64 / seconds
        } else {
            0.0
        },
    );
    put(&mut out, "runtime", figures.runtime_ms());
    put(&mut out, "total_ios", figures.operations);
    put(&mut out, "short_ios", figures.short);
    put(&mut out, "drop_ios", figures.dropped);
    for (key, histogram, wanted) in [
        (
            "slat_ns",
            &figures.slat,
            shown.percentiles_of_slat && recording.slat,
        ),
        (
            "clat_ns",
            &figures.clat,
            shown.percentiles_of_clat && recording.clat,
        ),
        (
            "lat_ns",
            &figures.lat,
            shown.percentiles_of_lat && recording.lat,
        ),
    ] {
        put(
            &mut out,
            key,
            latency(entry, histogram.as_ref(), wanted, bins),
        );
    }
    put_priorities(&mut out, entry, figures, bins);
    let (bw, iops) = (&figures.bandwidth, &figures.iops);
    let share = total
        .filter(|_| bw.count > 0)
        .map_or(0.0, |t| t.share_of(bw.mean));
    put(&mut out, "bw_min", floor(bw.min));
    put(&mut out, "bw_max", floor(bw.max));
    put(&mut out, "bw_agg", share);
    put(&mut out, "bw_mean", bw.mean);
    put(&mut out, "bw_dev", bw.deviation());
    put(&mut out, "bw_samples", bw.count);
    put(&mut out, "iops_min", floor(iops.min));
    put(&mut out, "iops_max", floor(iops.max));
    put(&mut out, "iops_mean", iops.mean);
    put(&mut out, "iops_stddev", iops.deviation());
    put(&mut out, "iops_samples", iops.count);
    out
}

/// Latencies of each I/O priority, where several occur.
fn put_priorities(
    out: &mut Map<String, Value>,
    entry: &FioEntry<'_>,
    figures: &KindSums,
    bins: bool,
) {
    let shown = FioJob::of(entry.last);
    let key = if shown.percentiles_of_lat {
        "lat_ns"
    } else {
        "clat_ns"
    };
    let wanted = shown.percentiles_of_clat || shown.percentiles_of_lat;
    let of_priorities = figures.of_priorities(shown.percentiles_of_lat);
    let one = |(class, level, histogram): (u16, u16, &Histogram)| {
        let mut one = Map::new();
        put(&mut one, "prioclass", class);
        put(&mut one, "prio", level);
        put(&mut one, key, latency(entry, Some(histogram), wanted, bins));
        Value::Object(one)
    };
    let list: Vec<Value> = of_priorities.into_iter().map(one).collect();
    if !list.is_empty() {
        put(out, "prios", list);
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates"
)]
fn floor(value: f64) -> u64 {
    value as u64
}

fn latency(
    entry: &FioEntry<'_>,
    histogram: Option<&Histogram>,
    wanted: bool,
    bins: bool,
) -> Map<String, Value> {
    let figures = Latency::of(histogram);
    let mut out = Map::new();
    put(&mut out, "min", figures.min);
    put(&mut out, "max", figures.max);
    put(&mut out, "mean", figures.mean);
    put(&mut out, "stddev", figures.deviation);
    put(&mut out, "N", figures.count);
    let Some(histogram) = histogram.filter(|h| wanted && !h.is_empty()) else {
        return out;
    };
    let values = percentiles(histogram, &entry.percentile_list());
    if !values.is_empty() {
        let named = values
            .iter()
            .map(|(p, ns)| (format!("{p:.6}"), (*ns).into()));
        put(&mut out, "percentile", named.collect::<Map<_, _>>());
    }
    if bins {
        let counts = histogram
            .buckets()
            .map(|b| (b.middle.to_string(), b.count.into()));
        put(&mut out, "bins", counts.collect::<Map<_, _>>());
    }
    out
}

fn sync(entry: &FioEntry<'_>, bins: bool) -> Map<String, Value> {
    let shown = FioJob::of(entry.last);
    let figures = &entry.kinds[Kind::Sync.index()];
    let wanted = shown.percentiles_of_lat || shown.percentiles_of_clat || shown.percentiles_of_slat;
    let mut out = Map::new();
    put(&mut out, "total_ios", figures.operations);
    put(
        &mut out,
        "lat_ns",
        latency(entry, figures.sync_latency(), wanted, bins),
    );
    out
}

fn put_usage(out: &mut Map<String, Value>, entry: &FioEntry<'_>) {
    let cpu = &entry.cpu;
    put(out, "job_runtime", milliseconds(entry.wall_ns));
    put(out, "usr_cpu", entry.cpu_percent(cpu.user_ns.0));
    put(out, "sys_cpu", entry.cpu_percent(cpu.system_ns.0));
    put(
        out,
        "ctx",
        cpu.voluntary_switches + cpu.involuntary_switches,
    );
    put(out, "majf", cpu.major_faults);
    put(out, "minf", cpu.minor_faults);
    let depth = &entry.depth;
    let (submitted, completed) = (depth.submitted.iter().sum(), depth.completed.iter().sum());
    let level = shares(&depth.in_flight, entry.issued(), 0.1);
    put(out, "iodepth_level", table(DEPTHS, level));
    put(
        out,
        "iodepth_submit",
        table(BATCHES, shares(&depth.submitted, submitted, 0.1)),
    );
    put(
        out,
        "iodepth_complete",
        table(BATCHES, shares(&depth.completed, completed, 0.1)),
    );
}

fn table<const N: usize>(names: [&str; N], shares: [f64; N]) -> Map<String, Value> {
    names
        .iter()
        .zip(shares)
        .map(|(n, s)| ((*n).to_owned(), s.into()))
        .collect()
}

fn put_classes(out: &mut Map<String, Value>, entry: &FioEntry<'_>) {
    let classes = classes(entry.total_latency().as_ref());
    let names = || LIMITS.iter().map(ToString::to_string);
    let object = |names: &mut dyn Iterator<Item = String>, shares: &[f64]| -> Map<String, Value> {
        names.zip(shares).map(|(n, s)| (n, (*s).into())).collect()
    };
    let open = ["2000".to_owned(), ">=2000".to_owned()];
    put(out, "latency_ns", object(&mut names(), &classes.nsec));
    put(out, "latency_us", object(&mut names(), &classes.usec));
    put(
        out,
        "latency_ms",
        object(&mut names().chain(open), &classes.msec),
    );
}

fn disk(disk: &DiskCounters) -> Value {
    let mut out = Map::new();
    put(&mut out, "name", disk.device.as_str());
    put_disk(&mut out, disk, "", "write_merges", utilisation(disk));
    if !disk.members.is_empty() {
        let (mean, most) = below(disk);
        put_disk(&mut out, &mean, "aggr_", "write_merge", most);
    }
    Value::Object(out)
}

/// fio spells one key of the aggregate without its plural.
fn put_disk(
    out: &mut Map<String, Value>,
    disk: &DiskCounters,
    prefix: &str,
    write_merges: &str,
    util: f64,
) {
    const MS: u64 = 1_000_000;
    for (key, value) in [
        ("read_ios", disk.read_operations),
        ("write_ios", disk.write_operations),
        ("read_merges", disk.read_merges),
        (write_merges, disk.write_merges),
        ("read_ticks", disk.read_ns.0 / MS),
        ("write_ticks", disk.write_ns.0 / MS),
        ("in_queue", disk.in_queue_ns.0 / MS),
    ] {
        put(out, &format!("{prefix}{key}"), value);
    }
    put(out, &format!("{prefix}util"), util);
}

/// Figures that fio's document has no place for.
fn own(result: &RunResult, entries: &[FioEntry<'_>], options: FioTextOptions) -> Value {
    let groups: Vec<Value> = result
        .groups
        .iter()
        .enumerate()
        .flat_map(|(number, group)| {
            group.rates.iter().map(move |rates| {
                let mut value = json!({
                    "group": number,
                    "kind": rates.kind.as_str(),
                    "operations": rates.operations,
                    "io_bytes": rates.bytes.0,
                    "bw_bytes": floor(rates.bytes_per_s.0),
                    "iops": rates.ops_per_s.0,
                });
                if let (Some(map), Some(overlap)) =
                    (value.as_object_mut(), rates.overlap_bytes_per_s)
                {
                    put(map, "bw_overlap", floor(overlap.0));
                }
                value
            })
        })
        .collect();
    let mut out = Map::new();
    put(&mut out, "version", result.weir_version.as_str());
    put(&mut out, "schema", result.schema.as_str());
    put(&mut out, "complete", result.complete);
    if options.partial {
        put(&mut out, "partial", true);
    }
    if let Some(end) = result.ended_by {
        put(&mut out, "ended_by_signal", end.signal);
    }
    put(&mut out, "groups", groups);
    let responses = responses(entries);
    if !responses.is_empty() {
        put(&mut out, "rlat_ns", responses);
    }
    let notes = FioPlan::of(&result.plan).notes;
    if !notes.is_empty() {
        put(&mut out, "notes", notes);
    }
    // Reports of a run that goes on come in numbers; the last one has the plan.
    let plan = (!options.partial).then(|| ("plan", weir_schema::json::value(&result.plan)));
    for (key, value) in plan.into_iter().chain([
        ("warnings", weir_schema::json::value(&result.warnings)),
        ("environment", weir_schema::json::value(&result.host)),
    ]) {
        if let Ok(mut value) = value {
            if let Some(facts) = value.as_object_mut() {
                facts.retain(|_, fact| !fact.is_null());
            }
            put(&mut out, key, value);
        }
    }
    Value::Object(out)
}

/// Latency from the intended start, of jobs that had a schedule.
fn responses(entries: &[FioEntry<'_>]) -> Vec<Value> {
    let mut found = Vec::new();
    for entry in entries {
        for (_, name, figures) in entry.directions().filter(|(.., f)| f.rlat.is_some()) {
            let mut named = Map::new();
            put(&mut named, "jobname", entry.job.name.as_str());
            put(&mut named, "groupid", entry.group);
            put(&mut named, "kind", name);
            named.append(&mut latency(entry, figures.rlat.as_ref(), true, false));
            found.push(Value::Object(named));
        }
    }
    found
}
