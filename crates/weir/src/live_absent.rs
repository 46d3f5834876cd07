//! `--live` in builds without it.
//!
//! In: the arguments. Out: a refusal where they ask for the view.

use weir_doors::Refusal;
use weir_doors::house::RunOptions;
use weir_schema::Plan;

use crate::measure::RunObserver;
use crate::watch::Watch;

/// The view in builds without one: no value of this type exists.
pub(crate) enum LiveDisplay {}

impl LiveDisplay {
    /// Refuses the view where the arguments ask for it.
    pub(crate) fn of(options: &RunOptions, _watch: &Watch) -> Result<Option<Self>, Refusal> {
        match options.live {
            None => Ok(None),
            Some(_) => Err(Refusal::lacks(
                "--live: this weir was built without the feature `tui`\n  help: build it with its \
                 default features, or leave --live out: a line shows the progress",
            )),
        }
    }

    /// Observer of a view that does not exist.
    pub(crate) fn observer<'a>(
        &self,
        _plan: &Plan,
        _progress: Box<dyn RunObserver + 'a>,
    ) -> Box<dyn RunObserver + 'a> {
        match *self {}
    }
}
