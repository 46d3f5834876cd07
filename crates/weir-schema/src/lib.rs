//! Plan and RunResult: the plain data that walks through the house.
