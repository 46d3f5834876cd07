//! Files: how many, how large, where, how they are made and in which order they are served.

use super::Takes::{Bool, Count, Size, Word};
use super::{Known, SWITCH, known};

/// Options about files.
pub(super) const OPTIONS: &[Known] = &[
    known(
        &["nrfiles", "nr_files"],
        Count(1, 3),
        &["0x2", "x", "-1", "2k"],
    ),
    known(
        &["filesize"],
        Size(1 << 20, 4 << 20),
        &["1m-2m", "1m:2m", "x"],
    ),
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
    known(&["fsync_on_close"], Bool, SWITCH),
    known(&["openfiles"], Count(1, 4), &["0", "x", "-1", "0x2"]),
    known(
        &["file_service_type"],
        Word(&[
            "roundrobin",
            "sequential",
            "random",
            "roundrobin:2",
            "sequential:3",
            "random:2",
            "zipf:1.2",
            "pareto:0.3",
        ]),
        &[
            "normal",
            "gauss",
            "normal:20",
            "x",
            "zipf",
            "zipf:1",
            "pareto:2",
            "roundrobin:x",
            "random:0",
            "sequential:-1",
        ],
    ),
    known(&["create_on_open"], Bool, SWITCH),
    known(&["create_only"], Word(&["0", "0", "1"]), SWITCH),
    known(&["allow_file_create"], Word(&["1", "1", "0"]), SWITCH),
    known(&["allow_mounted_write"], Bool, SWITCH),
    known(&["file_append"], Bool, SWITCH),
    known(
        &["fadvise_hint"],
        Word(&["0", "1", "random", "sequential"]),
        &["2", "x", "noreuse"],
    ),
    known(
        &["write_hint"],
        Word(&["none", "short", "medium", "long", "extreme"]),
        &["0", "x"],
    ),
    known(
        &["directory"],
        Word(&["dir", "./dir", "dir:many"]),
        &["nowhere", "", "dir:nowhere"],
    ),
    known(
        &["filename_format"],
        Word(&[
            "$jobname.$jobnum.$filenum",
            "f.$filenum",
            "$jobnum-$filenum",
            "all",
            "$jobname",
            "dir/$jobname-$filenum",
        ]),
        &["", "$x", "$"],
    ),
    known(&["opendir"], Word(&["many"]), &["nowhere", "j.fio", ""]),
    known(&["unique_filename"], Bool, SWITCH),
];
