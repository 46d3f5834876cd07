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
fn masters_on_servers_are_who_does_the_work() {
    use weir_schema::{CpuUse, EndpointSet, Job, Plan, RpcEndpoint, RpcMaster, RpcWorkload};
    let place = |rank| RpcEndpoint { rank, tag: 0 };
    let mut work = RpcWorkload {
        masters: vec![EndpointSet::one(place(2)), EndpointSet::one(place(3))],
        ..RpcWorkload::default()
    };
    work.load.depth.queue_depth = weir_units::QueueDepth(16);
    let master = |rank| {
        let mut master = RpcMaster::new(place(rank), "tcp");
        master.duration_ns = weir_units::Nanos::SECOND;
        master.cpu = CpuUse {
            user_ns: weir_units::Nanos::from_millis(500),
            ..CpuUse::default()
        };
        master
            .endpoints
            .push(weir_schema::RpcEndpointResult::new(place(7)));
        master.conclude();
        master
    };
    let plan = Plan::new("p", "selftest", vec![Job::of_rpcs("a", work)]);
    let mut result = weir_schema::sample::result(plan);
    let masters = vec![master(2), master(3)];
    let mut job = weir_schema::JobResult::of_masters("a", masters, weir_units::Bytes(0));
    if let weir_schema::Outcome::Rpc(done) = &mut job.outcome {
        // The run itself has one worker, which calls nobody.
        done.workers.workers.truncate(1);
        done.workers.workers[0].depth.mean_in_flight = Some(31.4);
    }
    result.groups[0].jobs = vec![job];
    let page = page(&result);
    for words in ["31.4 of 32 on average", "1.00 processors", "2 workers"] {
        assert!(page.contains(words), "{words}");
    }
    for cell in ["<h3>Masters</h3>", "<td>3:0</td>", "<td>7:0</td>"] {
        assert!(page.contains(cell), "{cell}");
    }
}

#[test]
fn what_another_program_measured_is_not_said_to_be_of_weir() {
    let mut result = sample::workers();
    result.source = Some(weir_schema::ForeignSource {
        format: "fio".into(),
        program: Some("fio-3.36".into()),
    });
    result.started_unix_ns = 0;
    let page = page(&result);
    assert!(page.contains("fio-3.36, imported"));
    for of_weir in ["weir 0", "1970", "clock read", " · run "] {
        assert!(!page.contains(of_weir), "{of_weir}");
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
        let mut page = Page::of(&runs, None);
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
