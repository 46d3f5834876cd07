//! Accepting and refusing, side by side with an installed fio.
//!
//! Each line is one job's option. Where weir means to differ it says so in the list.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests fail by panicking, and say what they skip"
)]

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::setting::file;
use weir_jobfile::{OptionRecord, Scope, Support, ValueKind, find_option, option_records};

/// Treatment of a line by both programs, or their difference.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Verdict {
    Accept,
    Refuse,
    /// fio takes it and weir does not, on purpose.
    Stricter,
    /// weir takes it and fio does not, on purpose.
    Wider,
}
use Verdict::{Accept, Refuse, Stricter, Wider};

const LINES: &[(&str, Verdict)] = &[
    ("bs=4k", Accept),
    ("bs=4k,8k", Accept),
    ("bs=,8k", Accept),
    ("bs=4k-8k", Accept),
    ("bs=4k:8k:16k", Accept),
    ("bs=0x1000", Accept),
    ("bs=4KiB", Accept),
    ("bs=0", Refuse),
    ("bs=4z", Refuse),
    ("bs=1x", Accept),
    ("size=65536)", Accept),
    ("size=50%x", Stricter),
    ("bsrange=512/25:1k:25:2k:25:4k/25", Accept),
    ("rwmixread=50%", Stricter),
    ("runtime=10x", Stricter),
    ("dedupe_global=1", Accept),
    ("threads=2", Accept),
    ("random_distribution=zoned:50/5:30/15:20/", Accept),
    ("ioengine=cpp_null", Stricter),
    ("bs=4k,4k,4k,4k", Stricter),
    ("bs = 4k", Accept),
    ("rw = read", Wider),
    ("rw=read", Accept),
    ("rw=foo", Refuse),
    ("rw=randread:8", Accept),
    ("rw=write:-4k", Accept),
    ("rw=randread:0", Stricter),
    ("rwmixread=150", Refuse),
    ("rwmixread=100", Accept),
    ("bsrange=4k-16k,1k-2k", Accept),
    ("bsrange=16k-4k", Accept),
    ("bssplit=4k/60:64k/", Accept),
    ("bssplit=4k/60:8k/50:1k:2k", Refuse),
    ("bssplit=4k/50:8k/40", Stricter),
    ("size=10%", Accept),
    ("size=4kz", Refuse),
    ("size", Refuse),
    ("size=0", Stricter),
    ("io_size=200%", Refuse),
    ("size=(4*1024)", Wider),
    ("size=2*$pagesize", Accept),
    ("size=${WEIR_NOT_SET}", Refuse),
    ("direct=1", Accept),
    ("direct=2", Refuse),
    ("direct=yes", Wider),
    ("stonewall", Accept),
    ("stonewall=yes", Wider),
    ("bsz=1", Refuse),
    ("hipri", Refuse),
    ("iodepth=0", Refuse),
    ("iodepth_batch=0", Accept),
    ("numjobs=0", Stricter),
    ("nrfiles=0", Stricter),
    ("nice=-20", Accept),
    ("nice=-50", Refuse),
    ("runtime=10s", Accept),
    ("runtime=1.5", Accept),
    ("runtime=abc", Refuse),
    ("startdelay=1-2", Accept),
    ("ramp_time=500ms", Accept),
    ("thinktime=10ms", Accept),
    ("max_latency=10ms", Accept),
    ("rate=4m,8m", Accept),
    ("rate_process=poisson", Accept),
    ("rate_process=normal", Refuse),
    ("random_distribution=zipf:1.2", Accept),
    ("random_distribution=zipf:1.0", Refuse),
    ("random_distribution=zipf:0", Stricter),
    ("random_distribution=pareto:2", Refuse),
    ("random_distribution=zoned:60/10:40/90", Accept),
    ("random_distribution=zoned:60/10:30/20", Refuse),
    ("random_generator=lfsr", Accept),
    ("random_generator=mersenne", Refuse),
    ("percentage_random=101", Refuse),
    ("randseed=0x12", Accept),
    ("percentile_list=50:99.9", Accept),
    ("percentile_list=101", Refuse),
    ("cpus_allowed=0", Accept),
    ("cpus_allowed=9999", Stricter),
    ("buffer_pattern=0xdeadbeef\"x\"12", Accept),
    ("buffer_pattern=0x", Refuse),
    ("mem=mmap", Accept),
    ("mem=foo", Refuse),
    ("sync=dsync", Accept),
    ("sync=maybe", Refuse),
    ("fallocate=keep", Accept),
    ("continue_on_error=io", Accept),
    ("continue_on_error=2", Refuse),
    ("ignore_error=EIO,ENOSPC:5", Accept),
    ("ignore_error=EFOO", Stricter),
    ("exit_what=all", Accept),
    ("exit_what=some", Refuse),
    ("kb_base=2000", Refuse),
    ("significant_figures=11", Refuse),
    ("unified_rw_reporting=mixed", Accept),
    ("zero_buffers", Accept),
    ("zero_buffers=2", Stricter),
    ("directory=", Refuse),
    ("description=a b;c#d", Accept),
    ("verify=md5", Accept),
    ("write_bw_log=x", Accept),
    ("write_bw_log", Accept),
    ("write_lat_log=", Stricter),
    ("log_avg_msec=100", Accept),
    ("log_entries=1", Refuse),
    ("log_hist_coarseness=7", Stricter),
    ("log_compression=64k", Accept),
    ("thinktime_blocks_type=issue", Accept),
    ("iopsavgtime=100", Accept),
    ("latency_target=5ms", Accept),
    ("flow=1001", Refuse),
    ("zonemode=none", Accept),
    ("steadystate=iops:2%", Accept),
    ("ss=bw_slope:10m", Accept),
    ("steadystate=iops", Refuse),
    ("steadystate=iops:x", Refuse),
    ("steadystate=best:1", Refuse),
];

fn text(line: &str) -> String {
    format!("[a]\nsize=1m\n{line}\n")
}

/// True if fio parses a job file.
fn fio_accepts(text: &str) -> Option<bool> {
    let mut child = Command::new("fio")
        .args(["--parse-only", "-"])
        .env_remove("WEIR_NOT_SET")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    child.stdin.take()?.write_all(text.as_bytes()).ok()?;
    child.wait().ok().map(|status| status.success())
}

/// Reason that the installed fio cannot be asked.
fn fio_is_missing() -> Option<String> {
    let version = Command::new("fio").arg("--version").output();
    match version.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned()) {
        Ok(version) if version == "fio-3.33" => None,
        Ok(other) => Some(format!("{other} is installed, not fio-3.33")),
        Err(_) => Some("fio is not installed".to_owned()),
    }
}

/// Says that a check did not run, where the test harness does not swallow it.
fn skipped(name: &str, reason: &str) {
    println!("SKIPPED: {name}: {reason}");
    let Ok(path) = std::env::var("WEIR_SKIP_LOG") else {
        return;
    };
    let log = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(path);
    if let Ok(mut log) = log {
        let _ = writeln!(log, "{name}: {reason}");
    }
}

#[test]
fn lines_are_accepted_and_refused_as_the_list_says() {
    for (line, verdict) in LINES {
        let accepted = file(&text(line)).is_ok();
        assert_eq!(accepted, matches!(verdict, Accept | Wider), "{line}");
    }
}

#[test]
fn fio_accepts_and_refuses_the_same_lines() {
    if let Some(reason) = fio_is_missing() {
        return skipped("fio_accepts_and_refuses_the_same_lines", &reason);
    }
    // fio leaves arithmetic to this program.
    let calculates = Command::new("bc").arg("--version").output().is_ok();
    let (taken, refused): (Vec<_>, Vec<_>) = LINES
        .iter()
        .filter(|(line, _)| calculates || !line.contains("*$"))
        .partition(|(_, verdict)| matches!(verdict, Accept | Stricter));
    // One run for all that fio takes: a start of fio costs a tenth of a second.
    let all: String = taken.iter().map(|(line, _)| text(line)).collect();
    let mut wrong: Vec<&str> = Vec::new();
    if fio_accepts(&all) != Some(true) {
        let one = |(line, _): &&(&'static str, Verdict)| fio_accepts(&text(line)) != Some(true);
        wrong.extend(taken.iter().filter(one).map(|(line, _)| *line));
    }
    let one = |(line, _): &&(&'static str, Verdict)| fio_accepts(&text(line)) != Some(false);
    wrong.extend(refused.iter().filter(one).map(|(line, _)| *line));
    assert!(wrong.is_empty(), "fio decides otherwise: {wrong:#?}");
}

/// Options whose bounds or words differ from fio's on purpose: weir refuses what makes no sense,
/// or keeps the number in 32 bits.
const OWN_BOUNDS: &[&str] = &[
    "bs",
    "ba",
    "cpumask",
    "filesize",
    "hugepage-size",
    "loops",
    "nrfiles",
    "numjobs",
    "openfiles",
    "buffer_compress_chunk",
    "log_hist_coarseness",
    "thinktime_blocks",
    "numa_mem_policy",
    "open_loop",
    "verify_compat",
];

#[test]
fn records_have_the_bounds_and_words_that_fio_prints() {
    if let Some(reason) = fio_is_missing() {
        return skipped("records_have_the_bounds_and_words_that_fio_prints", &reason);
    }
    for record in option_records() {
        if record.scope != Scope::Job || OWN_BOUNDS.contains(&record.name) {
            continue;
        }
        let (min, max, words) = match record.value {
            ValueKind::Integer { min, max } | ValueKind::Triple { min, max } => {
                (min.to_string(), max.to_string(), &[][..])
            }
            ValueKind::Signed { min, max } => (min.to_string(), max.to_string(), &[][..]),
            ValueKind::Words { words, .. } => (String::new(), String::new(), words),
            _ => continue,
        };
        let output = Command::new("fio")
            .arg(format!("--cmdhelp={}", record.name))
            .output();
        let help = String::from_utf8(output.unwrap().stdout).unwrap();
        if let Some(range) = help.lines().find_map(|l| l.trim().strip_prefix("range: ")) {
            let (low, high) = range.split_once(", ").unwrap_or((range, "max=-1"));
            assert_eq!(low, format!("min={min}"), "{}", record.name);
            // -1 stands for no limit, which is weir's for 32 or 64 bits.
            let unlimited = max == u64::MAX.to_string() || max == u32::MAX.to_string();
            let max = if unlimited { "-1" } else { max.as_str() };
            assert_eq!(high, format!("max={max}"), "{}", record.name);
        }
        for (word, meaning) in words {
            // fio prints nothing for words without a meaning.
            let line = format!(": {word:<10} {meaning}");
            assert!(
                meaning.is_empty() || help.contains(&line),
                "{}={word}",
                record.name
            );
        }
    }
}

/// Defaults that fio has and does not print; as here, they hold when the option is not given.
const UNTOLD_DEFAULTS: &[(&str, &str)] = &[
    ("cpus_allowed_policy", "shared"),
    ("numa_mem_policy", "default"),
];

/// Text of fio's help behind such a word.
fn help_value<'a>(help: &'a str, word: &str) -> Option<&'a str> {
    let mut lines = help.lines().map(str::trim);
    lines.find_map(|line| line.strip_prefix(word)?.strip_prefix(": "))
}

/// True if a value is of the kind that fio's help names.
fn is_of(value: ValueKind, said: &str) -> bool {
    use ValueKind as V;
    let is = |kind: &str| said.starts_with(kind);
    match value {
        V::Flag => is("empty or boolean value"),
        V::Bool => is("boolean value"),
        V::Signed { .. } | V::Triple { .. } => is("integer value"),
        V::Duration { .. } => is("string with time postfix") || is("integer value"),
        V::Numbers { .. } => is("list of floating point values"),
        // fio reads numbers of 64 bits as a string, and has no name for sizes.
        V::Integer { .. } => is("integer value") || is("string (") || is("(null)"),
        V::Size { .. } => is("(null)"),
        // Words and grammars of their own: anything but a switch.
        V::Words { .. } | V::Text | V::OptionalText => !said.contains("boolean"),
    }
}

#[test]
fn records_have_the_types_defaults_and_aliases_that_fio_prints() {
    let name = "records_have_the_types_defaults_and_aliases_that_fio_prints";
    if let Some(reason) = fio_is_missing() {
        return skipped(name, &reason);
    }
    let mut wrong = Vec::new();
    let mut seen = 0;
    let jobs =
        |record: &&OptionRecord| record.scope == Scope::Job && record.support == Support::Supported;
    for record in option_records().filter(jobs) {
        let argument = format!("--cmdhelp={}", record.name);
        let output = Command::new("fio").arg(argument).output().unwrap();
        let help = String::from_utf8(output.stdout).unwrap();
        let Some(kind) = help_value(&help, "type") else {
            continue; // An option of weir's own.
        };
        seen += 1;
        if !is_of(record.value, kind) {
            wrong.push(format!("{}: {:?}, not {kind}", record.name, record.value));
        }
        let default = help_value(&help, "default").filter(|d| *d != "no default");
        let is_same = match default {
            Some(default) => default == record.default,
            // 0 says no more than nothing.
            None => {
                matches!(record.default, "" | "0")
                    || UNTOLD_DEFAULTS.contains(&(record.name, record.default))
            }
        };
        if !is_same {
            wrong.push(format!(
                "{}: {:?}, not {default:?}",
                record.name, record.default
            ));
        }
        if let Some(alias) = help_value(&help, "alias")
            && !record.aliases.contains(&alias)
        {
            wrong.push(format!("{}: no alias {alias}", record.name));
        }
    }
    assert!(seen > 120, "only {seen} options were compared");
    assert!(wrong.is_empty(), "fio differs: {wrong:#?}");
}

#[test]
fn every_option_of_fio_has_a_record() {
    if let Some(reason) = fio_is_missing() {
        return skipped("every_option_of_fio_has_a_record", &reason);
    }
    let output = Command::new("fio").arg("--cmdhelp=all").output().unwrap();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        if let Some((name, _)) = line.split_once(':') {
            assert!(find_option(name.trim()).is_some(), "{name} has no record");
        }
    }
}
