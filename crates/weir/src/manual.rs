//! `weir man` and `weir completions`: print or write the help files.

use weir_doors::Refusal;
use weir_doors::manual::{Action, read_completions, read_man};

use crate::{Outcome, new, printed};

/// Carries out the arguments after `man`.
pub(crate) fn man(words: &[String]) -> Outcome {
    carry_out(read_man(words))
}

/// Carries out the arguments after `completions`.
pub(crate) fn completions(words: &[String]) -> Outcome {
    carry_out(read_completions(words))
}

fn carry_out(action: Result<Action, Refusal>) -> Outcome {
    match action? {
        Action::Print(text) => Ok(printed(&text)),
        Action::Write(files) => new::write(&files),
    }
}
