//! Slow tests: pages in a browser.

mod browser;
