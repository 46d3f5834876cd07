//! Job files for a card whose DMA channels are character devices.
//!
//! Every worker owns one channel and one section of the card's memory. The nodes of the two
//! directions are different names for the same memory; what is written through one is read and
//! checked through the other.

/// Units of sizes, and the bits they shift by.
const UNITS: [(char, u32); 4] = [('k', 10), ('m', 20), ('g', 30), ('t', 40)];
/// Block sizes of a sweep, in KiB.
const SWEEP: [u64; 8] = [4, 8, 16, 32, 64, 256, 1024, 2048];
/// Lines of every job file: no file is made in place of a missing node, and a channel that hangs ends its
/// job.
const COMMON: &str = "allow_file_create=0\nioengine=psync\niomem=mmap\nratemin=1m\n";

/// A card, with the division of its memory.
#[derive(Clone, Debug)]
pub(super) struct XdmaCard {
    pub(super) driver: String,
    pub(super) channels: u64,
    pub(super) workers: u64,
    pub(super) memory: u64,
}

/// Bytes of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum XdmaBlockSize {
    Fixed(u64),
    /// One size after the other.
    Sweep,
    /// Left to the command line.
    Open,
}

impl XdmaBlockSize {
    pub(super) fn largest(self) -> u64 {
        match self {
            Self::Fixed(size) => size,
            Self::Sweep => 2 << 20,
            Self::Open => 1 << 20,
        }
    }

    fn in_name(self) -> String {
        match self {
            Self::Fixed(size) => format!("-{}", short(size).to_ascii_uppercase()),
            Self::Sweep => "-X".to_owned(),
            Self::Open => "_var".to_owned(),
        }
    }

    fn option(self) -> String {
        match self {
            Self::Fixed(size) => format!("bs={}\n", short(size)),
            Self::Sweep | Self::Open => String::new(),
        }
    }
}

/// Operation of a job file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum XdmaMode {
    Verify,
    Write,
    Read,
}

impl XdmaMode {
    const fn word(self) -> &'static str {
        match self {
            Self::Verify => "verify",
            Self::Write => "write",
            Self::Read => "read",
        }
    }
}

impl XdmaCard {
    /// Bytes of a worker's section: whole blocks.
    pub(super) fn section(&self, size: XdmaBlockSize) -> u64 {
        let section = self.memory / self.workers;
        section - section % size.largest()
    }

    /// A write driver that answers before the data is on the card has to be flushed.
    fn posts_writes(&self) -> bool {
        self.driver == "edma"
    }

    fn node(&self, worker: u64, writes: bool) -> String {
        let (driver, channel) = (&self.driver, worker % self.channels);
        let way = match (self.posts_writes(), writes) {
            (true, _) => "queue",
            (false, true) => "h2c",
            (false, false) => "c2h",
        };
        format!("/dev/{driver}0_{way}_{channel}")
    }

    /// Options of a section that moves data.
    fn io(&self, worker: u64, writes: bool, section: u64) -> String {
        let (rw, node) = (
            if writes { "write" } else { "read" },
            self.node(worker, writes),
        );
        let offset = short(worker * section);
        format!("offset={offset}\nrw={rw}\nfilename={node}\n")
    }

    fn flushes(&self, mode: XdmaMode) -> String {
        let every = match mode {
            XdmaMode::Verify => 16,
            XdmaMode::Write => 32,
            XdmaMode::Read => return String::new(),
        };
        if self.posts_writes() {
            format!("fsync={every}\nend_fsync=1\n")
        } else {
            String::new()
        }
    }
}

/// Name and text of a file.
pub(super) fn file(card: &XdmaCard, size: XdmaBlockSize, mode: XdmaMode) -> (String, String) {
    let name = format!(
        "{}_{}-ch_{}{}_{}.fio",
        card.driver,
        card.channels,
        card.workers,
        size.in_name(),
        mode.word()
    );
    let body = match (mode, size) {
        (XdmaMode::Verify, _) => verify(card, size),
        (_, XdmaBlockSize::Sweep) => sweep(card, mode),
        _ => plain(card, size, mode),
    };
    (name, head(card, size, mode) + &body)
}

fn head(card: &XdmaCard, size: XdmaBlockSize, mode: XdmaMode) -> String {
    let what = match mode {
        XdmaMode::Verify => {
            "Each worker fills its section of the card's memory, then checks it through the\n# other direction"
        }
        XdmaMode::Write => "Each worker writes its own section of the card's memory",
        XdmaMode::Read => "Each worker reads its own section of the card's memory",
    };
    let blocks = match size {
        XdmaBlockSize::Fixed(size) => format!(" {} at a time", short(size).to_ascii_uppercase()),
        XdmaBlockSize::Sweep => "\n# 4 KiB to 2 MiB at a time, one group for each size".to_owned(),
        XdmaBlockSize::Open => {
            "\n# with the block size of the command line: --blocksize=128k".to_owned()
        }
    };
    let (channels, workers) = (card.channels, card.workers);
    let section = short(card.section(size)).to_ascii_uppercase();
    format!(
        "# {what},{blocks}.\n# {workers} workers on {channels} channels, sections of {section}. \
         Made by weir new xdma.\n"
    )
}

/// All workers at once.
fn plain(card: &XdmaCard, size: XdmaBlockSize, mode: XdmaMode) -> String {
    let section = card.section(size);
    let (memory, block, flushes) = (short(card.memory), size.option(), card.flushes(mode));
    let mut out = format!("[global]\n{COMMON}filesize={memory}\n{block}{flushes}");
    for worker in 0..card.workers {
        let io = card.io(worker, mode == XdmaMode::Write, section);
        push!(out, "\n[w{}]\nsize={}\n{io}", worker + 1, short(section));
    }
    out
}

/// Job file in which every worker writes, and each is read back by a group of its own as soon as it has
/// ended.
fn verify(card: &XdmaCard, size: XdmaBlockSize) -> String {
    let section = card.section(size);
    let (memory, block) = (short(card.memory), size.option());
    let mut out = format!(
        "[global]\n{COMMON}filesize={memory}\nsize={}\n{block}verify=xxhash\nverify_fatal=1\n\
         verify_dump=1\n",
        short(section)
    );
    let flushes = card.flushes(XdmaMode::Verify);
    for worker in 0..card.workers {
        let (down, up) = (
            card.io(worker, true, section),
            card.io(worker, false, section),
        );
        push!(
            out,
            "\n[write-phase-{worker}]\n{down}{flushes}do_verify=0\n\
             \n[verify-phase-{worker}]\nnew_group\nwait_for=write-phase-{worker}\n{up}do_verify=1\n"
        );
    }
    out
}

/// Job file with one size after the other. Small blocks move less data, so that each size takes a similar
/// time.
fn sweep(card: &XdmaCard, mode: XdmaMode) -> String {
    let section = card.section(XdmaBlockSize::Sweep);
    let (memory, flushes) = (short(card.memory), card.flushes(mode));
    let mut out = format!("[global]\n{COMMON}filesize={memory}\ngroup_reporting=1\n{flushes}");
    for kib in SWEEP {
        let block = kib << 10;
        let share = match kib {
            4 | 8 => section / 4,
            16 => section / 2,
            _ => section,
        };
        let moved = (share - share % block).max(block);
        let name = match kib {
            1024.. => format!("{}MB", kib >> 10),
            _ => format!("{kib}KB"),
        };
        for worker in 0..card.workers {
            let barrier = if worker == 0 { "stonewall\n" } else { "" };
            let io = card.io(worker, mode == XdmaMode::Write, section);
            push!(
                out,
                "\n[{name}]\n{barrier}bs={}\nsize={}\n{io}",
                short(block),
                short(moved)
            );
        }
    }
    out
}

/// Bytes in the largest unit that divides them.
fn short(bytes: u64) -> String {
    let mut units = UNITS.into_iter().rev();
    let fits = |shift: u32| bytes > 0 && bytes.is_multiple_of(1 << shift);
    match units.find(|(_, shift)| fits(*shift)) {
        Some((unit, shift)) => format!("{}{unit}", bytes >> shift),
        None => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(driver: &str, workers: u64) -> XdmaCard {
        XdmaCard {
            driver: driver.to_owned(),
            channels: 4,
            workers,
            memory: 64 << 30,
        }
    }

    #[test]
    fn workers_take_turns_on_the_channels_and_have_sections_of_their_own() {
        let (_, text) = file(
            &card("xdma", 8),
            XdmaBlockSize::Fixed(1 << 20),
            XdmaMode::Write,
        );
        for line in [
            "[w8]\nsize=8g\noffset=56g\nrw=write\nfilename=/dev/xdma0_h2c_3\n",
            "[w1]\nsize=8g\noffset=0\nrw=write\nfilename=/dev/xdma0_h2c_0\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
        assert_eq!(text.matches("\n[w").count(), 8);
    }

    #[test]
    fn sections_hold_whole_blocks() {
        let section = card("xdma", 3).section(XdmaBlockSize::Fixed(1 << 20));
        assert!(section.is_multiple_of(1 << 20) && section * 3 <= 64 << 30);
        assert_eq!(short(section), "21845m");
    }

    #[test]
    fn a_driver_that_posts_writes_is_flushed_and_has_one_node_for_both_ways() {
        let (_, write) = file(
            &card("edma", 4),
            XdmaBlockSize::Fixed(1 << 20),
            XdmaMode::Write,
        );
        assert!(write.contains("fsync=32\nend_fsync=1\n"), "{write}");
        let (_, verify) = file(
            &card("edma", 4),
            XdmaBlockSize::Fixed(1 << 20),
            XdmaMode::Verify,
        );
        assert_eq!(verify.matches("fsync=16\nend_fsync=1\n").count(), 4);
        assert_eq!(verify.matches("/dev/edma0_queue_2\n").count(), 2);
        let (_, read) = file(
            &card("edma", 4),
            XdmaBlockSize::Fixed(1 << 20),
            XdmaMode::Read,
        );
        assert!(!read.contains("fsync"));
    }

    #[test]
    fn a_sweep_moves_less_with_small_blocks() {
        let (_, text) = file(&card("xdma", 4), XdmaBlockSize::Sweep, XdmaMode::Read);
        assert_eq!(text.matches("stonewall").count(), 8);
        for part in [
            "bs=8k\nsize=4g\n",
            "bs=16k\nsize=8g\n",
            "[2MB]\nbs=2m\nsize=16g\noffset=48g\n",
        ] {
            assert!(text.contains(part), "{part}");
        }
    }
}
