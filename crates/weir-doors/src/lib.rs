//! One folder per door: its flags, its way to a plan, its output dialect, its help.
