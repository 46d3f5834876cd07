//! Texts that the lab reads of its guests and of kernels.
//!
//! The first byte says what the rest is: a guest's serial line, a kernel's log, a device, or a
//! `modules.dep`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_lab::{DeviceSpec, EmulatorEnd, ModuleTree, Transcript, complaints, ending_of};

fuzz_target!(|data: &[u8]| {
    let Some((what, rest)) = data.split_first() else {
        return;
    };
    let text = String::from_utf8_lossy(rest);
    match what % 4 {
        0 => serial(rest),
        1 => log(&text),
        2 => device(&text),
        _ => modules(&text),
    }
});

fn serial(bytes: &[u8]) {
    let whole = Transcript::of(bytes);
    for at in [1, bytes.len() / 2, bytes.len().saturating_sub(1)] {
        let (first, second) = bytes.split_at(at.min(bytes.len()));
        assert_eq!(Transcript::of_two(first, second), whole);
    }
    for code in 0..256 {
        let _ = ending_of(EmulatorEnd::Code(code), &whole, "");
    }
}

fn log(text: &str) {
    for complaint in complaints(text, &[]) {
        assert!(text.contains(&complaint.line));
        assert!(
            !complaints(&complaint.line, std::slice::from_ref(&complaint.line))
                .contains(&complaint)
        );
    }
}

fn device(text: &str) {
    if let Ok(spec) = DeviceSpec::parse(text) {
        let printed = spec.to_string();
        assert_eq!(DeviceSpec::parse(&printed).ok(), Some(spec), "{printed}");
    }
}

fn modules(text: &str) {
    let tree = ModuleTree::parse(text, "");
    for name in text.split([':', ' ', '\n']) {
        if let Ok(order) = tree.order([name]) {
            for (at, module) in order.iter().enumerate() {
                assert!(!order[..at].contains(module));
            }
        }
    }
}
