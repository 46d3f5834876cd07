//! The thirteen settings of a thread: names, ranges, defaults.
//!
//! In: values of a file and of flags. Out: what a thread does, with the defaults filled in. Not here:
//! what a device has to say to it ([`super::plan`]).

/// A setting of a thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    /// Name in files and columns.
    pub(super) name: &'static str,
    /// The flag.
    pub(super) flag: &'static str,
    /// The short form of the flag, with two dashes as well.
    pub(super) short: &'static str,
    /// Smallest and largest.
    pub(super) range: (i64, i64),
    /// Text for the help page.
    pub(super) help: &'static str,
}

/// A place among [`SETTINGS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Field {
    BlockSize,
    BurstDelay,
    BurstFinish,
    OffsetHigh,
    OffsetLow,
    OffsetRandom,
    OffsetStride,
    QueueDepth,
    ReadBurst,
    ReadMixPercent,
    ReadSleepUsec,
    WriteBurst,
    WriteSleepUsec,
}

const BLOCK: (i64, i64) = (512, 16 << 20);
const SWITCH: (i64, i64) = (0, 1);
const OFFSET: (i64, i64) = (0, i64::MAX);
const STRIDE: (i64, i64) = (-(1 << 40), 1 << 40);
const DEPTH: (i64, i64) = (1, 1024);
const BURST: (i64, i64) = (0, 1024);
const SLEEP: (i64, i64) = (0, 100_000);

const fn setting(
    name: &'static str,
    flag: &'static str,
    short: &'static str,
    range: (i64, i64),
    help: &'static str,
) -> Setting {
    Setting {
        name,
        flag,
        short,
        range,
        help,
    }
}

/// All of them, in the order of files and columns.
#[rustfmt::skip]
pub(super) const SETTINGS: [Setting; 13] = [
    setting("block_size", "block-size", "bs", BLOCK, "Bytes of an I/O, a multiple of the device's block"),
    setting("burst_delay", "burst-delay", "bd", SWITCH, "1: pause after each burst, 0: after each I/O"),
    setting("burst_finish", "burst-finish", "bf", SWITCH, "1: wait for all I/Os before another burst is drawn"),
    setting("offset_high", "offset-high", "oh", OFFSET, "Where the last I/O ends at the latest; 0: the device's end"),
    setting("offset_low", "offset-low", "ol", OFFSET, "The first byte"),
    setting("offset_random", "offset-random", "or", SWITCH, "1: random offsets, 0: in order"),
    setting("offset_stride", "offset-stride", "os", STRIDE, "Added after each I/O in order; may be negative"),
    setting("queue_depth", "queue-depth", "qd", DEPTH, "Most I/Os in flight, of a thread"),
    setting("read_burst", "read-burst", "rb", BURST, "Reads in a burst"),
    setting("read_mix_percent", "read-mix-percent", "rm", (0, 100), "Share of bursts that read"),
    setting("read_sleep_usec", "read-sleep-usec", "rs", SLEEP, "Pause after a read"),
    setting("write_burst", "write-burst", "wb", BURST, "Writes in a burst"),
    setting("write_sleep_usec", "write-sleep-usec", "ws", SLEEP, "Pause after a write"),
];

impl Field {
    /// All of them, in the order of [`SETTINGS`].
    pub(super) const ALL: [Self; 13] = [
        Self::BlockSize,
        Self::BurstDelay,
        Self::BurstFinish,
        Self::OffsetHigh,
        Self::OffsetLow,
        Self::OffsetRandom,
        Self::OffsetStride,
        Self::QueueDepth,
        Self::ReadBurst,
        Self::ReadMixPercent,
        Self::ReadSleepUsec,
        Self::WriteBurst,
        Self::WriteSleepUsec,
    ];

    /// Description of the setting.
    pub(super) const fn setting(self) -> &'static Setting {
        &SETTINGS[self as usize]
    }

    /// The one of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|field| field.setting().name == name)
    }
}

impl Setting {
    /// A value of a file.
    pub(super) fn check(&self, value: i64) -> Result<i64, String> {
        let (least, most) = self.range;
        if (least..=most).contains(&value) {
            return Ok(value);
        }
        Err(format!(
            "`{}` is {value}: it takes {least} to {most}",
            self.name
        ))
    }
}

/// The settings of a thread as far as they are given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Given([Option<i64>; 13]);

impl Given {
    pub(super) const fn get(&self, field: Field) -> Option<i64> {
        self.0[field as usize]
    }

    pub(super) const fn set(&mut self, field: Field, value: i64) {
        self.0[field as usize] = Some(value);
    }

    /// These settings, and the others where these have none.
    pub(super) fn or(self, others: Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at].or(others.0[at])))
    }

    /// Settings with the defaults, for a device of `end` bytes; 0 where that is unknown.
    ///
    /// # Errors
    /// Settings that make no sense together.
    pub(super) fn complete(self, end: i64) -> Result<Settings, String> {
        use Field as F;
        let block = self.get(F::BlockSize).unwrap_or(4096);
        let read_burst = self.get(F::ReadBurst).unwrap_or(1);
        let high = self.get(F::OffsetHigh).filter(|high| *high != 0);
        let stride = self.get(F::OffsetStride).filter(|stride| *stride != 0);
        let defaults = Self::of(&[
            (F::BlockSize, block),
            (F::BurstDelay, 0),
            (F::BurstFinish, 0),
            (F::OffsetLow, 0),
            (F::OffsetRandom, 0),
            (F::QueueDepth, 1),
            (F::ReadBurst, read_burst),
            (F::ReadMixPercent, 100),
            (F::ReadSleepUsec, 0),
            (F::WriteBurst, read_burst),
            (F::WriteSleepUsec, 0),
        ]);
        let mut all = self.or(defaults);
        all.set(F::OffsetHigh, high.unwrap_or(end));
        all.set(F::OffsetStride, stride.unwrap_or(block));
        let settings = Settings(all.0.map(Option::unwrap_or_default));
        settings.check()?;
        Ok(settings)
    }

    fn of(values: &[(Field, i64)]) -> Self {
        let mut given = Self::default();
        for (field, value) in values {
            given.set(*field, *value);
        }
        given
    }
}

/// The settings of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Settings(pub(super) [i64; 13]);

impl Settings {
    pub(super) const fn get(&self, field: Field) -> i64 {
        self.0[field as usize]
    }

    pub(super) const fn set(&mut self, field: Field, value: i64) {
        self.0[field as usize] = value;
    }

    /// Value as an unsigned number. Only the stride can be negative.
    pub(super) fn size(&self, field: Field) -> u64 {
        u64::try_from(self.get(field)).unwrap_or(0)
    }

    /// The same of settings that are small.
    pub(super) fn count(&self, field: Field) -> u32 {
        u32::try_from(self.get(field)).unwrap_or(0)
    }

    fn check(&self) -> Result<(), String> {
        use Field as F;
        let mix = self.get(F::ReadMixPercent);
        let (reads, writes) = (self.get(F::ReadBurst), self.get(F::WriteBurst));
        if reads == 0 && writes == 0 {
            return Err("read_burst and write_burst are both 0: give one of them".to_owned());
        }
        for (all, burst, name) in [(100, reads, "read_burst"), (0, writes, "write_burst")] {
            if mix == all && burst == 0 {
                return Err(format!(
                    "{name} is 0 and read_mix_percent {mix} asks for nothing else: give 1 or more"
                ));
            }
        }
        for field in [F::BlockSize, F::OffsetStride, F::OffsetLow] {
            if self.get(field) % 512 != 0 {
                let name = field.setting().name;
                return Err(format!(
                    "{name} is {}: it takes a multiple of 512",
                    self.get(field)
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_settings_are_in_one_order() {
        for (at, field) in Field::ALL.into_iter().enumerate() {
            assert_eq!(field as usize, at);
            assert_eq!(Field::named(field.setting().name), Some(field));
        }
        assert!(SETTINGS.is_sorted_by_key(|setting| setting.name));
        assert!(SETTINGS.iter().all(|s| s.flag == s.name.replace('_', "-")));
    }

    #[test]
    fn defaults_follow_what_is_given() {
        let with = |values| Given::of(values).complete(1 << 20).unwrap();
        let plain = with(&[]);
        assert_eq!(
            plain.0,
            [4096, 0, 0, 1 << 20, 0, 0, 4096, 1, 1, 100, 0, 1, 0]
        );
        let given = with(&[
            (Field::BlockSize, 8192),
            (Field::ReadBurst, 30),
            (Field::OffsetHigh, 0),
            (Field::OffsetStride, 0),
        ]);
        assert_eq!(given.get(Field::OffsetStride), 8192);
        assert_eq!(given.get(Field::WriteBurst), 30);
        assert_eq!(given.get(Field::OffsetHigh), 1 << 20);
    }

    #[test]
    fn settings_that_make_no_sense_together_are_refused_by_name() {
        for (values, named) in [
            (&[(Field::ReadBurst, 0)][..], "both 0"),
            (
                &[(Field::ReadBurst, 0), (Field::WriteBurst, 1)],
                "read_burst is 0",
            ),
            (
                &[(Field::ReadMixPercent, 0), (Field::WriteBurst, 0)],
                "write_burst is 0",
            ),
            (&[(Field::BlockSize, 4000)], "block_size is 4000"),
        ] {
            let why = Given::of(values).complete(0).unwrap_err();
            assert!(why.contains(named), "{why}");
        }
        let reads = Given::of(&[(Field::WriteBurst, 0)]);
        assert!(reads.complete(0).is_ok(), "writes do not occur");
    }
}
