//! The family from outside: generators, verification, jobs from the plan to the result.
//!
//! Not here: `no_allocation`, whose allocator counts for a whole program.
mod generate;
mod run;
mod setting;
mod slow;
mod verify;
