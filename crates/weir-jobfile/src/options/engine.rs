//! Options about the engine, the queue depth, memory, flushes and where workers run.

use weir_schema::{MemoryKind, RangeFlush, ShareCpus};
use weir_units::{Bytes, QueueDepth};

use super::needs;
use super::record::{Applied, Category, Env, OptionRecord, option};
use super::{MAX_32, small};
use crate::diagnostic::Fault;
use crate::draft::Draft;
use crate::value::list;
use crate::value::number::{NumberScale, number};

fn memory(draft: &mut Draft, word: &str, tail: Option<&str>, _: &Env<'_>) -> Applied {
    draft.memory.kind = match (word, tail) {
        ("mmap" | "mmapshared", Some(_)) => MemoryKind::File,
        (_, Some(tail)) => {
            return Err(Fault::value(format!("`mem={word}` takes no file"))
                .label("only mmap:FILE and mmapshared:FILE do")
                .piece(tail));
        }
        ("shm" | "mmapshared", None) => MemoryKind::Shared,
        ("shmhuge", None) => MemoryKind::SharedHuge,
        ("mmaphuge", None) => MemoryKind::Huge,
        _ => MemoryKind::Private,
    };
    draft.memory.path = tail.map(str::to_owned);
    Ok(())
}

fn sync_mode(draft: &mut Draft, word: &str) {
    draft.open.sync = matches!(word, "sync" | "1");
    draft.open.data_sync = word == "dsync";
}

/// `wait_before,write,wait_after:N`.
fn range_flush(draft: &mut Draft, text: &str, _: &Env<'_>) -> Applied {
    let scale = NumberScale::Count {
        kb_base: draft.kb_base,
    };
    let (words, count) = text.split_once(':').unwrap_or((text, "1"));
    let every = small(number(count.trim(), scale)?);
    let mut range = RangeFlush {
        every,
        wait_before: false,
        write: false,
        wait_after: false,
    };
    for word in words.split(',').map(str::trim) {
        match word {
            "wait_before" => range.wait_before = true,
            "write" => range.write = true,
            "wait_after" => range.wait_after = true,
            _ => {
                return Err(
                    Fault::value(format!("`{word}` is not a value of `sync_file_range`"))
                        .label("unknown word")
                        .help("one of wait_before, write, wait_after")
                        .piece(word),
                );
            }
        }
    }
    draft.flush.range = (every > 0).then_some(range);
    Ok(())
}

fn mask(draft: &mut Draft, mask: u64) {
    draft.placement.cpus = Some((0..64).filter(|cpu| mask >> cpu & 1 == 1).collect());
}

pub(super) static RECORDS: &[OptionRecord] = &[
    // The engine is looked up in the catalogue before any other option is applied.
    option("ioengine", "How operations are carried out")
        .of(Category::Engine)
        .default("psync")
        .long("`weir engines` lists those of this build. Which engine runs is part of the output.")
        .text(|_, _, _| Ok(())),
    option("iodepth", "Operations in flight")
        .needs(needs::QUEUE)
        .of(Category::Engine)
        .default("1")
        .integer(1, MAX_32, |d, n| d.depth.queue_depth = QueueDepth(small(n))),
    option("iodepth_batch", "Operations handed over at once")
        .needs(needs::DEPTH)
        .of(Category::Engine)
        .aliases(&["iodepth_batch_submit"])
        .default("1")
        .long("0: as many as iodepth.")
        .integer(0, MAX_32, |d, n| d.depth.submit_batch = small(n)),
    option("iodepth_batch_complete_min", "Completions waited for at once")
        .needs(needs::DEPTH)
        .of(Category::Engine)
        .aliases(&["iodepth_batch_complete"])
        .default("1")
        .long("0: look, do not wait.")
        .integer(0, MAX_32, |d, n| d.depth.reap_min = small(n)),
    option("iodepth_batch_complete_max", "Completions taken at once")
        .needs(needs::DEPTH)
        .of(Category::Engine)
        .long("Default: all that are there.")
        .integer(0, MAX_32, |d, n| d.depth.reap_max = small(n)),
    option("iodepth_low", "New operations are issued when no more than this are in flight")
        .needs(needs::DEPTH_ABOVE)
        .of(Category::Engine)
        .long("Default: iodepth.")
        .integer(0, MAX_32, |d, n| d.depth.refill_below = Some(small(n)).filter(|n| *n > 0)),
    option("io_submit_mode", "Whether operations keep to their schedule while others are slow")
        .needs(needs::RATE)
        .of(Category::Engine)
        .default("inline")
        .long("`offload`: latency counts from intended starts, as with open_loop=1; weir needs no threads of its own for that. A synchronous engine with iodepth above 1 is refused then: it carries out one operation at a time.")
        .words(
            &[
                ("inline", "Submit and complete IO inline"),
                ("offload", "Offload submit and complete to threads"),
            ],
            |d, word| d.offloaded = word == "offload",
        ),
    option("serialize_overlap", "Wait for operations in flight that touch the same bytes")
        .needs(needs::DEPTH)
        .of(Category::Engine)
        .bool(|d, on| d.no_overlap = on),
    option("direct", "Bypass the page cache (O_DIRECT)")
        .of(Category::Engine)
        .bool(|d, on| d.open.direct = on),
    option("buffered", "Use the page cache; the opposite of direct")
        .of(Category::Engine)
        .bool(|d, on| d.open.direct = !on)
        .default("1"),
    option("sync", "Open for synchronous writes")
        .of(Category::Engine)
        .default("none")
        .words(&[("none", ""), ("0", ""), ("sync", ""), ("1", ""), ("dsync", "")], sync_mode),
    option("fsync", "fsync after so many writes")
        .needs(needs::WRITES)
        .of(Category::Engine)
        .default("0")
        .integer(0, MAX_32, |d, n| d.flush.fsync_every = Some(small(n)).filter(|n| *n > 0)),
    option("fdatasync", "fdatasync after so many writes")
        .needs(needs::WRITES)
        .of(Category::Engine)
        .default("0")
        .integer(0, MAX_32, |d, n| d.flush.fdatasync_every = Some(small(n)).filter(|n| *n > 0)),
    option("sync_file_range", "sync_file_range over what was written, after so many writes")
        .needs(needs::WRITES)
        .of(Category::Engine)
        .long("`wait_before,write,wait_after:N`; any of the three words.")
        .text(range_flush),
    option("end_fsync", "fsync when the job ends")
        .long("Also after each of `loops` and each pass that `io_size` asks for. It counts as time of the job.")
        .needs(needs::WRITES)
        .of(Category::Engine)
        .bool(|d, on| d.flush.fsync_at_end = on),
    option("fsync_on_close", "fsync at each close")
        .needs(needs::WRITES)
        .of(Category::Engine)
        .bool(|d, on| d.flush.fsync_on_close = on),
    option("mem", "Where buffers come from")
        .of(Category::Engine)
        .aliases(&["iomem"])
        .default("malloc")
        .long("malloc and mmap both give page-aligned pages, touched beforehand, and from 1 MiB on transparent huge pages where the machine allows them. `mmap:FILE` uses a file's pages.")
        .words_with_tail(
            &[
                ("malloc", "Use malloc(3) for IO buffers"),
                ("shm", "Use shared memory segments for IO buffers"),
                ("shmhuge", "Like shm, but use huge pages"),
                ("mmap", "Use mmap(2) (file or anon) for IO buffers"),
                ("mmapshared", "Like mmap, but use the shared flag"),
                ("mmaphuge", "Like mmap, but use huge pages"),
            ],
            memory,
        ),
    option("iomem_align", "Offset of buffers from a page's start")
        .of(Category::Engine)
        .aliases(&["mem_align"])
        .default("0")
        .integer(0, MAX_32, |d, n| d.memory.align_bytes = Some(Bytes(n)).filter(|b| b.0 > 0)),
    option("hugepage-size", "Size of huge pages")
        .needs(needs::HUGE_PAGES)
        .of(Category::Engine)
        .default("2097152")
        .integer(1, u64::MAX, |d, n| d.memory.huge_page_bytes = Some(Bytes(n))),
    option("cpus_allowed", "CPUs that the job may use")
        .of(Category::Process)
        .long("A list such as 0-3,5.")
        .text(|d, v, env| {
            d.placement.cpus = Some(list::cpus(v, env.environment.cpus)?);
            Ok(())
        }),
    option("cpumask", "CPUs that the job may use, as bits")
        .of(Category::Process)
        .integer(1, u64::MAX, mask),
    option("cpus_allowed_policy", "How clones share the allowed CPUs")
        .needs(needs::CPUS)
        .of(Category::Process)
        .default("shared")
        .words(
            &[("shared", "Mask shared between threads"), ("split", "Mask split between threads")],
            |d, word| {
                d.placement.share =
                    if word == "split" { ShareCpus::Split } else { ShareCpus::Shared };
            },
        ),
    option("nice", "Added to the worker's nice value")
        .of(Category::Process)
        .default("0")
        .signed(-20, 19, |d, n| d.placement.nice = i32::try_from(n).unwrap_or(0)),
    option("numjobs", "Workers that do the same")
        .of(Category::Process)
        .default("1")
        .long("Each has its own thread, random streams and generated files.")
        .integer(1, 1 << 16, |d, n| d.clones = small(n)),
];
