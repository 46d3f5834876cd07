//! weir: picks the door, wires engines to the plan, sets the exit code.

fn main() {}
