//! Slow tests: they take long.

use super::*;

#[test]
fn a_page_of_every_workload_has_its_plots() {
    let stage = stored();
    for (file, plots) in [
        (
            "run",
            &["throughput", "distribution", "depth", "cpu", "workers"][..],
        ),
        ("beff", &["by-size"]),
        ("net", &["figures-s", "figures-b-per-s"]),
        ("runs", &["throughput", "distribution"]),
    ] {
        let said = format!("report {file}.json -o {file}.html");
        stage.say(&words(&said)).code(0).silent().calm();
        let page = stage.read(&format!("{file}.html"));
        assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
        for plot in plots {
            let figure = format!("<figure data-name=\"{plot}\"");
            assert!(page.contains(&figure), "{file} lacks {plot}");
        }
        assert!(!page.contains(">NaN") && !page.contains("NaN,"), "{file}");
    }
    let before = stage.list();
    stage
        .say(&words("report run.json --format html"))
        .code(0)
        .out("<!DOCTYPE html>");
    assert_eq!(stage.list(), before);
}

#[test]
fn several_results_are_shown_beside_each_other() {
    let stage = stored();
    stage
        .say(&words("report run.json other.json -o both.html"))
        .code(0);
    let page = stage.read("both.html");
    for name in [
        "run: read",
        "run: write",
        "other: read",
        "Machine of run",
        "Machine of other",
    ] {
        assert!(page.contains(name), "{name}");
    }
    let text = stage.say(&words("report run.json other.json")).code(0);
    assert_eq!(text.out.matches("machine  ").count(), 2, "{text}");
    let rows = stage
        .say(&words("report run.json other.json --format csv"))
        .code(0);
    let of = |label: &str| rows.out.matches(&format!("Z,{label},")).count();
    assert_eq!((of("run"), of("other")), (3, 2), "{rows}");
    let json = "report run.json other.json --format json";
    stage
        .say(&words(json))
        .code(2)
        .silent()
        .err("JSON holds one result")
        .err("md, csv");
}

#[test]
fn one_plot_is_a_picture_of_its_own() {
    let stage = stored();
    let of = |text: &str| stage.say(&words(text));
    of("report run.json --format svg --plot throughput --job two")
        .code(0)
        .out("<svg ");
    of("report run.json -o t.svg --plot cpu --job one")
        .code(0)
        .silent();
    assert!(stage.read("t.svg").starts_with("<svg xmlns="));
    of("report run.json --format svg --plot throughput")
        .code(2)
        .silent()
        .err("choose one of one, two with --job");
    let (named, numbered) = ("report run.json --format svg --plot cpu --job two", "2");
    let by_number = named.replace("two", numbered);
    assert_eq!(of(named).code(0).out, of(&by_number).code(0).out);
    of("report run.json -o u.svg --plot thruput")
        .code(2)
        .err("there are cpu, depth, distribution");
    of("report run.json -o u.svg").code(2).err("--plot");
    assert!(!stage.list().contains(&"u.svg".to_owned()));
}
