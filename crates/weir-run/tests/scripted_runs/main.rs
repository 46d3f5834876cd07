//! Runs whose jobs or devices follow a script: plans carried out, and the worker loop.

mod execute;
mod loop_on_a_simulated_device;
mod phases;
mod scripted;
