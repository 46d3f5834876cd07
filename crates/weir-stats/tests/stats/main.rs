//! Statistics over a thousand simulated runs: how often they are right.

mod coverage;
mod steadiness;
