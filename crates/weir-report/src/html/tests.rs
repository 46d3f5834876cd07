//! Tests of a page's content.

use weir_schema::RunResult;

use super::*;
use crate::sample;

const HOSTILE: &str = "</script><img src=x onerror=alert(1)>";

fn page(result: &RunResult) -> String {
    let alone = LabelledResult {
        label: "r".into(),
        result,
    };
    html(&[alone], &[])
}

#[test]
fn hostile_names_are_text() {
    let mut result = sample::failed();
    let job = &mut result.groups[0].jobs[0];
    job.name = HOSTILE.into();
    job.failure.as_mut().unwrap().message = HOSTILE.into();
    result.plan.groups[0].jobs[0].name = HOSTILE.into();
    result.plan.name = HOSTILE.into();
    result.plan.command = vec![HOSTILE.into()];
    result.host.hostname = Some(HOSTILE.into());
    result.host.devices[0].target = HOSTILE.into();
    for warning in &mut result.warnings {
        warning.job = Some(HOSTILE.into());
    }
    let mut metric = weir_schema::Metric::high(HOSTILE, HOSTILE, 1.0);
    result.groups[0].jobs[0].metrics.push(metric.clone());
    metric.name += "2";
    result.groups[0].jobs[0].metrics.push(metric);
    let results = ["a", HOSTILE].map(|label| LabelledResult {
        label: label.into(),
        result: &result,
    });
    for page in [page(&result), html(&results, &[])] {
        assert!(!page.contains("<img"), "an element of a name");
        assert_eq!(page.matches("</script").count(), 1);
        assert!(page.contains("&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;"));
    }
}

#[test]
fn a_page_asks_nothing_of_any_network_and_runs_our_script_alone() {
    let page = page(&sample::workers());
    // The name of a namespace is never fetched.
    let page = page.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
    for word in [
        "http:", "https:", "url(", "@import", "src=", "<link", "<iframe",
    ] {
        assert!(!page.contains(word), "{word}");
    }
    assert!(page.contains("default-src 'none'; img-src data: blob:; style-src 'unsafe-inline';"));
    assert_eq!(page.matches("<script").count(), 1);
}

#[test]
fn every_figure_has_a_caption_a_picture_and_its_table() {
    for result in [sample::workers(), sample::sweep(), sample::message_sizes()] {
        let page = page(&result);
        let figures: Vec<&str> = page.split("<figure ").skip(1).collect();
        assert!(!figures.is_empty());
        for figure in &figures {
            let figure = figure.split("</figure>").next().unwrap();
            for part in [
                "<svg ",
                "aria-label=\"",
                "<figcaption>",
                "<details><summary>Figures",
            ] {
                assert!(figure.contains(part), "{part}: {figure}");
            }
            assert!(!figure.contains("<figcaption></figcaption>"));
        }
    }
}

#[test]
fn ten_thousand_workers_fit_and_what_is_lost_is_named() {
    let mut result = sample::workers();
    let worker = result.groups[0].jobs[0].workers()[0].clone();
    if let weir_schema::Outcome::Loop(done) = &mut result.groups[0].jobs[0].outcome {
        done.workers = (0..10_000)
            .map(|number| weir_schema::WorkerResult {
                clone: number,
                number,
                ..worker.clone()
            })
            .collect();
    }
    let all = page(&result);
    assert!(
        all.len() < 500_000 && !all.contains("id=\"losses\""),
        "{}",
        all.len()
    );
    assert!(all.contains("the slowest of 10000"));
}

#[test]
fn thousands_of_jobs_fit_and_what_is_lost_is_named() {
    let shape = |i: u32| sample::Shape {
        name: format!("job{i}"),
        workers: 2,
        ..sample::Shape::default()
    };
    let shapes: Vec<sample::Shape> = (0..1000).map(shape).collect();
    let all = page(&sample::run(&shapes));
    assert!(all.len() <= budget::MOST_BYTES, "{}", all.len());
    let losses = all
        .split("id=\"losses\">")
        .nth(1)
        .unwrap()
        .split("</p>")
        .next()
        .unwrap();
    assert!(
        losses.contains("the plots and tables of 900 jobs"),
        "{losses}"
    );
}

#[test]
fn members_go_first_then_latencies_over_time_and_then_the_last_jobs() {
    let result = sample::workers();
    let results = [LabelledResult {
        label: "r".into(),
        result: &result,
    }];
    let runs = PlottedRun::all(&results);
    let job = &jobs_across(&runs)[0];
    let mut parts = PageParts::default();
    job::section(job, &mut parts);
    job::section(job, &mut parts);
    let text = |parts: &PageParts| {
        let mut page = Page::of(&runs);
        parts.write(&mut page);
        page.finish()
    };
    let whole = text(&parts).len();
    parts.fit(usize::MAX);
    assert_eq!((text(&parts).len(), parts.losses().as_str()), (whole, ""));
    parts.fit(parts.bytes() - 1);
    assert!(
        parts
            .losses()
            .contains("the figures of single members of 2 jobs")
    );
    assert!(!text(&parts).contains("Spread of workers"));
    assert!(text(&parts).contains("data-name=\"heat-map\""));
    parts.fit(parts.bytes() - 1);
    assert!(parts.losses().contains("the latencies over time of 2 jobs"));
    assert!(!text(&parts).contains("data-name=\"heat-map\""));
    parts.fit(parts.bytes() - 1);
    assert!(
        parts.losses().contains("the plots and tables of 1 job"),
        "{}",
        parts.losses()
    );
    parts.fit(0);
    assert!(!text(&parts).contains("<figure"));
}
