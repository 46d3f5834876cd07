//! The differences that are meant. Each names its row in the table of the book.

use crate::beside::{Case, Kind};
use crate::differ::{Difference, Topic};
use crate::reasons::*;
use crate::sections::Job;
use crate::stricter::STRICTER;

/// A difference that is meant.
pub(crate) struct Allowed {
    /// The first cell of its row in the section "Differences" of `coming-from-fio.md`.
    pub(crate) row: &'static str,
    /// Topic that may differ.
    pub(crate) topic: Topic,
    /// True for a difference of this kind.
    pub(crate) is: fn(&Case, &Difference) -> bool,
}

/// Combination of options, which fio checks only when it runs.
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
    allow(LARGER_FILE, Topic::Counts, |case, found| {
        case.any(&found.ours, leaves_its_region)
    }),
    allow(LARGER_FILE, Topic::Counts, ends_behind_its_region),
    allow(PASSES_OF_A_MIX, Topic::Counts, ends_with_one_kind),
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
    allow(SIZELESS, Topic::Entries, |case, found| {
        case.any(&found.ours, is_sizeless)
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
        |case, found| {
            let ends_early = sum(&found.theirs) <= sum(&found.ours);
            // It makes up for it in another pass.
            let fits = |job: &Job| draws_several_sizes(job) && (ends_early || job.passes() > 1);
            case.any(&found.ours, fits)
        },
    ),
    allow(
        "an `io_size` beyond `size`, with block sizes that differ",
        Topic::Counts,
        |case, found| {
            let differ = |job: &Job| job.get("bs").is_some_and(|bs| bs.contains(','));
            let fits = |job: &Job| differ(job) && job.number("io_size") > job.number("size");
            case.any(&found.ours, fits) && sum(&found.theirs) <= sum(&found.ours)
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
        |case, found| case.mentions("name") && same_but_for_names(found),
    ),
    allow(
        "`--showcmd` with several global sections",
        Topic::Shown,
        |case, found| case.text().matches("[global").count() > 1 && same_but_for_names(found),
    ),
    allow(
        "`--showcmd` of words that a shell would split",
        Topic::Shown,
        |_, found| found.ours.replace('\'', "") == found.theirs,
    ),
    allow(
        "`--showcmd` with a job of the command line",
        Topic::Shown,
        |case, found| case.words.iter().any(|w| w.starts_with("--name=")) && shows_more(found),
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
    allow(NOT_SET_UP, Topic::Order, |_, found| {
        is_not_set_up(found) || found.output.contains("func=no_size")
    }),
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
    allow(MAPPED, Topic::Entries, |case, found| {
        case.any(&found.ours, maps_unaligned)
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
        |_, found| found.output.contains("engine null moves no data"),
    ),
    allow(
        "verification with the engine `null`",
        Topic::Lines,
        |_, found| found.output.contains("engine null moves no data"),
    ),
    allow(
        "verification with the engine `null`",
        Topic::Keys,
        |_, found| {
            found.output.contains("engine null moves no data") && found.theirs.contains("/read/")
        },
    ),
    allow(
        "a region that ends within a block",
        Topic::Counts,
        |case, found| {
            case.any(&found.ours, may_draw_half_a_block) && sum(&found.theirs) < sum(&found.ours)
        },
    ),
    allow(
        "`slat` of the engine `vsync`",
        Topic::Lines,
        |case, found| case.any("", |job| job.engine() == "vsync") && adds_only(found, &["slat"]),
    ),
    allow(
        "blocks that are read back with `verify_backlog`",
        Topic::Lines,
        |case, found| {
            let of_reads = ["read", "slat", "clat", "clat percentiles", "READ"];
            case.any("", |job| job.has("verify_backlog")) && adds_only(found, &of_reads)
        },
    ),
    allow("`block_error_percentiles`", Topic::Lines, |case, found| {
        let plain = found.theirs.replace("\"block lifetime percentiles\", ", "");
        case.any("", |job| job.has("block_error_percentiles")) && plain == found.ours
    }),
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
    allow(DRAWN, Topic::Counts, reads_back_what_was_drawn),
    allow(DRAWN, Topic::Counts, |case, _| {
        case.any("", |job| job.on_device() && flushes_by_chance(job))
    }),
    allow(DRAWN, Topic::Exit, |case, _| {
        case.any("", |job| job.on_device() && flushes_by_chance(job))
    }),
    allow(DRAWN, Topic::Entries, |case, found| {
        case.any(&found.ours, |job| job.on_device() && flushes_by_chance(job))
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
    allow(DEVICE, Topic::Entries, |case, found| {
        case.any(&found.ours, flushes_device)
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
        |case, found| case.any(&found.ours, draws_several_sizes),
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
    allow(NO_FILES, Topic::Entries, |case, found| {
        case.any(&found.ours, divides_nothing)
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
            let switched = |job: &Job| {
                let off = ["gtod_reduce", "disable_bw_measurement"];
                job.get("stats") == Some("0") || off.iter().any(|option| job.has(option))
            };
            case.any("", switched) && found.theirs.contains(".log ")
        },
    ),
    allow(
        "`--section` that names nothing",
        Topic::Refused,
        |case, _| case.words.iter().any(|w| w == "--section=nobody"),
    ),
];

/// The row that allows a difference; none allows weir to move more than a job asks for.
pub(crate) fn row(case: &Case, difference: &Difference) -> Option<&'static str> {
    if difference.topic == Topic::Counts && moves_too_much(case, difference) {
        return None;
    }
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
