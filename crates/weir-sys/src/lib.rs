//! Clock, pinning, topology, buffers, device facts, the write guard, host facts.
