//! Slow tests: every engine and option beside an installed fio, call by call.

mod opens;
mod passes;
