//! What to do and when: the engine trait, the one hot loop, generators, pacing, phases, recording.
