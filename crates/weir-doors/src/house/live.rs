//! `--live`, `--fps`: the run on the whole terminal while it goes on.

use crate::given::GivenFlags;

/// View of the run on the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Live {
    /// Frames drawn per second.
    pub frames_per_second: u32,
}

/// View that these flags ask for.
pub(super) fn read(given: &GivenFlags) -> Option<Live> {
    let frames_per_second = given.number("fps");
    given.has("live").then_some(Live { frames_per_second })
}
