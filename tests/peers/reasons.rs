//! What jobs and differences have to be like for a row of the book's table to be the reason.

use crate::beside::Case;
use crate::differ::Difference;
use crate::sections::Job;

pub(crate) const CLONES: &str = "`name=` of several clones";

pub(crate) fn renames_clones(job: &Job) -> bool {
    job.is_renamed && job.number("numjobs") > Some(1)
}

pub(crate) const NOT_SET_UP: &str = "a job that cannot be set up";

pub(crate) fn is_not_set_up(found: &Difference) -> bool {
    found.told.contains(" cannot run: ")
}

/// Clones of one job are set up together, fio's one by one.
pub(crate) fn fails_with_a_clone(case: &Case, found: &Difference) -> bool {
    let told = found.told.contains("it has no size of its own");
    told && case.any("", |job| {
        job.number("numjobs") > Some(1) && !job.has("size")
    })
}

/// A job that fails before it starts counts for `exitall_on_error`.
pub(crate) fn stops_others(case: &Case, found: &Difference) -> bool {
    is_not_set_up(found) && case.text().contains("exitall_on_error")
}

pub(crate) const NO_DIRECTORY: &str = "`filename_format` with directories that are missing";

pub(crate) fn lacks_directory(found: &Difference) -> bool {
    found.told.contains("the directory ") && found.told.contains(" does not exist")
}

pub(crate) const ONE_NAME: &str = "`filename_format` that gives several files one name";

pub(crate) const DRAWN: &str = "random offsets";

/// How many writes a mix has decides whether a device is asked to flush, and refuses.
pub(crate) fn flushes_by_chance(job: &Job) -> bool {
    let flushes = ["fsync", "fdatasync", "sync_file_range"];
    job.mixes() && flushes.iter().any(|o| job.has(o))
}

pub(crate) const TWICE: &str = "`opendir` more than once";

pub(crate) fn opens_twice(case: &Case) -> bool {
    case.text().matches("opendir=").count() > 1
}

pub(crate) const DEVICE: &str = "`end_fsync` of a mapped character device";

pub(crate) fn flushes_device(job: &Job) -> bool {
    is_mapped(job) && job.on_device() && (job.has("end_fsync") || job.has("fsync_on_close"))
}

/// fio flushes after each pass, and ends where that fails.
pub(crate) fn goes_on_unflushed(case: &Case, found: &Difference) -> bool {
    let mut words = case.words.iter();
    let flushes = case.mentions("end_fsync") || words.any(|w| w.starts_with("--end_fsync"));
    let goes_on = |job: &Job| job.on_device() && job.number("io_size") > job.number("size");
    flushes && case.any(&found.ours, goes_on)
}

pub(crate) const NO_FILES: &str = "`nrfiles` with the engine `null`";

pub(crate) fn divides_nothing(job: &Job) -> bool {
    job.engine() == "null" && job.number("nrfiles") > Some(1)
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
    found.told.contains("no more data after 0 bytes")
}

pub(crate) const HEADERS: &str = "two writers of one place at a time; headers that do not fit";

pub(crate) fn header_does_not_fit(found: &Difference) -> bool {
    [
        "the header cannot lie at byte",
        "a pattern without headers begins anew",
    ]
    .iter()
    .any(|reason| found.told.contains(reason))
}

pub(crate) const SHORTER: &str = "a read job on a file that is shorter than `size`";

pub(crate) fn never_grows(found: &Difference) -> bool {
    [
        "(a file never grows for a read job)",
        "the region begins at offset",
    ]
    .iter()
    .any(|reason| found.told.contains(reason))
}

pub(crate) fn twice_named(case: &Case) -> bool {
    case.text()
        .lines()
        .filter(|l| l.trim().starts_with("filename="))
        .count()
        > 1
}

pub(crate) const SIZELESS: &str = "`offset` on a character device";

pub(crate) fn is_sizeless(job: &Job) -> bool {
    job.on_device() && (job.has("offset") || job.has("offset_increment"))
}

/// fio uses the whole file where weir keeps to the region. The files of a directory are there before,
/// and as long as they are.
pub(crate) fn leaves_its_region(job: &Job) -> bool {
    job.has("filesize") || job.has("opendir")
}

/// fio makes a file as long as `filesize` says, also one that is only read.
pub(crate) fn reads_up_to_filesize(job: &Job) -> bool {
    job.has("filesize") && !job.changes()
}

/// Nothing in the format tells its files apart.
pub(crate) fn has_one_name(job: &Job) -> bool {
    let format = job
        .get("filename_format")
        .unwrap_or("$jobname.$jobnum.$filenum");
    let lacks = |word: &str, many: &str| !format.contains(word) && job.number(many) > Some(1);
    lacks("$filenum", "nrfiles") || lacks("$jobnum", "numjobs") || !format.contains("$jobname")
}

pub(crate) const NO_ROOM: &str = "a block that is larger than `size`";

pub(crate) fn no_room(found: &Difference) -> bool {
    found.told.contains("is smaller than a block of")
}

pub(crate) fn draws_several_sizes(job: &Job) -> bool {
    let several = job.get("bs").is_some_and(|bs| bs.contains(','));
    job.is_random() && (several || job.has("bsrange") || job.has("bssplit"))
}

/// The same words in another order.
pub(crate) fn same_words(found: &Difference) -> bool {
    let sorted = |text: &str| {
        let mut words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        words.sort();
        words
    };
    sorted(&found.theirs) == sorted(&found.ours)
}

/// The sum of the numbers in brackets.
pub(crate) fn sum(text: &str) -> u64 {
    let list = text
        .rsplit_once('[')
        .unwrap_or_default()
        .1
        .trim_end_matches(']');
    list.split(", ").filter_map(|n| n.parse::<u64>().ok()).sum()
}
