//! The job language from outside: its words, its records, hostile input, every example.

mod examples;
mod language;
mod records;
mod robust;
mod setting;
mod slow;
