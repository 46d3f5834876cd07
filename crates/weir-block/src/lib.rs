//! Engines for files and block and character devices.
