//! The options that random job files are made of, and how their values are written.

use crate::random::Random;

/// What an option takes, within bounds that keep a run short.
#[derive(Clone, Copy)]
pub(crate) enum Takes {
    /// Nothing.
    Flag,
    /// 0 or 1.
    Bool,
    /// A number of bytes in any notation, a multiple of 512.
    Size(u64, u64),
    /// The same, up to three of them.
    Sizes(u64, u64),
    /// A plain number.
    Count(u64, u64),
    /// One of these texts.
    Word(&'static [&'static str]),
}

/// An option of the language.
pub(crate) struct Known {
    /// Its name and its aliases.
    pub(crate) names: &'static [&'static str],
    /// What keeps a run short and both tools on the same path.
    pub(crate) takes: Takes,
    /// Other values, right and wrong ones, for files that are only parsed.
    pub(crate) odd: &'static [&'static str],
}

const fn known(
    names: &'static [&'static str],
    takes: Takes,
    odd: &'static [&'static str],
) -> Known {
    Known { names, takes, odd }
}

use Takes::{Bool, Count, Flag, Size, Sizes, Word};

const SWITCH: &[&str] = &["0", "1", "2", "-1", "x"];
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "0x10",
    "1k",
    "-1",
    "x",
    "4g",
    "99999999999999999999",
];

/// Options whose value changes neither what is transferred nor how long it takes.
pub(crate) const OPTIONS: &[Known] = &[
    known(
        &["description"],
        Word(&["text", "two words", "a=b"]),
        &["", "a;b#c"],
    ),
    known(
        &["nrfiles", "nr_files"],
        Count(1, 3),
        &["0x2", "x", "-1", "2k"],
    ),
    known(
        &["io_size", "io_limit"],
        Size(4096, 1 << 20),
        &["50%", "0", "101%", "x"],
    ),
    known(
        &["filesize"],
        Size(1 << 20, 4 << 20),
        &["1m-2m", "1m:2m", "x"],
    ),
    known(
        &["offset", "fileoffset"],
        Size(4096, 256 << 10),
        &["10%", "101%", "x", "-4k"],
    ),
    known(&["offset_increment"], Size(4096, 64 << 10), &["10%", "x"]),
    known(&["number_ios"], Count(1, 100), NUMBERS),
    known(&["loops"], Count(1, 3), &["0x2", "x"]),
    known(&["overwrite"], Bool, SWITCH),
    known(
        &["fallocate"],
        Word(&["none", "native", "posix", "keep", "0", "1"]),
        &["truncate", "yes", "2"],
    ),
    known(&["create_fsync"], Bool, SWITCH),
    known(&["create_serialize"], Bool, SWITCH),
    known(&["pre_read"], Word(&["0"]), SWITCH),
    known(&["invalidate"], Bool, SWITCH),
    known(&["unlink"], Bool, SWITCH),
    known(&["rwmixread"], Count(0, 100), &["101", "-1", "x", "50%"]),
    known(&["rwmixwrite"], Count(0, 100), &["101", "x"]),
    known(
        &["percentage_random"],
        Word(&["100", "50", "0", "50,20"]),
        &["101", "x", "50:20:10"],
    ),
    known(&["norandommap"], Flag, SWITCH),
    known(&["softrandommap"], Bool, SWITCH),
    known(
        &["random_generator"],
        Word(&["tausworthe", "tausworthe64", "lfsr"]),
        &["x", "LFSR"],
    ),
    known(
        &["random_distribution"],
        Word(&[
            "random",
            "zipf:1.2",
            "zipf",
            "pareto:0.3",
            "normal:20",
            "zoned:60/20:40/80",
        ]),
        &[
            "zipf:1",
            "zipf:1.0",
            "pareto:1",
            "pareto:2",
            "normal",
            "zoned:60/20:30/80",
            "x",
            "zipf:1.2:0.5",
            "zipf:x",
            "normal:10:0.1",
        ],
    ),
    known(&["randrepeat"], Bool, SWITCH),
    known(&["allrandrepeat"], Bool, SWITCH),
    known(&["randseed"], Count(1, 1 << 20), NUMBERS),
    known(
        &["rw_sequencer"],
        Word(&["sequential", "identical"]),
        &["x"],
    ),
    known(&["bs_unaligned", "blocksize_unaligned"], Flag, SWITCH),
    known(
        &["ba", "blockalign"],
        Word(&["4k", "8k", "512"]),
        &["0", "x", "4k,8k", "3"],
    ),
    known(&["zero_buffers"], Flag, SWITCH),
    known(&["refill_buffers"], Flag, SWITCH),
    known(&["scramble_buffers"], Bool, SWITCH),
    known(
        &["buffer_pattern"],
        Word(&["0xff", "\"abcd\"", "123", "\"ab\"0x0102-77"]),
        &["\"a", "0x", "x"],
    ),
    known(
        &["buffer_compress_percentage"],
        Count(0, 100),
        &["101", "x"],
    ),
    known(&["dedupe_percentage"], Count(0, 100), &["101", "x"]),
    known(&["buffered"], Word(&["1"]), SWITCH),
    known(&["direct"], Word(&["0"]), SWITCH),
    known(
        &["sync"],
        Word(&["none", "0", "1", "sync", "dsync"]),
        &["2", "x"],
    ),
    known(&["fsync"], Count(0, 40), NUMBERS),
    known(&["fdatasync"], Count(0, 40), NUMBERS),
    known(&["end_fsync"], Bool, SWITCH),
    known(&["fsync_on_close"], Bool, SWITCH),
    known(
        &["mem", "iomem"],
        Word(&["malloc", "mmap", "mmapshared", "shm"]),
        &["x", "malloc:file"],
    ),
    known(
        &["iomem_align", "mem_align"],
        Word(&["0", "512", "4k"]),
        &["x", "3"],
    ),
    known(&["thinktime"], Count(0, 20), &["1s", "x", "-1", "10us"]),
    known(&["thinktime_blocks"], Count(1, 16), &["x"]),
    known(&["cpus_allowed"], Word(&["0", "0-1", "0,1"]), &["x"]),
    known(&["cpus_allowed_policy"], Word(&["shared"]), &["x", "split"]),
    known(
        &["nice"],
        Word(&["0", "1", "5"]),
        &["20", "-21", "x", "-20"],
    ),
    known(&["thread"], Flag, SWITCH),
    known(
        &["startdelay"],
        Word(&["0", "1ms", "1us"]),
        &["1-2", "x", "1h"],
    ),
    known(&["ramp_time"], Word(&["0"]), &["1", "2m", "x", "-1"]),
    known(
        &["runtime", "timeout"],
        Word(&["10", "30s", "1m", "1h", "10000ms"]),
        &["x", "-1", "10000000us", "1d"],
    ),
    known(
        &["rate"],
        Word(&["100m", "200m,300m", "100m:90m"]),
        &["x", "1k", ",1m", "-1"],
    ),
    known(
        &["rate_min", "ratemin"],
        Word(&["1k", "1k,2k"]),
        &["x", "1m"],
    ),
    known(
        &["rate_iops"],
        Word(&["50000", "50k", "40k,60k"]),
        &["x", "1", ",5"],
    ),
    known(&["rate_iops_min"], Word(&["1", "1,2"]), &["x", "10"]),
    known(&["rate_process"], Word(&["linear"]), &["poisson", "x"]),
    known(
        &["rate_cycle", "ratecycle"],
        Word(&["1000", "500"]),
        &["x", "0"],
    ),
    known(&["rate_ignore_thinktime"], Bool, SWITCH),
    known(
        &["max_latency"],
        Word(&["0", "20s", "10000ms"]),
        &["x", "1d"],
    ),
    known(&["gtod_reduce"], Bool, SWITCH),
    known(
        &["clocksource"],
        Word(&["cpu", "clock_gettime", "gettimeofday"]),
        &["x"],
    ),
    known(&["group_reporting"], Flag, SWITCH),
    known(&["stats"], Bool, SWITCH),
    known(&["exitall_on_error"], Flag, SWITCH),
    known(&["exit_what"], Word(&["group"]), &["all", "stonewall", "x"]),
    known(&["bwavgtime"], Word(&["500", "1000"]), &["x", "1s", "0"]),
    known(&["clat_percentiles"], Bool, SWITCH),
    known(&["lat_percentiles"], Bool, SWITCH),
    known(&["slat_percentiles"], Bool, SWITCH),
    known(
        &["percentile_list"],
        Word(&["50", "50:99", "99.9:50", "1:5:99.999"]),
        &["x"],
    ),
    known(
        &["significant_figures"],
        Count(2, 6),
        &["0", "1", "10", "11", "x"],
    ),
    known(&["disk_util"], Bool, SWITCH),
    known(&["disable_lat"], Bool, SWITCH),
    known(&["disable_clat"], Bool, SWITCH),
    known(&["disable_slat"], Bool, SWITCH),
    known(&["disable_bw_measurement", "disable_bw"], Bool, SWITCH),
    known(
        &["unified_rw_reporting"],
        Word(&["none", "0", "mixed", "1"]),
        &["x"],
    ),
    known(
        &["continue_on_error"],
        Word(&["none", "0", "read", "write", "io"]),
        &["x", "2"],
    ),
    known(
        &["ignore_error"],
        Word(&["ENOSPC", "EIO:ENOSPC", "5,28"]),
        &[],
    ),
    known(&["kb_base"], Word(&["1024", "1000"]), &["x", "1", "1000k"]),
    known(&["unit_base"], Word(&["0", "8", "1"]), &["x", "2"]),
    known(
        &["iodepth_batch", "iodepth_batch_submit"],
        Count(1, 4),
        &["0", "x"],
    ),
    known(
        &["iodepth_batch_complete_min", "iodepth_batch_complete"],
        Count(0, 2),
        &["x"],
    ),
    known(&["iodepth_batch_complete_max"], Count(1, 4), &["x", "0"]),
    known(&["iodepth_low"], Count(1, 4), &["x", "0"]),
    known(&["new_group"], Flag, SWITCH),
    known(&["stonewall", "wait_for_previous"], Flag, SWITCH),
    known(&["wait_for"], Word(&["one"]), &["nobody", ""]),
    known(&["name"], Word(&["renamed"]), &[""]),
    known(&["numjobs"], Count(1, 3), &["x", "-1", "0x2", "1k"]),
    known(&["iodepth"], Count(1, 8), &["x", "-1", "0x8", "1k"]),
    known(
        &["rw", "readwrite"],
        Word(&[
            "read",
            "write",
            "randread",
            "randwrite",
            "rw",
            "readwrite",
            "randrw",
        ]),
        &[
            "trim",
            "randtrim",
            "trimwrite",
            "randtrimwrite",
            "x",
            "READ",
            "read:8k",
            "read:-8k",
            "randread:8",
            "randread:x",
            "",
        ],
    ),
    known(
        &["bs", "blocksize"],
        Sizes(512, 64 << 10),
        &[
            "0",
            "x",
            "4k-16k",
            ",8k",
            "4k:8k:16k",
            "4k,",
            "8k,,",
            "5000",
        ],
    ),
    known(
        &["bsrange", "blocksize_range"],
        Word(&["4k-16k", "16k-4k", "4k-8k,512-4k"]),
        &["4k", "x", "0-4k", "4k:16k"],
    ),
    known(
        &["bssplit"],
        Word(&["4k/50:8k/50", "4k/60:8k/", "4k:8k", "4k/50:8k/50,512/100"]),
        &["x", "4k/101", "4k/70:8k/70:1k/:2k/"],
    ),
    known(
        &["size"],
        Size(4096, 1 << 20),
        &["50%", "100%", "101%", "x", "1kib", "3ki", "1kb"],
    ),
    known(
        &["ioengine"],
        Word(&["psync", "null", "mmap", "libaio", "io_uring", "pvsync2"]),
        &["x"],
    ),
];

/// The option with this name.
pub(crate) fn option(name: &str) -> &'static Known {
    OPTIONS.iter().find(|o| o.names[0] == name).unwrap()
}

/// A line for an option.
pub(crate) fn line(option: &Known, random: &mut Random) -> String {
    let name = random.pick(option.names);
    match value(option.takes, random) {
        None => (*name).to_owned(),
        Some(value) => format!("{name}={value}"),
    }
}

/// A line that may be wrong.
pub(crate) fn odd_line(option: &Known, random: &mut Random) -> String {
    if option.odd.is_empty() || random.percent(50) {
        return line(option, random);
    }
    format!("{}={}", random.pick(option.names), random.pick(option.odd))
}

fn value(takes: Takes, random: &mut Random) -> Option<String> {
    Some(match takes {
        Flag if random.percent(80) => return None,
        Flag | Bool => random.between(0, 1).to_string(),
        Size(low, high) => size(low, high, random),
        Sizes(low, high) => {
            let all = random.between(1, 3);
            let sizes: Vec<String> = (0..all).map(|_| size(low, high, random)).collect();
            sizes.join(",")
        }
        Count(low, high) => random.between(low, high).to_string(),
        Word(words) => (*random.pick(words)).to_owned(),
    })
}

/// A size in one of the notations; whole KiB where the notation needs it.
fn size(low: u64, high: u64, random: &mut Random) -> String {
    let bytes = random.between(low / 512, high / 512) * 512;
    let kib = bytes / 1024;
    if kib == 0 {
        return bytes.to_string();
    }
    match random.between(0, 8) {
        0 => bytes.to_string(),
        1 => format!("0x{bytes:x}"),
        2 => format!("{kib}K"),
        3 => format!("{kib}kb"),
        4 => format!("{kib}ki"),
        5 => format!("{kib}kib"),
        6 => format!("{bytes}b"),
        7 if low >= 4096 => "${SOME}".to_owned(),
        _ => format!("{kib}k"),
    }
}
