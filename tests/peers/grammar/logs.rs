//! Logs of bandwidth, rate and latency.

use super::Takes::{Bool, Count, Prefix, Word};
use super::{Known, NUMBERS, SWITCH, known};

/// Options about logs.
pub(super) const OPTIONS: &[Known] = &[
    known(
        &["write_bw_log"],
        Prefix(&["b", "log.d", "dir/b"]),
        &["", "a b"],
    ),
    known(
        &["write_iops_log"],
        Prefix(&["i", "log.d", "dir/i"]),
        &["", "a:b"],
    ),
    known(
        &["write_lat_log"],
        Prefix(&["l", "log.d", "dir/l"]),
        &["", "a b"],
    ),
    known(&["write_hist_log"], Prefix(&["h", "log.d"]), &[""]),
    known(
        &["log_avg_msec"],
        Word(&["0", "0", "100", "500"]),
        &["1s", "x", "-1", "1"],
    ),
    known(
        &["log_hist_msec"],
        Word(&["0", "100", "500"]),
        &["1s", "x", "-1", "1"],
    ),
    known(&["log_hist_coarseness"], Count(0, 6), &["7", "x", "-1"]),
    known(&["log_max_value"], Bool, SWITCH),
    known(&["log_offset"], Bool, SWITCH),
    known(&["log_prio"], Bool, SWITCH),
    known(&["log_unix_epoch"], Bool, SWITCH),
    known(&["log_alternate_epoch"], Bool, SWITCH),
    known(&["log_entries"], Word(&["1024", "2048"]), NUMBERS),
    known(&["per_job_logs"], Bool, SWITCH),
];
