//! The fio job language: text to syntax tree with spans to plan.
