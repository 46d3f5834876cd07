//! weir's own renderings of a result: text, JSON, progress.
