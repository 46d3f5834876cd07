//! Results of other programs: read or refused in every format, and what is read can be shown.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_import::{FORMATS, Format};
use weir_report::Style;
use weir_schema::RunResult;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let lines = text.matches('\n').count() + 1;
    let _ = Format::of(&text);
    for format in FORMATS {
        match format.import(&text, "some/file") {
            Err(refused) => {
                let place = refused.line;
                assert!((1..=lines).contains(&place), "{}: {refused}", format.name);
                assert!(!refused.message.is_empty());
            }
            Ok(result) => {
                assert!(result.source.is_some());
                let stored = result.to_json().expect("a result has a stored form");
                let again = RunResult::from_json(&stored).expect("and is read again");
                assert_eq!(again, result);
                for job in result.jobs() {
                    for metric in &job.metrics {
                        let same = job.metrics.iter().filter(|m| m.name == metric.name);
                        assert_eq!(same.count(), 1, "{}", metric.name);
                        assert!(metric.value.is_finite());
                    }
                }
                let shown = weir_report::text(&result, &Style::default());
                assert!(shown.ends_with('\n'));
            }
        }
    }
});
