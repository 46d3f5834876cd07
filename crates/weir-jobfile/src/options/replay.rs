//! Options about recorded patterns.

use weir_schema::Kind;

use super::needs;
use super::record::{Applied, Category, Env, OptionRecord, option, refused};
use super::{MAX_32, small};
use crate::diagnostic::Fault;
use crate::draft::Draft;

const NO_TRACES: &str = "block traces are not read; record the pattern with write_iolog";

const fn trace(name: &'static str, short: &'static str) -> OptionRecord {
    refused(name, short, NO_TRACES).of(Category::Pattern)
}

fn leave_out(draft: &mut Draft, text: &str, _: &Env<'_>) -> Applied {
    let kind = |word: &str| match word {
        "read" => Ok(Kind::Read),
        "write" => Ok(Kind::Write),
        "trim" => Ok(Kind::Trim),
        "flush" | "sync" => Ok(Kind::Sync),
        _ => Err(
            Fault::value(format!("`{word}` is not a value of `replay_skip`"))
                .label("unknown word")
                .help("one of read, write, trim, flush")
                .piece(word),
        ),
    };
    let words = text.split([',', ':']).map(str::trim);
    draft.replay.leave_out = words.map(kind).collect::<Result<_, _>>()?;
    Ok(())
}

pub(super) static RECORDS: &[OptionRecord] = &[
    option("write_iolog", "File that gets the operations")
        .of(Category::Pattern)
        .long("As text of version 3, in the order of issue, written when the job ends; all clones share it.")
        .text(|d, v, _| {
            d.recording.record_operations_to = Some(v.to_owned());
            Ok(())
        }),
    option("read_iolog", "Carry out the operations of this file")
        .of(Category::Pattern)
        .long("Text of version 2 or 3, as write_iolog makes it. It sets files, kinds, offsets, sizes and times; rw, bs, size and filename have no effect. In version 2, `wait N` waits until N ms after the start.")
        .text(|d, v, _| {
            d.replay.path = Some(v.to_owned());
            Ok(())
        }),
    option("replay_no_stall", "Carry recorded operations out without pauses")
        .needs(needs::RECORDED)
        .of(Category::Pattern)
        .bool(|d, on| d.replay.no_pauses = on),
    option("replay_redirect", "Carry recorded operations out on this file or device")
        .needs(needs::RECORDED)
        .of(Category::Pattern)
        .text(|d, v, _| {
            d.replay.onto = Some(v.to_owned());
            Ok(())
        }),
    option("replay_scale", "Recorded offsets are divided by this")
        .needs(needs::RECORDED)
        .of(Category::Pattern)
        .long("0 leaves them as they are, like 1.")
        .default("1")
        .integer(0, MAX_32, |d, n| d.replay.divide_offsets = small(n).max(1)),
    option("replay_align", "Recorded offsets are rounded down to this")
        .needs(needs::RECORDED)
        .of(Category::Pattern)
        .default("0")
        .integer(0, u64::MAX, |d, n| d.replay.align = n),
    option("replay_time_scale", "Rate in percent of the recorded one")
        .needs(needs::RECORDED)
        .of(Category::Pattern)
        .default("100")
        .integer(1, MAX_32, |d, n| d.replay.rate_percent = small(n)),
    option("replay_skip", "Recorded kinds that are left out")
        .needs(needs::RECORDED)
        .of(Category::Pattern)
        .long("Of read, write, trim, flush.")
        .text(leave_out),
    option("read_iolog_chunked", "Read the pattern piece by piece while it is carried out")
        .needs(needs::RECORDED)
        .of(Category::Pattern)
        .long("For patterns that do not fit into memory, where an operation takes 32 bytes. They are gone through once before the start; reading a piece counts as preparation.")
        .bool(|d, on| d.replay.in_pieces = on),
    trace("merge_blktrace_file", "Merged trace"),
    trace("merge_blktrace_scalars", "Scale of each trace"),
    trace("merge_blktrace_iters", "Passes over each trace"),
];
