//! Action between two passes over a target, such as dropping the page cache. The
//! family that opened the target gives it.
//!
//! In: an act of the family. Out: it is carried out on the worker's thread, whenever a source
//! begins again at a target. Not here: what the act does.

use std::fmt;

/// An act between passes, and whether it was carried out since it was last asked.
#[derive(Default)]
pub struct BetweenPasses {
    act: Option<Box<dyn FnMut(usize)>>,
    has_acted: bool,
}

impl BetweenPasses {
    /// `act` takes the index of the target that is begun again.
    pub fn new(act: impl FnMut(usize) + 'static) -> Self {
        Self {
            act: Some(Box::new(act)),
            has_acted: false,
        }
    }

    /// A pass over one target is over, and another begins.
    #[cold]
    #[inline(never)]
    pub(super) fn at(&mut self, target: usize) {
        if let Some(act) = &mut self.act {
            act(target);
            self.has_acted = true;
        }
    }

    /// A pass over so many targets is over, and another begins.
    pub(crate) fn at_all(&mut self, targets: usize) {
        (0..targets).for_each(|target| self.at(target));
    }

    /// True if the act was carried out since the last call.
    #[inline]
    pub(super) fn has_acted(&mut self) -> bool {
        // Written only where it changes: it is asked before each operation.
        let has_acted = self.has_acted;
        if has_acted {
            self.has_acted = false;
        }
        has_acted
    }
}

impl fmt::Debug for BetweenPasses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BetweenPasses")
            .field("acts", &self.act.is_some())
            .finish_non_exhaustive()
    }
}
