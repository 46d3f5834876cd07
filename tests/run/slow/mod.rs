//! Slow tests: instructions counted by valgrind.

mod many_jobs;
