//! The differences that are meant. Each names its row in the table of the book.

use crate::beside::{Case, Kind};
use crate::differ::{Difference, Topic};
use crate::sections::Job;
use crate::stricter::STRICTER;

/// A difference that is meant.
pub(crate) struct Allowed {
    /// The first cell of its row in the section "Differences" of `coming-from-fio.md`.
    pub(crate) row: &'static str,
    /// What is allowed to differ.
    pub(crate) topic: Topic,
    /// Whether this is it.
    pub(crate) is: fn(&Case, &Difference) -> bool,
}

/// How options fit together, which fio looks at only when it runs.
const PARSE_ONLY: &str = "`--parse-only`";
const RELATED: &[&str] = &[
    "job.none",
    "job.engine",
    "job.conflict",
    "job.wait",
    "job.group",
];

const fn allow(row: &'static str, topic: Topic, is: fn(&Case, &Difference) -> bool) -> Allowed {
    Allowed { row, topic, is }
}

pub(crate) const ALLOWED: &[Allowed] = &[
    allow(
        "a region smaller than `filesize`",
        Topic::Counts,
        |case, found| case.any(&found.ours, leaves_its_region),
    ),
    allow(NO_ROOM, Topic::Exit, |_, found| no_room(found)),
    allow(NO_ROOM, Topic::Layout, |_, found| no_room(found)),
    allow(NO_ROOM, Topic::Entries, |_, found| no_room(found)),
    allow(SHORTER, Topic::Layout, |_, found| never_grows(found)),
    allow(SHORTER, Topic::Counts, |_, found| never_grows(found)),
    allow(
        "how often `fdatasync` and `sync_file_range` were called, in JSON",
        Topic::Counts,
        |case, found| {
            case.any("", |job| job.has("fdatasync") || job.has("sync_file_range"))
                && (found.theirs.contains("short_ios") || found.theirs.contains("Number"))
        },
    ),
    allow(SIZELESS, Topic::Entries, |case, _| {
        case.any("", is_sizeless)
    }),
    allow(SIZELESS, Topic::Counts, |case, found| {
        case.any(&found.ours, is_sizeless)
    }),
    allow(NO_ROOM, Topic::Refused, |_, found| {
        let errors = refusals(&found.ours);
        errors.iter().all(|(code, _)| *code == "job.conflict")
            && found
                .ours
                .contains("must not be less than minimum block size")
    }),
    allow(
        "`filename` in a global section and again in the job",
        Topic::Layout,
        |case, _| twice_named(case),
    ),
    allow(
        "`filename` in a global section and again in the job",
        Topic::Counts,
        |case, _| twice_named(case),
    ),
    allow(
        "block sizes that differ, at random offsets",
        Topic::Counts,
        |case, found| case.any(&found.ours, draws_several_sizes),
    ),
    allow(
        "a region that ends within a block",
        Topic::Counts,
        |case, found| {
            let (theirs, ours) = (sum(&found.theirs), sum(&found.ours));
            let blocks = if found.theirs.contains("total_ios") {
                1
            } else {
                64 << 10
            };
            case.any(&found.ours, Job::mixes) && theirs > ours && theirs - ours <= 18 * blocks
        },
    ),
    allow(
        "`--showcmd` of `cpus_allowed_policy`",
        Topic::Shown,
        |case, found| case.mentions("cpus_allowed_policy") && same_words(found),
    ),
    allow(
        "`opendir` with `nrfiles`",
        Topic::Accepted,
        |case, found| case.mentions("opendir") && found.theirs.contains("Assertion"),
    ),
    allow("an entry of nobody", Topic::Entries, |_, found| {
        let theirs = found.theirs.replace(", \"null 4294967295 0\"", "");
        let theirs = theirs.replace("\"null 4294967295 0\"", "");
        theirs == found.ours && theirs != found.theirs
    }),
    allow(
        "`--showcmd` of a job with `name=`",
        Topic::Shown,
        |case, _| case.mentions("name"),
    ),
    allow(
        "`--showcmd` with a global section below a job",
        Topic::Shown,
        |case, _| {
            let text = case.text();
            text.rfind("[global")
                .is_some_and(|at| text[..at].contains("[one]"))
        },
    ),
    allow(
        "`--showcmd` of words that a shell would split",
        Topic::Shown,
        |_, found| found.ours.replace('\'', "") == found.theirs,
    ),
    allow(
        "`--showcmd` with a job of the command line",
        Topic::Shown,
        |case, _| case.words.iter().any(|w| w.starts_with("--name=")),
    ),
    allow("`verify_state_save`", Topic::Left, |_, found| {
        found.theirs.contains("-verify.state Some") && found.ours.ends_with(" None")
    }),
    allow(CLONES, Topic::Entries, |case, _| {
        case.any("", renames_clones)
    }),
    allow(CLONES, Topic::Layout, |case, _| {
        case.any("", renames_clones)
    }),
    allow(NOT_SET_UP, Topic::Entries, |_, found| is_not_set_up(found)),
    allow(NOT_SET_UP, Topic::Layout, |_, found| is_not_set_up(found)),
    allow(NOT_SET_UP, Topic::Left, |_, found| is_not_set_up(found)),
    allow(NOT_SET_UP, Topic::Exit, |case, found| {
        (is_not_set_up(found) && found.theirs.contains("fio: ")) || fails_with_a_clone(case, found)
    }),
    allow(NOT_SET_UP, Topic::Entries, fails_with_a_clone),
    allow(NOT_SET_UP, Topic::Counts, |case, found| {
        stops_others(case, found)
    }),
    allow(NOT_SET_UP, Topic::Keys, |case, found| {
        stops_others(case, found)
    }),
    allow(NO_DIRECTORY, Topic::Exit, |_, found| lacks_directory(found)),
    allow(NO_DIRECTORY, Topic::Counts, |_, found| {
        lacks_directory(found)
    }),
    allow(NO_DIRECTORY, Topic::Keys, |_, found| lacks_directory(found)),
    allow(HEADERS, Topic::Refused, |_, found| {
        found.ours.contains("`bs_unaligned` with verify")
    }),
    allow(MAPPED, Topic::Accepted, |case, _| {
        case.any("", |job| is_mapped(job) && job.has("file_append"))
    }),
    allow(MAPPED, Topic::Exit, |case, found| {
        unmapped(found) || case.any("", maps_unaligned)
    }),
    allow(MAPPED, Topic::Entries, |case, _| {
        case.any("", maps_unaligned)
    }),
    allow(MAPPED, Topic::Counts, |case, found| {
        case.any(&found.ours, maps_unaligned)
    }),
    allow(EMPTY, Topic::Left, |case, _| {
        case.any("", |job| job.has("create_on_open") && job.reads())
    }),
    allow(EMPTY, Topic::Counts, |_, found| reads_nothing(found)),
    allow(
        "words in capitals (`rw=READ`)",
        Topic::Accepted,
        |case, _| {
            ["READ", "LFSR", "MD5"]
                .iter()
                .any(|w| case.text().contains(w))
        },
    ),
    allow(EMPTY, Topic::Exit, |_, found| reads_nothing(found)),
    allow(EMPTY, Topic::Entries, |_, found| reads_nothing(found)),
    allow(
        "verification with the engine `null`",
        Topic::Counts,
        |_, found| found.told.contains("engine null moves no data"),
    ),
    allow(
        "verification with the engine `null`",
        Topic::Keys,
        |_, found| {
            found.told.contains("engine null moves no data") && found.theirs.contains("/read/")
        },
    ),
    allow(
        "a region that ends within a block",
        Topic::Counts,
        |case, found| {
            let scattered = ["zipf", "pareto"];
            let scatters = |job: &Job| {
                let spread = job.get("random_distribution").unwrap_or_default();
                scattered.iter().any(|d| spread.starts_with(d))
            };
            case.any(&found.ours, scatters) && sum(&found.theirs) < sum(&found.ours)
        },
    ),
    allow(CLONES, Topic::Left, |case, found| {
        case.any("", renames_clones)
            && [".state ", ".log "]
                .iter()
                .any(|kind| found.ours.contains(kind))
    }),
    allow(NO_ROOM, Topic::Left, |_, found| no_room(found)),
    allow(SHORTER, Topic::Left, |_, found| never_grows(found)),
    allow(SHORTER, Topic::Exit, |case, found| {
        case.mentions("file_append") && never_grows(found)
    }),
    allow(SHORTER, Topic::Entries, |case, found| {
        case.mentions("file_append") && never_grows(found)
    }),
    allow(MAPPED, Topic::Left, |case, _| case.any("", maps_unaligned)),
    allow(
        "`group_reporting` of jobs that differ in `lat_percentiles`",
        Topic::Accepted,
        |case, found| {
            case.mentions("lat_percentiles") && found.theirs.contains("differs from group")
        },
    ),
    allow(DRAWN, Topic::Counts, |case, _| {
        case.text().contains("norandommap") && case.text().contains("verify")
    }),
    allow(DRAWN, Topic::Exit, |case, _| {
        case.any("", |job| job.on_device() && flushes_by_chance(job))
    }),
    allow(DRAWN, Topic::Entries, |case, _| {
        case.any("", |job| job.on_device() && flushes_by_chance(job))
    }),
    allow(DRAWN, Topic::Keys, |case, found| {
        let lists = [&found.theirs, &found.ours];
        let slashes = lists.map(|keys| keys.matches('/').count());
        let of_syncs = lists.map(|keys| keys.matches("\"/sync/").count());
        slashes == of_syncs.map(|n| 4 * n) && case.any("", flushes_by_chance)
    }),
    allow(ONE_NAME, Topic::Layout, |case, found| {
        case.any(&found.ours, has_one_name)
    }),
    allow(ONE_NAME, Topic::Counts, |case, found| {
        case.any(&found.ours, has_one_name)
    }),
    allow(TWICE, Topic::Layout, |case, _| opens_twice(case)),
    allow(TWICE, Topic::Counts, |case, _| opens_twice(case)),
    allow(TWICE, Topic::Left, |case, _| opens_twice(case)),
    allow(DEVICE, Topic::Exit, |case, _| case.any("", flushes_device)),
    allow(DEVICE, Topic::Entries, |case, _| {
        case.any("", flushes_device)
    }),
    allow(SHORTER, Topic::Left, |case, found| {
        case.any("", reads_up_to_filesize) && found.theirs.contains(" bytes")
    }),
    allow(SHORTER, Topic::Layout, |case, found| {
        case.any(&found.theirs, reads_up_to_filesize)
    }),
    allow(
        "block sizes that differ, at random offsets",
        Topic::Entries,
        |case, _| case.any("", draws_several_sizes),
    ),
    allow(
        "`file_append` with `loops`, or with an `io_size` beyond `size`",
        Topic::Counts,
        |case, found| {
            case.any(&found.ours, |job| {
                let again = job.number("io_size") > job.number("size");
                job.has("file_append") && (again || job.number("loops") > Some(1))
            })
        },
    ),
    allow(NO_FILES, Topic::Entries, |case, _| {
        case.any("", divides_nothing)
    }),
    allow(NO_FILES, Topic::Counts, |case, found| {
        case.any(&found.ours, divides_nothing)
    }),
    allow(HEADERS, Topic::Exit, |_, found| header_does_not_fit(found)),
    allow(HEADERS, Topic::Entries, |_, found| {
        header_does_not_fit(found)
    }),
    allow(HEADERS, Topic::Layout, |_, found| {
        header_does_not_fit(found)
    }),
    allow(HEADERS, Topic::Keys, |_, found| header_does_not_fit(found)),
    allow(HEADERS, Topic::Left, |_, found| header_does_not_fit(found)),
    allow(
        "logs of a job with `stats=0`, `gtod_reduce` or `disable_bw`",
        Topic::Left,
        |case, found| {
            ["stats", "gtod_reduce", "disable_bw"]
                .iter()
                .any(|o| case.text().contains(o))
                && found.theirs.contains(".log ")
        },
    ),
    allow(
        "`--section` that names nothing",
        Topic::Refused,
        |case, _| case.words.iter().any(|w| w == "--section=nobody"),
    ),
];

const CLONES: &str = "`name=` of several clones";

fn renames_clones(job: &Job) -> bool {
    job.is_renamed && job.number("numjobs") > Some(1)
}

const NOT_SET_UP: &str = "a job that cannot be set up";

fn is_not_set_up(found: &Difference) -> bool {
    found.told.contains(" cannot run: ")
}

/// Clones of one job are set up together, fio's one by one.
fn fails_with_a_clone(case: &Case, found: &Difference) -> bool {
    let told = found.told.contains("it has no size of its own");
    told && case.any("", |job| {
        job.number("numjobs") > Some(1) && !job.has("size")
    })
}

/// A job that fails before it starts counts for `exitall_on_error`.
fn stops_others(case: &Case, found: &Difference) -> bool {
    is_not_set_up(found) && case.text().contains("exitall_on_error")
}

const NO_DIRECTORY: &str = "`filename_format` with directories that are missing";

fn lacks_directory(found: &Difference) -> bool {
    found.told.contains("the directory ") && found.told.contains(" does not exist")
}

const ONE_NAME: &str = "`filename_format` that gives several files one name";

const DRAWN: &str = "random offsets";

/// How many writes a mix has decides whether a device is asked to flush, and refuses.
fn flushes_by_chance(job: &Job) -> bool {
    let flushes = ["fsync", "fdatasync", "sync_file_range"];
    job.mixes() && flushes.iter().any(|o| job.has(o))
}

const TWICE: &str = "`opendir` more than once";

fn opens_twice(case: &Case) -> bool {
    case.text().matches("opendir=").count() > 1
}

const DEVICE: &str = "`end_fsync` of a mapped character device";

fn flushes_device(job: &Job) -> bool {
    is_mapped(job) && job.on_device() && (job.has("end_fsync") || job.has("fsync_on_close"))
}

const NO_FILES: &str = "`nrfiles` with the engine `null`";

fn divides_nothing(job: &Job) -> bool {
    job.engine() == "null" && job.number("nrfiles") > Some(1)
}

const MAPPED: &str = "`file_append`, `bs_unaligned` or flushes with the engine `mmap`";

fn unmapped(found: &Difference) -> bool {
    found
        .theirs
        .contains("mmap options dictate a minimum block size")
}

fn is_mapped(job: &Job) -> bool {
    job.engine() == "mmap"
}

fn maps_unaligned(job: &Job) -> bool {
    let strict = ["bs_unaligned", "fsync", "fdatasync"];
    is_mapped(job) && strict.iter().any(|option| job.has(option))
}

const EMPTY: &str = "`create_on_open` of a file that is read";

fn reads_nothing(found: &Difference) -> bool {
    found.told.contains("no more data after 0 bytes")
}

const HEADERS: &str = "two writers of one place at a time; headers that do not fit";

fn header_does_not_fit(found: &Difference) -> bool {
    [
        "the header cannot lie at byte",
        "a pattern without headers begins anew",
    ]
    .iter()
    .any(|reason| found.told.contains(reason))
}

const SHORTER: &str = "a read job on a file that is shorter than `size`";

fn never_grows(found: &Difference) -> bool {
    [
        "(a file never grows for a read job)",
        "the region begins at offset",
    ]
    .iter()
    .any(|reason| found.told.contains(reason))
}

fn twice_named(case: &Case) -> bool {
    case.text()
        .lines()
        .filter(|l| l.trim().starts_with("filename="))
        .count()
        > 1
}

const SIZELESS: &str = "`offset` on a character device";

fn is_sizeless(job: &Job) -> bool {
    job.on_device() && (job.has("offset") || job.has("offset_increment"))
}

/// fio uses the whole file where weir keeps to the region.
fn leaves_its_region(job: &Job) -> bool {
    job.has("filesize")
}

/// fio makes a file as long as `filesize` says, also one that is only read.
fn reads_up_to_filesize(job: &Job) -> bool {
    job.has("filesize") && !job.changes()
}

/// Nothing in the format tells its files apart.
fn has_one_name(job: &Job) -> bool {
    let format = job.get("filename_format").unwrap_or("$jobnum $filenum");
    let lacks = |word: &str, many: &str| !format.contains(word) && job.number(many) > Some(1);
    lacks("$filenum", "nrfiles") || lacks("$jobnum", "numjobs") || !format.contains("$jobname")
}

const NO_ROOM: &str = "a block that is larger than `size`";

fn no_room(found: &Difference) -> bool {
    found.told.contains("is smaller than a block of")
}

fn draws_several_sizes(job: &Job) -> bool {
    let several = job.get("bs").is_some_and(|bs| bs.contains(','));
    job.is_random() && (several || job.has("bsrange") || job.has("bssplit"))
}

/// The same words in another order.
fn same_words(found: &Difference) -> bool {
    let sorted = |text: &str| {
        let mut words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        words.sort();
        words
    };
    sorted(&found.theirs) == sorted(&found.ours)
}

/// The sum of the numbers in brackets.
fn sum(text: &str) -> u64 {
    let list = text
        .rsplit_once('[')
        .unwrap_or_default()
        .1
        .trim_end_matches(']');
    list.split(", ").filter_map(|n| n.parse::<u64>().ok()).sum()
}

/// The row that allows a difference.
pub(crate) fn row(case: &Case, difference: &Difference) -> Option<&'static str> {
    if difference.topic == Topic::Refused
        && let Some(row) = stricter(case, difference)
    {
        return Some(row);
    }
    let fits = |a: &&Allowed| a.topic == difference.topic && (a.is)(case, difference);
    ALLOWED.iter().find(fits).map(|a| a.row)
}

/// The row of the first refusal, where each of them has one.
fn stricter(case: &Case, difference: &Difference) -> Option<&'static str> {
    let rows: Option<Vec<_>> = refusals(&difference.ours)
        .into_iter()
        .map(|(code, line)| {
            let related = RELATED.contains(&code) && case.kind == Kind::Parse;
            if related {
                Some(PARSE_ONLY)
            } else {
                row_of_line(line)
            }
        })
        .collect();
    rows?.first().copied()
}

fn row_of_line(line: &str) -> Option<&'static str> {
    let line = line.trim_start_matches('-').split([';', '#']).next()?;
    let (key, value) = line.split_once('=').unwrap_or((line, ""));
    let listed = STRICTER.iter().find(|(_, is)| is(key.trim(), value.trim()));
    listed.map(|(row, _)| *row)
}

/// Code and line of each error that weir tells.
fn refusals(errors: &str) -> Vec<(&str, &str)> {
    errors
        .split("error[")
        .skip(1)
        .map(|part| (part.split(']').next().unwrap_or_default(), quoted(part)))
        .collect()
}

/// The line that an error shows behind its number.
fn quoted(error: &str) -> &str {
    let mut lines = error.lines().filter_map(|line| line.split_once(" | "));
    let numbered = lines.find(|(number, _)| number.trim().parse::<usize>().is_ok());
    numbered.map_or("", |(_, line)| line.trim())
}

/// First cells of the table of differences.
fn rows(book: &str) -> Vec<&str> {
    let table = book.split("## Differences").nth(1).unwrap_or_default();
    let rows = table.lines().filter(|l| l.starts_with('|')).skip(2);
    rows.map(|l| l.split('|').nth(1).unwrap_or_default().trim())
        .collect()
}

#[test]
fn every_difference_that_is_allowed_has_a_row_in_the_book() {
    let path = crate::stage::root().join("docs/book/src/coming-from-fio.md");
    let book = std::fs::read_to_string(path).unwrap();
    let rows = rows(&book);
    let allowed = ALLOWED
        .iter()
        .map(|a| a.row)
        .chain(STRICTER.iter().map(|s| s.0));
    for row in allowed {
        assert!(rows.contains(&row), "no row `{row}` in the table");
    }
    let mut unique = rows.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), rows.len(), "a row stands twice");
}
