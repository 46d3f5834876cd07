//! Gates, benches, labs and generated documents of weir.

fn main() {}
