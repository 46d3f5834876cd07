//! Options about groups, order, statistics and errors.

use weir_schema::{Kind, PerKind, Trace, errno};
use weir_units::Percent;

use super::needs;
use super::record::{Applied, Category, Env, OptionRecord, ValueKind, option};
use crate::diagnostic::Fault;
use crate::draft::{Draft, ExitWhat};
use crate::value::number::MILLISECONDS;

/// The last of the numbers that fio knows by name, from 1, and those beyond.
const LAST_NAMED: i32 = 34;
const ALSO_NAMED: [i32; 4] = [84, 110, 121, 122];

fn errno_of(text: &str) -> Result<i32, Fault> {
    let is_known = |number: &i32| *number <= LAST_NAMED || ALSO_NAMED.contains(number);
    let named = errno::number(text).filter(is_known);
    let number = named.or_else(|| text.parse().ok().filter(|n| (1..=4095).contains(n)));
    number.ok_or_else(|| {
        Fault::value(format!("unknown error `{text}`"))
            .label("expected a name such as ENOSPC, or a number")
            .peer(format!("Unknown error {text}, please use number value"))
            .piece(text)
    })
}

fn ignore_errors(draft: &mut Draft, text: &str, _: &Env<'_>) -> Applied {
    let mut lists = Vec::new();
    for list in text.split(',') {
        let words = list.split(':').map(str::trim).filter(|w| !w.is_empty());
        lists.push(words.map(errno_of).collect::<Result<Vec<_>, _>>()?);
    }
    if lists.get(2).is_some_and(|l| !l.is_empty()) || lists.len() > 3 {
        return Err(
            Fault::new("job.unsupported", "ignored verify errors need verification")
                .label("give lists for reads and writes only"),
        );
    }
    let mut lists = lists.into_iter();
    let read = lists.next().unwrap_or_default();
    let write = lists.next().unwrap_or_default();
    // As in fio, the list stands for the errors after which a job goes on otherwise.
    let on = &mut draft.errors.go_on;
    on.read |= !read.is_empty();
    on.write |= !write.is_empty();
    on.trim |= !write.is_empty();
    draft.errors.ignore = PerKind::from_fn(|kind| match kind {
        Kind::Read => read.clone(),
        _ => write.clone(),
    });
    Ok(())
}

fn go_on(draft: &mut Draft, word: &str) {
    draft.errors.go_on = match word {
        "read" => PerKind::only(Kind::Read, true),
        "write" => PerKind::from_fn(|kind| kind != Kind::Read),
        "io" | "all" | "1" => PerKind::all(true),
        _ => PerKind::all(false),
    };
    draft.errors.go_on_mismatch = matches!(word, "verify" | "all" | "1");
}

fn unify(draft: &mut Draft, word: &str) {
    draft.recording.unify_kinds = matches!(word, "mixed" | "1");
    draft.fio.unify_too = matches!(word, "both" | "2");
}

fn unit_prefix(draft: &mut Draft, word: &str) {
    draft.kb_base = if word == "1000" { 1000 } else { 1024 };
}

/// As in fio it sets the options below it, for those that stand behind it to change.
fn reduce_clock_reads(draft: &mut Draft, on: bool) {
    if !on {
        return;
    }
    let r = &mut draft.recording;
    (r.slat, r.clat, r.lat, r.bandwidth) = (false, false, false, false);
    let shown = &mut draft.fio;
    shown.percentiles_of_slat = false;
    shown.percentiles_of_clat = false;
    shown.percentiles_of_lat = false;
}

pub(super) static RECORDS: &[OptionRecord] = &[
    option("stonewall", "Wait for everything before; a new group")
        .of(Category::Report)
        .aliases(&["wait_for_previous"])
        .flag(|d, on| d.stonewall = on),
    option("new_group", "A new reporting group").of(Category::Report).flag(|d, on| d.new_group = on),
    option("wait_for", "Start when this earlier job has ended").of(Category::Report).text(|d, v, _| {
        d.wait_for = Some(v.to_owned());
        Ok(())
    }),
    option("group_reporting", "All jobs of a group are one entry of the report")
        .of(Category::Report)
        .flag(|d, on| d.merge = on),
    option("stats", "The job appears in the report")
        .of(Category::Report)
        .bool(|d, on| d.hidden = !on)
        .default("1"),
    option("exitall", "The job's end stops others").of(Category::Report).flag(|d, on| d.exit_all = on),
    option("exit_what", "What exitall stops")
        .needs(needs::EXIT_ALL)
        .of(Category::Report).default("group").words(
        &[
            ("group", "exit_all=1 default behaviour"),
            ("stonewall", "quit all currently running jobs; continue with next stonewall"),
            ("all", "Quit everything"),
        ],
        |d, word| {
            d.exit_what = match word {
                "stonewall" => ExitWhat::Running,
                "all" => ExitWhat::Everything,
                _ => ExitWhat::Group,
            };
        },
    ),
    option("exitall_on_error", "The job's failure stops the others of its group")
        .of(Category::Report)
        .flag(|d, on| d.exit_all_on_error = on),
    option("clat_percentiles", "Percentiles of completion latency")
        .needs(needs::FIO_OUTPUT)
        .of(Category::Report)
        .bool(|d, on| d.fio.percentiles_of_clat = on)
        .default("1"),
    option("lat_percentiles", "Percentiles of total latency")
        .needs(needs::FIO_OUTPUT)
        .of(Category::Report)
        .bool(|d, on| d.fio.percentiles_of_lat = on),
    option("slat_percentiles", "Percentiles of submission latency")
        .needs(needs::FIO_OUTPUT)
        .of(Category::Report)
        .bool(|d, on| d.fio.percentiles_of_slat = on),
    option("percentile_list", "Which percentiles are reported")
        .of(Category::Report)
        .default("1:5:10:20:30:40:50:60:70:80:90:95:99:99.5:99.9:99.95:99.99")
        .long("At most 20, each above 0 and up to 100. weir's own report shows 50, 90, 99 and 99.9 when it is not given.")
        .numbers(0.0, 100.0, 20, |d, mut list| {
            list.sort_by(f64::total_cmp);
            d.recording.percentiles = list.into_iter().map(Percent).collect();
        }),
    option("disable_lat", "Total latency is not recorded")
        .of(Category::Report)
        .bool(|d, on| d.recording.lat = !on),
    option("disable_clat", "Completion latency is not recorded")
        .of(Category::Report)
        .bool(|d, on| d.recording.clat = !on),
    option("disable_slat", "Submission latency is not recorded")
        .of(Category::Report)
        .bool(|d, on| d.recording.slat = !on),
    option("disable_bw_measurement", "Bandwidth samples are not taken")
        .of(Category::Report)
        .aliases(&["disable_bw"])
        .bool(|d, on| d.recording.bandwidth = !on),
    option("gtod_reduce", "No latencies, no bandwidth samples")
        .of(Category::Report)
        .long("As disable_lat, disable_clat, disable_slat and disable_bw_measurement, and no percentiles. Of these options, those behind it win.")
        .bool(reduce_clock_reads),
    option("bwavgtime", "Length of bandwidth samples")
        .of(Category::Report)
        .default("500")
        .long("Milliseconds without a suffix.")
        .duration(MILLISECONDS, |d, t| d.recording.bandwidth_sample_ns = t),
    option("iopsavgtime", "Length of IOPS samples")
        .of(Category::Report)
        .default("500")
        .long("Milliseconds without a suffix.")
        .duration(MILLISECONDS, |d, t| d.recording.iops_sample_ns = Some(t)),
    option("unified_rw_reporting", "Reads, writes and trims are one kind in the report")
        .of(Category::Report)
        .long("With `both` fio's reports show them apart and together; weir's own shows them apart.")
        .default("none")
        .words(
            &[
                ("none", "Normal statistics reporting"),
                ("mixed", "Statistics are summed per data direction and reported together"),
                ("both", "Statistics are reported normally, followed by the mixed statistics"),
                ("0", "Alias for 'none'"),
                ("1", "Alias for 'mixed'"),
                ("2", "Alias for 'both'"),
            ],
            unify,
        ),
    option("disk_util", "Disk counters before and after")
        .of(Category::Report)
        .bool(|d, on| d.recording.disk_counters = on)
        .default("1"),
    option("trace", "CSV file with a line per operation")
        .of(Category::Log)
        .long("weir's own.")
        .text(|d, v, _| {
            d.recording.trace = Some(Trace { path: v.to_owned() });
            Ok(())
        }),
    option("continue_on_error", "Failed operations are counted and the job goes on")
        .of(Category::Report)
        .long("After EIO, or after the errors of ignore_error; every other error ends the job.")
        .default("none")
        .words(
            &[
                ("none", "Exit when an error is encountered"),
                ("read", "Continue on read errors only"),
                ("write", "Continue on write errors only"),
                ("io", "Continue on any IO errors"),
                ("verify", "Continue on verify errors only"),
                ("all", "Continue on all io and verify errors"),
                ("0", "Alias for 'none'"),
                ("1", "Alias for 'all'"),
            ],
            go_on,
        ),
    option("ignore_error", "Errors that are no failures")
        .of(Category::Report)
        .long("`read list,write list`; names or numbers separated by `:`.")
        .text(ignore_errors),
    option("error_dump", "Print each error")
        .needs(needs::ERRORS)
        .of(Category::Report)
        .long("Failed operations after which the job goes on; the first 1000 of each worker.")
        .bool(|d, on| d.errors.report_errors = on),
    // The unit base is set before any other option is applied.
    option("kb_base", "What k means: 1024 or 1000")
        .of(Category::Report)
        .default("1024")
        .words(
            &[
                ("1024", "Inputs invert IEC and SI prefixes (for compatibility); outputs prefer binary"),
                ("1000", "Inputs use IEC and SI prefixes; outputs prefer SI"),
            ],
            unit_prefix,
        ),
    option("unit_base", "Bits or bytes in fio's text")
        .needs(needs::FIO_OUTPUT)
        .of(Category::Report)
        .default("0")
        .long("Used by fio's text output alone.")
        .echoed(ValueKind::Words {
            words: &[
                ("0", "Auto-detect"),
                ("8", "Normal (byte based)"),
                ("1", "Bit based"),
            ],
            tail: false,
        }),
    option("significant_figures", "Digits in fio's text")
        .needs(needs::FIO_OUTPUT)
        .of(Category::Report)
        .default("4")
        .long("Used by fio's text output alone.")
        .echoed(ValueKind::Integer { min: 1, max: 10 }),
];
