//! Options that belong to engines: fio's word, weir's word for the engine's setting.
//!
//! A setting acts only where the catalogue's engine declares it. Words of engines that no build
//! has are here too, so that a job of theirs is refused for its engine, not for each word.

use super::needs;
use super::record::{Category, OptionRecord, Scope, Support, option, setting};

const URING: &[&str] = &["io_uring"];
const URING_CMD: &[&str] = &["io_uring", "io_uring_cmd"];
const PRIORITIES: &[&str] = &["io_uring", "libaio"];
const EMULATED: &[&str] = &["dma-emu"];

/// A word of engines that have no setting for it.
const fn foreign(name: &'static str, engines: &'static [&'static str]) -> OptionRecord {
    let record = option(name, "Belongs to an engine that is not built in");
    let support = Support::Refused {
        nearest: "its engine is not built in",
    };
    OptionRecord {
        category: Category::Engine,
        scope: Scope::Engines(engines),
        support,
        ..record
    }
}

pub(super) static RECORDS: &[OptionRecord] = &[
    setting(
        "hipri",
        "polled",
        &["io_uring", "io_uring_cmd", "pvsync2", "sg"],
        "Poll for completions",
    )
    .switch(),
    setting(
        "hipri_percentage",
        "polled_percent",
        &["pvsync2"],
        "Share of polled operations",
    )
    .needs(needs::POLLED)
    .default("100"),
    setting(
        "fixedbufs",
        "registered_buffers",
        URING_CMD,
        "Register buffers with the kernel",
    )
    .switch(),
    setting(
        "registerfiles",
        "registered_files",
        URING_CMD,
        "Register files with the kernel",
    )
    .switch(),
    setting(
        "sqthread_poll",
        "kernel_poll_thread",
        URING_CMD,
        "A kernel thread takes submissions",
    )
    .switch(),
    setting(
        "sqthread_poll_cpu",
        "kernel_poll_cpu",
        URING_CMD,
        "CPU of the kernel thread",
    )
    .needs(needs::KERNEL_THREAD),
    setting(
        "nonvectored",
        "nonvectored",
        URING_CMD,
        "Use read and write, not readv and writev",
    ),
    setting(
        "force_async",
        "force_async",
        URING,
        "Every so many operations go to a kernel worker",
    ),
    setting(
        "userspace_reap",
        "user_space_reap",
        &["libaio"],
        "Read completions from the mapped ring",
    )
    .switch(),
    setting(
        "nowait",
        "no_wait",
        &["io_uring", "libaio", "pvsync2"],
        "Fail instead of waiting (RWF_NOWAIT)",
    ),
    setting(
        "uncached",
        "uncached",
        &["io_uring", "pvsync2"],
        "Drop pages after use (RWF_UNCACHED)",
    ),
    setting(
        "thp",
        "transparent_huge_pages",
        &["mmap"],
        "Ask for huge pages behind the mapping",
    ),
    setting(
        "emu_size",
        "emu_size",
        EMULATED,
        "Memory of the emulated card",
    )
    .default("64g"),
    setting(
        "emu_dir",
        "emu_dir",
        EMULATED,
        "What the channel takes: h2c, c2h or both",
    )
    .default("both"),
    setting(
        "emu_latency",
        "emu_latency",
        EMULATED,
        "Microseconds added to each operation",
    )
    .default("0"),
    setting(
        "emu_bw",
        "emu_bw",
        EMULATED,
        "Bytes per second of the channel",
    )
    .default("0"),
    setting(
        "emu_shared",
        "emu_shared",
        EMULATED,
        "Card whose memory the channel shares",
    ),
    setting(
        "emu_fault",
        "emu_fault",
        EMULATED,
        "What goes wrong, for example flip@2m",
    ),
    setting("stat_type", "call", &["filestat"], "System call that looks").default("stat"),
    setting(
        "cmdprio_percentage",
        "priority_percent",
        PRIORITIES,
        "Share of high-priority I/O",
    ),
    setting(
        "cmdprio_class",
        "priority_class",
        PRIORITIES,
        "Class of high-priority I/O",
    )
    .needs(needs::PRIORITIES),
    setting(
        "cmdprio",
        "priority_level",
        PRIORITIES,
        "Level of high-priority I/O",
    )
    .needs(needs::PRIORITIES),
    setting(
        "cmdprio_bssplit",
        "priority_by_size",
        PRIORITIES,
        "High-priority I/O by block size",
    ),
    setting(
        "cmd_type",
        "command_type",
        &["io_uring_cmd"],
        "Language of the commands",
    )
    .default("nvme"),
    foreign("bindname", &["rdma"]),
    foreign("verb", &["rdma"]),
    foreign("readfua", &["sg"]),
    foreign("writefua", &["sg"]),
    foreign("sg_write_mode", &["sg"]),
    foreign("uri", &["nbd"]),
    foreign("pool", &["dfs", "rados"]),
    foreign("cont", &["dfs"]),
    foreign("chunk_size", &["dfs", "libhdfs"]),
    foreign("object_class", &["dfs"]),
    foreign("donorname", &["e4defrag"]),
    foreign("inplace", &["e4defrag"]),
    foreign("volume", &["gfapi", "gfapi_async"]),
    foreign("brick", &["gfapi", "gfapi_async"]),
    foreign("clustername", &["rbd", "rados"]),
    foreign("rbdname", &["rbd"]),
    foreign("clientname", &["rbd", "rados"]),
    foreign("busy_poll", &["rbd", "rados"]),
    foreign("touch_objects", &["rados"]),
    foreign("skip_bad", &["mtd"]),
];
