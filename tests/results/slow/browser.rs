//! Pages in a real browser: they run their script, hold no error, show something in both themes and
//! print a job a page.

use std::process::Command;

use crate::report::stored;
use crate::stage::{Said, Stage, has, said, skip};

/// The program, if there is one.
fn browser() -> Option<String> {
    let named = std::env::var("WEIR_CHROMIUM").ok();
    named.or_else(|| has("chromium").then(|| "chromium".to_owned()))
}

/// The browser at work on a page of the stage.
fn opens(stage: &Stage, program: &str, words: &[&str], page: &str) -> Said {
    let mut command: Command = stage.command(program);
    command.args([
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
    ]);
    command.arg(format!("--user-data-dir={}", stage.path("profile")));
    command.arg("--virtual-time-budget=5000");
    command.args(words);
    if page.starts_with("about:") {
        command.arg(page);
    } else {
        command.arg(format!("file://{}", stage.path(page)));
    }
    said(command).code(0)
}

#[test]
fn pages_come_alive_without_an_error_in_both_themes() {
    let Some(program) = browser() else {
        return skip(
            "pages_come_alive_without_an_error_in_both_themes",
            "no chromium (apt-get install chromium)",
        );
    };
    let stage = stored();
    let shot = |page: &str, file: &str| {
        let to = format!("--screenshot={}", stage.path(file));
        opens(&stage, &program, &["--window-size=1200,1600", &to], page);
        stage.read_bytes(file).len()
    };
    let blank = shot("about:blank", "blank.png");
    for name in ["run", "beff", "net"] {
        stage
            .say(&[
                "report",
                &format!("{name}.json"),
                "-o",
                &format!("{name}.html"),
            ])
            .code(0);
        let page = format!("{name}.html");
        let dom = opens(&stage, &program, &["--dump-dom"], &page).out;
        assert!(
            dom.contains("data-ready=\"1\""),
            "{name}: the script did not end"
        );
        assert!(
            dom.contains("data-errors=\"0\""),
            "{name}: the script failed"
        );
        // A plot that lives has tools before its picture.
        let tools = dom.matches("<div class=\"tools\">").count();
        assert_eq!(tools, dom.matches(" data-plot=").count(), "{name}");
    }
    for theme in ["light", "dark"] {
        let bytes = shot(&format!("run.html#theme={theme}"), &format!("{theme}.png"));
        assert!(
            bytes > 5 * blank,
            "{theme}: {bytes} bytes, and a blank page has {blank}"
        );
    }
    assert_ne!(stage.read_bytes("light.png"), stage.read_bytes("dark.png"));
    let one = opens(&stage, &program, &["--dump-dom"], "run.html#job=two").out;
    assert_eq!(one.matches("data-job=\"one\" hidden").count(), 1, "{one}");
}

#[test]
fn print_has_a_page_for_each_job() {
    let Some(program) = browser() else {
        return skip(
            "print_has_a_page_for_each_job",
            "no chromium (apt-get install chromium)",
        );
    };
    let stage = stored();
    stage.say(&["report", "run.json", "-o", "run.html"]).code(0);
    // The same without the rule flows on behind the summary.
    let rule = "section.job{break-before:page}";
    stage.file("flows.html", stage.read("run.html").replace(rule, ""));
    let pages = |page: &str| {
        let to = format!("--print-to-pdf={}", stage.path("r.pdf"));
        opens(&stage, &program, &["--no-pdf-header-footer", &to], page);
        let pdf = stage.read_bytes("r.pdf");
        let is_page = |at: &&[u8]| at.starts_with(b"/Type /Page\n");
        pdf.windows(12).filter(is_page).count()
    };
    let (whole, flows) = (pages("run.html"), pages("flows.html"));
    assert!(
        flows >= 1 && whole > flows,
        "{whole} pages, and {flows} that flow"
    );
}

/// A page without its policy, so that a script of the test's own may use it as a reader would.
fn used_by(page: &str, script: &str) -> String {
    let (before, rest) = page
        .split_once("<meta http-equiv=\"Content-Security-Policy\"")
        .unwrap();
    let (_, after) = rest.split_once('>').unwrap();
    let script = format!("<script>{script}</script></body>");
    format!("{before}{}", after.replace("</body>", &script))
}

#[test]
fn a_rectangle_on_the_heat_map_says_its_share_until_escape() {
    let Some(program) = browser() else {
        return skip(
            "a_rectangle_on_the_heat_map_says_its_share_until_escape",
            "no chromium (apt-get install chromium)",
        );
    };
    let stage = stored();
    stage.say(&["report", "run.json", "-o", "run.html"]).code(0);
    let script = "
        const figure = document.querySelector('figure[data-name=heat-map]');
        const pane = figure.querySelector('svg svg');
        const box = pane.getBoundingClientRect();
        const at = (type, x, y) => pane.dispatchEvent(new PointerEvent(type,
            { clientX: box.left + x, clientY: box.top + y, pointerId: 1 }));
        const share = figure.querySelector('.share');
        const said = document.body.dataset;
        at('pointermove', box.width / 2, box.height / 2);
        said.tip = figure.querySelector('.tip').textContent;
        at('pointerdown', 0, 0); at('pointermove', box.width, box.height); at('pointerup', box.width, box.height);
        said.all = share.textContent;
        at('pointerdown', box.width / 2, 0); at('pointermove', box.width, box.height); at('pointerup', box.width, box.height);
        said.half = share.textContent;
        said.shown = !share.hidden;
        dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }));
        said.ended = share.hidden;";
    stage.file("used.html", used_by(&stage.read("run.html"), script));
    let dom = opens(&stage, &program, &["--dump-dom"], "used.html").out;
    let said = |name: &str| {
        let (_, rest) = dom.split_once(&format!("data-{name}=\"")).unwrap();
        rest.split_once('"').unwrap().0.to_owned()
    };
    assert!(dom.contains("data-errors=\"0\""), "the script failed");
    assert!(said("tip").contains(" operations"), "{}", said("tip"));
    assert!(
        said("all").starts_with("100 % of the operations"),
        "{}",
        said("all")
    );
    let half = said("half");
    let (percent, _) = half.split_once(" %").unwrap();
    let percent: f64 = percent.parse().unwrap();
    assert!(percent > 0.0 && percent < 100.0, "{half}");
    assert_eq!(
        (said("shown"), said("ended")),
        ("true".into(), "true".into())
    );
}

#[test]
fn a_plot_zooms_where_it_is_dragged_hides_a_line_and_shows_everything_again() {
    let Some(program) = browser() else {
        return skip(
            "a_plot_zooms_where_it_is_dragged_hides_a_line_and_shows_everything_again",
            "no chromium (apt-get install chromium)",
        );
    };
    let stage = stored();
    stage.say(&["report", "run.json", "-o", "run.html"]).code(0);
    let script = "
        const figure = document.querySelector('figure[data-name=latency]');
        const pane = figure.querySelector('svg svg');
        const box = pane.getBoundingClientRect();
        const at = (type, share) => pane.dispatchEvent(new PointerEvent(type,
            { clientX: box.left + share * box.width, clientY: box.top + 50, pointerId: 1 }));
        const press = key => dispatchEvent(new KeyboardEvent('keydown', { key }));
        const texts = () => [...figure.querySelectorAll('.x text, .y text')].map(text => text.textContent).join('|');
        const lines = () => [...figure.querySelectorAll('.line')].map(line => line.getAttribute('d')).join('|');
        const said = document.body.dataset, [all, whole] = [texts(), lines()];
        at('pointerdown', 0.5); at('pointermove', 0.75); at('pointerup', 0.75);
        said.zoomed = texts() !== all && lines() !== whole && !/NaN|Infinity/.test(lines());
        at('pointermove', 0);
        said.tip = figure.querySelector('.tip').textContent.split('\\n')[0];
        press('Escape');
        said.back = texts() === all;
        figure.querySelector('.tools button').click();
        said.linear = texts() !== all && !/NaN|Infinity/.test(lines());
        figure.querySelector('.tools button').click();
        figure.querySelector('.key').dispatchEvent(new Event('click'));
        said.hidden = figure.querySelectorAll('.series[hidden]').length;";
    stage.file("used.html", used_by(&stage.read("run.html"), script));
    let dom = opens(&stage, &program, &["--dump-dom"], "used.html").out;
    for said in [
        "errors=\"0",
        "zoomed=\"true",
        "back=\"true",
        "linear=\"true",
        "hidden=\"1",
    ] {
        assert!(dom.contains(&format!("data-{said}\"")), "{said}");
    }
    // The picture lasts 400 ms, and its second half begins at the left.
    let (_, tip) = dom.split_once("data-tip=\"").unwrap();
    let (tip, _) = tip.split_once(" ms\"").unwrap();
    let tip: f64 = tip.parse().unwrap();
    assert!((150.0..250.0).contains(&tip), "{tip}");
}

#[test]
fn a_plot_is_drawn_as_a_png() {
    if browser().is_none() {
        return skip(
            "a_plot_is_drawn_as_a_png",
            "no chromium (apt-get install chromium)",
        );
    }
    let stage = stored();
    for (name, plot) in [("h.png", "heat-map"), ("d.png", "distribution")] {
        stage
            .say(&[
                "report", "run.json", "-o", name, "--plot", plot, "--job", "one",
            ])
            .code(0)
            .silent()
            .calm();
        let bytes = stage.read_bytes(name);
        assert!(bytes.starts_with(b"\x89PNG\r\n\x1a\n"), "{name}");
        let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!(number(16), 1120, "{name}: two pixels a unit");
        assert!(
            number(20) > 500 && bytes.len() > 10_000,
            "{name}: {} bytes",
            bytes.len()
        );
    }
}
