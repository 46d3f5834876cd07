//! Records of a packet path: every reader reads or refuses, and whatever was read is diagnosed.
//!
//! The input is one text, which each reader gets whole; parts between lines `====` are one for each of
//! log, report, perf, pcm-pcie and pcm-memory.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_diagnose::{
    ConfigText, Diagnosis, HostReport, InputError, PathContext, PcieCounts, PerfCounts,
    StageTables, node_bandwidths, text,
};
use weir_doors::diagnose::path_settings;

fuzz_target!(|data: &[u8]| {
    let whole = String::from_utf8_lossy(data);
    let mut parts = whole.split("====\n");
    let mut part = || parts.next().unwrap_or_default();
    let log = read(part(), StageTables::of_log);
    let beside = PathContext {
        report: read(part(), HostReport::read),
        perf: read(part(), PerfCounts::read),
        pcie: read(part(), PcieCounts::read),
        memory: read(part(), node_bandwidths),
        iterations: Some(data.len() as u32 % 40),
        socket: Some(data.len() as u32 % 2),
        link_bits_per_s: Some(1e11),
        frame_bytes: Some(64),
        triad_mb_per_s: Some(9e4),
        ..PathContext::default()
    };
    if let Some(mut config) = read(&whole, ConfigText::read) {
        assert_eq!(config.text(), whole);
        config.add("added", "1");
        let again = ConfigText::read(&config.text()).expect("its text with a line more");
        assert_eq!(again.all("added").last(), Some(&"1"));
        let _ = read(&whole, path_settings);
    }
    let Some(path) = log.or_else(|| read(&whole, StageTables::of_log)) else {
        return;
    };
    let diagnosis = Diagnosis::of(&path, &beside);
    let json = serde_json::to_string(&diagnosis).expect("a diagnosis has a form");
    let again: Diagnosis = serde_json::from_str(&json).expect("and it reads back");
    assert_eq!(again, diagnosis);
    assert!(text(&diagnosis, true).ends_with('\n'));
});

fn read<T>(text: &str, read: impl Fn(&str) -> Result<T, InputError>) -> Option<T> {
    match read(text) {
        Ok(read) => Some(read),
        Err(error) => {
            let lines = text.lines().count().max(1);
            assert!((1..=lines).contains(&error.line), "{error}");
            assert!(!error.message.is_empty() && !error.help.is_empty());
            None
        }
    }
}
