//! Conditions on jobs and differences for a row of the book's table to be the reason.

use crate::beside::Case;
use crate::differ::Difference;
use crate::sections::Job;

pub(crate) const CLONES: &str = "`name=` of several clones";

pub(crate) fn renames_clones(job: &Job) -> bool {
    job.is_renamed && job.number("numjobs") > Some(1)
}

pub(crate) const NOT_SET_UP: &str = "a job that cannot be set up";

pub(crate) fn is_not_set_up(found: &Difference) -> bool {
    found.output.contains(" cannot run: ")
}

/// Clones of one job are set up together, fio's one by one.
pub(crate) fn fails_with_a_clone(case: &Case, found: &Difference) -> bool {
    let output = found.output.contains("it has no size of its own");
    output
        && case.any("", |job| {
            job.number("numjobs") > Some(1) && !job.has("size")
        })
}

/// A job that fails before it starts counts for `exitall_on_error`.
pub(crate) fn stops_others(case: &Case, found: &Difference) -> bool {
    is_not_set_up(found) && case.text().contains("exitall_on_error")
}

pub(crate) const NO_DIRECTORY: &str = "`filename_format` with directories that are missing";

pub(crate) fn lacks_directory(found: &Difference) -> bool {
    found.output.contains("the directory ") && found.output.contains(" does not exist")
}

pub(crate) const ONE_NAME: &str = "`filename_format` that gives several files one name";

pub(crate) const DRAWN: &str = "random offsets";

/// True where the number of writes in a mix decides if a device is asked to flush, and refuses.
pub(crate) fn flushes_by_chance(job: &Job) -> bool {
    let flushes = ["fsync", "fdatasync", "sync_file_range"];
    job.mixes() && flushes.iter().any(|o| job.has(o))
}

/// True where the blocks to read back differ in number, since several writes fall on one.
pub(crate) fn reads_back_what_was_drawn(case: &Case, found: &Difference) -> bool {
    let draws = |job: &Job| job.is_random() && job.has("norandommap") && job.verifies();
    let (theirs, ours) = (numbers(&found.theirs), numbers(&found.ours));
    let same_writes = theirs.len() == 4 && ours.len() == 4 && theirs[1..3] == ours[1..3];
    same_writes && case.any(&found.ours, draws)
}

pub(crate) const TWICE: &str = "`opendir` more than once";

pub(crate) fn opens_twice(case: &Case) -> bool {
    case.any("", |job| job.times_given("opendir") > 1)
}

pub(crate) const DEVICE: &str = "`end_fsync` of a mapped character device";

pub(crate) fn flushes_device(job: &Job) -> bool {
    is_mapped(job) && job.on_device() && (job.has("end_fsync") || job.has("fsync_on_close"))
}

pub(crate) const NO_FILES: &str = "`nrfiles` or `opendir` with the engine `null`";

pub(crate) fn divides_nothing(job: &Job) -> bool {
    job.engine() == "null" && (job.number("nrfiles") > Some(1) || job.has("opendir"))
}

pub(crate) const MAPPED: &str = "`file_append`, `bs_unaligned` or flushes with the engine `mmap`";

pub(crate) fn unmapped(found: &Difference) -> bool {
    found
        .theirs
        .contains("mmap options dictate a minimum block size")
}

pub(crate) fn is_mapped(job: &Job) -> bool {
    job.engine() == "mmap"
}

pub(crate) fn maps_unaligned(job: &Job) -> bool {
    let strict = ["bs_unaligned", "fsync", "fdatasync"];
    is_mapped(job) && strict.iter().any(|option| job.has(option))
}

pub(crate) const EMPTY: &str = "`create_on_open` of a file that is read";

pub(crate) fn reads_nothing(found: &Difference) -> bool {
    found.output.contains("no more data after 0 bytes")
}

pub(crate) const HEADERS: &str = "two writers of one place at a time; headers that do not fit";

pub(crate) fn header_does_not_fit(found: &Difference) -> bool {
    [
        "the header cannot lie at byte",
        "a pattern without headers begins anew",
    ]
    .iter()
    .any(|reason| found.output.contains(reason))
}

pub(crate) const SHORTER: &str = "a read job on a file that is shorter than `size`";

pub(crate) fn never_grows(found: &Difference) -> bool {
    [
        "(a file never grows for a read job)",
        "the region begins at offset",
    ]
    .iter()
    .any(|reason| found.output.contains(reason))
}

pub(crate) fn twice_named(case: &Case) -> bool {
    case.any("", |job| job.times_given("filename") > 1)
}

pub(crate) const SIZELESS: &str = "`offset` on a character device";

pub(crate) fn is_sizeless(job: &Job) -> bool {
    job.on_device() && (job.has("offset") || job.has("offset_increment"))
}

pub(crate) const LARGER_FILE: &str = "a region smaller than its file";

/// In each of the files that were there before, which are larger, fio moves one block more, where
/// it begins in the region.
pub(crate) fn ends_behind_its_region(case: &Case, found: &Difference) -> bool {
    const FILES: u64 = 2;
    let blocks = if found.ours.contains("io_bytes") {
        64 << 10
    } else {
        1
    };
    let jobs = case.jobs();
    let fits = |job: &Job| {
        let passes = job.number("loops").unwrap_or(1) * job.number("numjobs").unwrap_or(1);
        let is_larger = job.has("opendir") || job.has_larger_file(&jobs);
        is_larger && sum(&found.theirs) - sum(&found.ours) <= FILES * passes * blocks
    };
    sum(&found.theirs) > sum(&found.ours) && case.any(&found.ours, fits)
}

pub(crate) const PASSES_OF_A_MIX: &str =
    "`loops` of a sequential mix, and an `io_size` beyond `size`";

/// fio ends a loop where one of the kinds has reached the end of the region.
pub(crate) fn ends_with_one_kind(case: &Case, found: &Difference) -> bool {
    let ends = |job: &Job| {
        let is_longer = job.number("io_size") > job.number("size");
        job.mixes() && !job.is_random() && job.number("loops") > Some(1) && is_longer
    };
    sum(&found.ours) > sum(&found.theirs) && case.any(&found.ours, ends)
}

/// fio draws the last block too, of which only a part is in the region, and ends with it.
pub(crate) fn may_draw_half_a_block(job: &Job) -> bool {
    let spread = job.get("random_distribution").unwrap_or_default();
    let scatters = ["zipf", "pareto", "normal"]
        .iter()
        .any(|d| spread.starts_with(d));
    scatters || job.get("percentage_random").is_some_and(|p| p != "100")
}

/// fio uses the whole file where weir keeps to the region.
pub(crate) fn leaves_its_region(job: &Job) -> bool {
    job.has("filesize")
}

/// fio makes a file as long as `filesize` says, also one that is only read.
pub(crate) fn reads_up_to_filesize(job: &Job) -> bool {
    job.has("filesize") && !job.changes()
}

/// Nothing in the format tells its files apart.
pub(crate) fn has_one_name(job: &Job) -> bool {
    let format = job.get("filename_format");
    let format = format.unwrap_or("$jobname.$jobnum.$filenum");
    let lacks = |word: &str, many: &str| !format.contains(word) && job.number(many) > Some(1);
    lacks("$filenum", "nrfiles") || lacks("$jobnum", "numjobs") || !format.contains("$jobname")
}

/// weir's operations are more than those that the named jobs ask for.
pub(crate) fn moves_too_much(case: &Case, found: &Difference) -> bool {
    let jobs = case.jobs_of(&found.ours);
    let asked: Option<u64> = jobs.iter().map(Job::most).sum();
    let smallest = 512;
    let unit = if found.ours.contains("io_bytes") {
        1
    } else {
        smallest
    };
    asked.is_some_and(|bytes| sum(&found.ours) > bytes / unit)
}

pub(crate) const NO_ROOM: &str = "a block that is larger than `size`";

pub(crate) fn no_room(found: &Difference) -> bool {
    found.output.contains("is smaller than a block of")
}

pub(crate) fn draws_several_sizes(job: &Job) -> bool {
    let several = job.get("bs").is_some_and(|bs| bs.contains([',', '-']));
    job.is_random() && (several || job.has("bsrange") || job.has("bssplit"))
}

/// weir's report has these lines where fio's has none, and all of fio's.
pub(crate) fn adds_only(found: &Difference, lines: &[&str]) -> bool {
    let quoted: Vec<String> = lines.iter().map(|line| format!("\"{line}\"")).collect();
    let list = |text: &str| -> Vec<String> {
        let inner = text.trim_start_matches('[').trim_end_matches(']');
        inner.split(", ").map(str::to_owned).collect()
    };
    let theirs = list(&found.theirs);
    let mut theirs = theirs.iter().peekable();
    let ours = list(&found.ours);
    let fits = ours
        .iter()
        .all(|line| theirs.next_if(|theirs| *theirs == line).is_some() || quoted.contains(line));
    fits && theirs.next().is_none()
}

/// The same words in another order.
pub(crate) fn same_words(found: &Difference) -> bool {
    words(&found.theirs) == words(&found.ours)
}

/// The same words, some more than once, and other names.
pub(crate) fn same_but_for_names(found: &Difference) -> bool {
    let unique = |text: &str| {
        let named = |word: &String| word.starts_with("--name=");
        let mut words = words(text);
        words.retain(|word| !named(word));
        words.dedup();
        words
    };
    unique(&found.theirs) == unique(&found.ours)
}

/// weir shows what fio shows, and more.
pub(crate) fn shows_more(found: &Difference) -> bool {
    let ours = words(&found.ours);
    words(&found.theirs).iter().all(|word| ours.contains(word))
}

/// The options of a command, sorted. fio does not quote what holds blanks.
fn words(text: &str) -> Vec<String> {
    let plain = text.replace(['\'', '\n'], "");
    let options = plain
        .trim()
        .split(" --")
        .map(|word| format!("--{}", word.trim()));
    let mut words: Vec<String> = options.collect();
    words.sort();
    words
}

/// The numbers in brackets.
fn numbers(text: &str) -> Vec<u64> {
    let list = text.rsplit_once('[').unwrap_or_default().1;
    let list = list.trim_end_matches(']').split(", ");
    list.filter_map(|n| n.parse().ok()).collect()
}

/// Their sum.
pub(crate) fn sum(text: &str) -> u64 {
    numbers(text).iter().sum()
}
