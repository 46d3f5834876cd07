//! Block of a test's result in the peer's text: duration, bandwidth, rate, latency, times of the processes.
//!
//! In: figures. Out: lines. Not here: what stands around them (`output`).

use weir_units::Nanos;

use super::output::Style;

/// Result of a test.
pub(super) struct Block<'a> {
    /// Name of the test.
    pub(super) name: String,
    /// It was interrupted.
    pub(super) is_cut: bool,
    /// Operations.
    pub(super) operations: u64,
    /// Bytes moved; none where the block has no bandwidth.
    pub(super) bytes: Option<u64>,
    /// Time that rates count from.
    pub(super) duration: Nanos,
    /// Of an operation.
    pub(super) latency_us: f64,
    /// Time of each rank.
    pub(super) ranks: &'a [Nanos],
}

impl Block<'_> {
    /// Its lines.
    pub(super) fn text(&self, style: Style) -> String {
        // The peer's own words are misspelt.
        let [duration, bandwidth, rate, latency] = match style {
            Style::Seed => ["duration  ", "bandwidth ", "rate      ", "latency   "],
            Style::V29 => ["duration ", "bandwith ", "rate     ", "latency  "],
        };
        let seconds = |time: &Nanos| ratio(time.0, 1_000_000_000);
        let end = if self.is_cut {
            "interrupted"
        } else {
            "successfully completed"
        };
        let mut out = format!("{} {end}:\n", self.name);
        push!(out, "\t{duration}: {:<10.6} sec\n", seconds(&self.duration));
        let per_s = |count: u64| ratio(count, self.duration.0) * 1e9;
        if let Some(bytes) = self.bytes {
            push!(
                out,
                "\t{bandwidth}: {:<10.3} MB/sec\n",
                per_s(bytes) / 1_048_576.0
            );
        }
        push!(out, "\t{rate}: {:<10.2} IO/sec\n", per_s(self.operations));
        push!(
            out,
            "\t{latency}: {:<10.3} us (nonsense if credits > 1)\n",
            self.latency_us
        );
        let ranks = self.ranks.iter();
        let sum: u64 = ranks.clone().map(|time| time.0).sum();
        let mean = ratio(sum, u64::try_from(self.ranks.len()).unwrap_or(u64::MAX)) / 1e9;
        let max = ranks.clone().max().map_or(0.0, seconds);
        let min = ranks.min().map_or(0.0, seconds);
        push!(
            out,
            "Duration across processes:\n\
             \tMAX duration : {max:<10.6} sec\n\
             \tMIN duration : {min:<10.6} sec\n\
             \tAverage duration : {mean:<10.6} sec\n"
        );
        out
    }
}

/// A quotient; without anything to divide 0, by nothing infinite, as the peer has it.
#[expect(clippy::cast_precision_loss, reason = "figures for the eye")]
pub(super) fn ratio(part: u64, whole: u64) -> f64 {
    if part == 0 {
        return 0.0;
    }
    part as f64 / whole as f64
}
