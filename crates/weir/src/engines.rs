//! `weir engines`: which engines this build has, and whether this machine can run them.

use std::fmt::Write as _;

use weir_sys::Availability;

use crate::runners;

/// The list.
pub(crate) fn page() -> String {
    let mut out = String::new();
    for engine in &runners::catalogue().engines {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{:10} {}", engine.name, engine.summary);
        if let Availability::Missing { what, remedy } = runners::availability(engine.name) {
            let _ = writeln!(out, "           not here: {what}; {remedy}");
        }
        for setting in engine.settings {
            let _ = writeln!(
                out,
                "             {:20} {} ({})",
                setting.name, setting.help, setting.default
            );
        }
    }
    out
}
