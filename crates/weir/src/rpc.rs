//! `weir rpc serve`: servers that answer RPCs.
//!
//! In: the words after `rpc`. Out: the exit code. Not here: what the words mean (`weir-doors`), serving
//! (`weir-net`).

use weir_doors::Refusal;
use weir_doors::rpc::{Action, ServeSettings, read};

use crate::{Outcome, printed};

/// The words after `rpc`.
pub(crate) fn run(words: &[String]) -> Outcome {
    match read(words)? {
        Action::Print(text) => Ok(printed(&text)),
        Action::Serve(settings) => serve(&settings),
    }
}

/// Serves until it is to end.
fn serve(settings: &ServeSettings) -> Outcome {
    Err(Refusal::lacks(format!(
        "this build has nothing that serves group `{}`",
        settings.group
    )))
}
