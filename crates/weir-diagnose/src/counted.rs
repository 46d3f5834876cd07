//! Counts of a run for a table, beside the figures that its log prints.
//!
//! In: counts of a stored result, or nothing, where there is only a log. Out: figures for the rules, each
//! with a value or a reason. Not here: where they are taken from (`recorded_path`).

use crate::reading::Reading;

/// Counted in the iteration of a table, on one side of the link. Shares are 0 to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct CountedFigures {
    /// Packets that were sent, of those that an open loop meant to send.
    pub sent_share: Reading,
    /// Rounds of the generator without a credit.
    pub share_without_credit: Reading,
    /// Rounds of the generator that found too few buffers.
    pub share_without_buffers: Reading,
    /// Busy share of the busiest stage of either side.
    pub busiest_share: Reading,
    /// Busy share of all stages of a core together.
    pub total_busy_share: Reading,
    /// Times that the device's ring was full on sending.
    pub tx_full_retries: Reading,
    /// Packets a flush.
    pub packets_per_flush: Reading,
    /// Packets a burst received, of the most that it may have.
    pub burst_share: Reading,
    /// Packets that the device missed or had no buffer for.
    pub missed_packets: Reading,
    /// Fill of the device's ring on receiving.
    pub receive_ring_use: Reading,
    /// Time in which threads did not get their CPU.
    pub lost_cpu_share: Reading,
}

impl CountedFigures {
    /// Of a log, which prints none of them.
    pub fn not_in_log() -> Self {
        let none = |what: &str| Reading::missing(format!("no {what} in the log"));
        Self {
            sent_share: none("intended rate"),
            share_without_credit: none("rounds without credit"),
            share_without_buffers: none("rounds without buffers"),
            busiest_share: none("busy shares"),
            total_busy_share: none("busy shares"),
            tx_full_retries: none("retries at a full ring"),
            packets_per_flush: none("flush sizes"),
            burst_share: none("burst sizes"),
            missed_packets: none("counts of missed packets"),
            receive_ring_use: none("fill of the receive ring"),
            lost_cpu_share: none("run delay or steal"),
        }
    }
}
