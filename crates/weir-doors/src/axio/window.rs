//! The window of a client: messages without a response.
//!
//! In: what a configuration says of messages, rings and batches. Out: the window where it says none; whether one is too
//! small for the batches. Not here: who waits for it (`weir-datapath`).

use weir_schema::PacketPathWorkload;

use super::backend::frames_of_devices;
use super::config::AxioConfig;
use super::plan;
use super::role::AxioRole;

/// The window of messages of a packet.
const OF_SHORT: u32 = 1024;

/// The window where none is asked for: of messages of several packets as many as a ring and a pool hold if all that a
/// workload has under way comes to one of its workspaces, as a power of two; no less than a batch. Where devices hold few
/// frames, half of those, since others send to them as well.
pub(super) fn default_window(work: &PacketPathWorkload, device_frames: Option<u32>) -> u32 {
    let response = if work.echoes() {
        1
    } else {
        work.packets(work.whole_response())
    };
    let packets = work.packets(work.request_bytes).max(response);
    let workspaces = work.streams.iter().map(|stream| {
        let all = stream.groups.iter().map(|group| group.threads.len());
        u32::try_from(all.sum::<usize>()).unwrap_or(u32::MAX)
    });
    let share = workspaces.max().unwrap_or(1).max(1);
    let of_rings = (packets > 1).then(|| work.ring_slots.min(work.pool_buffers));
    let of_devices = device_frames.map(|frames| frames / 2);
    let Some(least) = of_rings.into_iter().chain(of_devices).min() else {
        return OF_SHORT;
    };
    let room = least / packets.max(1).saturating_mul(share);
    let fits = room.checked_ilog2().map_or(1, |log| 1 << log);
    let batch = work.batches.application_tx.max(work.batches.application_rx);
    fits.min(OF_SHORT).max(batch)
}

/// Window of a configuration that states none. One with errors gets that of short messages, as its run
/// reports them.
pub(crate) fn default_window_of(file: &str, text: &str) -> u32 {
    let config = AxioConfig::read(file, text).ok();
    let asked = config.and_then(|config| plan::workload(&config, AxioRole::Loopback).ok());
    asked.map_or(OF_SHORT, |asked| {
        let frames = frames_of_devices(&asked.engine, asked.work.queue_slots);
        default_window(&asked.work, frames)
    })
}

/// True if messages of the configuration come back. A configuration with errors counts as one, as its run
/// reports them.
pub(crate) fn is_answered_by(file: &str, text: &str) -> bool {
    let config = AxioConfig::read(file, text).ok();
    let asked = config.and_then(|config| plan::workload(&config, AxioRole::Loopback).ok());
    asked.is_none_or(|asked| asked.work.is_answered())
}

/// Thresholds that a window never reaches: the pipeline would wait for the flush each time.
pub(super) fn window_too_small(work: &PacketPathWorkload) -> Option<String> {
    if work.messages_per_s > 0 {
        // Nothing waits for a batch to begin, and less than one moves on when it has waited.
        return None;
    }
    let batches = &work.batches;
    let thresholds = [
        ("kAppTxMsgBatchSize", batches.application_tx, "client"),
        ("kAppRxMsgBatchSize", batches.application_rx, "server"),
        (
            "kDispTxBatchSize",
            batches.dispatch_tx / work.packets(work.request_bytes).max(1),
            "client",
        ),
    ];
    let window = work.in_flight;
    let found = thresholds
        .iter()
        .find(|(_, batch, _)| window > 0 && *batch > window);
    found.map(|(key, batch, side)| {
        format!("inflight {window} is smaller than {key} {batch} ({side}): the pipeline would stop")
    })
}
