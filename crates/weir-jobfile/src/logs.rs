//! Logs: from what options say about them to the plan's logs.
//!
//! In: prefixes and columns. Out: a log with its path for each file that fio would write. Not
//! here: what stands in them.

use weir_schema::{Log, Logged};
use weir_units::Nanos;

/// Everything that options say about logs.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "one for each independent switch"
)]
pub(crate) struct Logs {
    pub bandwidth: Named,
    pub operations: Named,
    pub latency: Named,
    pub buckets: Named,
    pub numbered: bool,
    pub window: Nanos,
    pub bucket_window: Nanos,
    pub coarseness: u8,
    pub maximum: bool,
    pub offset: bool,
    pub hex_priority: bool,
    pub since_1970: bool,
    pub compressed: bool,
}

/// Request for a log, and its prefix.
#[derive(Clone, Debug, Default)]
pub(crate) enum Named {
    #[default]
    Off,
    ByJob,
    Prefix(String),
}

impl Named {
    /// A prefix that was given before stays where none is given.
    pub(crate) fn give(&mut self, prefix: Option<&str>) {
        match (prefix, &self) {
            (Some(prefix), _) => *self = Self::Prefix(prefix.to_owned()),
            (None, Self::Prefix(_)) => {}
            (None, _) => *self = Self::ByJob,
        }
    }
}

impl Default for Logs {
    fn default() -> Self {
        Self {
            bandwidth: Named::Off,
            operations: Named::Off,
            latency: Named::Off,
            buckets: Named::Off,
            numbered: true,
            window: Nanos(0),
            bucket_window: Nanos(0),
            coarseness: 0,
            maximum: false,
            offset: false,
            hex_priority: false,
            since_1970: false,
            compressed: false,
        }
    }
}

impl Logs {
    /// Each operation is logged, so that its time is needed.
    pub(crate) fn wants_operations(&self) -> bool {
        let rates = [&self.bandwidth, &self.operations];
        let wanted = rates.iter().any(|named| !matches!(named, Named::Off));
        wanted && self.window.0 == 0
    }

    /// The plan's logs of a job of this name. Of slat, clat and lat, those that are recorded.
    pub(crate) fn plan(&self, job: &str, [slat, clat, lat]: [bool; 3]) -> Vec<Log> {
        let coarseness = self.coarseness;
        let off = &Named::Off;
        let latency = |recorded: bool| if recorded { &self.latency } else { off };
        let wanted = [
            (&self.bandwidth, "bw", Logged::Bandwidth),
            (&self.operations, "iops", Logged::Operations),
            (latency(slat), "slat", Logged::Slat),
            (latency(clat), "clat", Logged::Clat),
            (latency(lat), "lat", Logged::Lat),
            (&self.buckets, "clat_hist", Logged::Buckets { coarseness }),
        ];
        let log = |(named, suffix, what): (&Named, &str, Logged)| {
            let prefix = match named {
                Named::Off => return None,
                Named::ByJob => job,
                Named::Prefix(prefix) => prefix,
            };
            let end = if self.compressed { ".fz" } else { "" };
            let number = if self.numbered { ".$worker" } else { "" };
            Some(Log {
                what,
                path: format!("{prefix}_{suffix}{number}.log{end}"),
                window_ns: match what {
                    Logged::Buckets { .. } => self.bucket_window,
                    _ => self.window,
                },
                maximum: self.maximum,
                offset: self.offset,
                hex_priority: self.hex_priority,
                since_1970: self.since_1970,
                compressed: self.compressed,
            })
        };
        wanted.into_iter().filter_map(log).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_log_is_three_files_and_the_job_gives_the_prefix() {
        let logs = Logs {
            latency: Named::ByJob,
            buckets: Named::Prefix("h".to_owned()),
            bucket_window: Nanos(5),
            ..Logs::default()
        };
        let paths: Vec<String> = logs
            .plan("w1", [true; 3])
            .into_iter()
            .map(|l| l.path)
            .collect();
        let names = ["w1_slat", "w1_clat", "w1_lat", "h_clat_hist"];
        assert_eq!(paths, names.map(|n| format!("{n}.$worker.log")));
        let shared = Logs {
            numbered: false,
            ..logs
        };
        assert_eq!(shared.plan("w1", [true; 3])[0].path, "w1_slat.log");
        assert_eq!(shared.plan("w1", [true; 3])[3].window_ns, Nanos(5));
        let recorded: Vec<Logged> = shared
            .plan("w1", [true, false, false])
            .iter()
            .map(|l| l.what)
            .collect();
        assert_eq!(recorded, [Logged::Slat, Logged::Buckets { coarseness: 0 }]);
    }

    #[test]
    fn a_log_without_a_prefix_keeps_the_one_that_was_given_before() {
        let mut named = Named::Off;
        named.give(None);
        assert!(matches!(named, Named::ByJob));
        named.give(Some("b"));
        named.give(None);
        assert!(matches!(named, Named::Prefix(prefix) if prefix == "b"));
    }
}
