//! Pictures in pixels, drawn by Chromium, which draws pages as well.
//!
//! In: a picture as SVG. Out: the bytes of a PNG, or a [`Refusal`] with exit code 3 where there is no
//! Chromium. Not here: what is in the picture (`weir-report`).

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::{env, fs};

use weir_doors::{LACKS, Refusal};

use crate::scratch::Scratch;

/// Pixels for a unit of the picture.
const SCALE: u32 = 2;
/// Names of Chromium's program.
const NAMES: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];

/// The picture in pixels.
///
/// # Errors
/// There is no Chromium, or it draws nothing.
pub(crate) fn png_of(svg: &str) -> Result<Vec<u8>, Refusal> {
    let program = chromium()?;
    let refuse = |why: &dyn std::fmt::Display| {
        let name = program.display();
        Refusal::new(LACKS, format!("error: {name} drew no PNG: {why}\n"))
    };
    let folder = Scratch::new("picture").map_err(|e| refuse(&e))?;
    let at = |name: &str| folder.path().join(name);
    let (width, height) = size_of(svg);
    // As large as it is, without a border and without bars.
    let page = format!(
        "<!DOCTYPE html><style>html,body{{margin:0;overflow:hidden}}body>svg{{display:block;width:{width}px}}\
         </style>{svg}"
    );
    fs::write(at("picture.html"), page).map_err(|e| refuse(&e))?;
    let mut command = Command::new(&program);
    command.args([
        "--headless=new",
        "--disable-gpu",
        "--hide-scrollbars",
        "--no-first-run",
    ]);
    if rustix::process::geteuid().is_root() {
        // Its sandbox refuses to be started by the administrator.
        command.arg("--no-sandbox");
    }
    command.arg(format!("--force-device-scale-factor={SCALE}"));
    command.arg(format!("--window-size={width},{height}"));
    command.arg(format!("--user-data-dir={}", at("profile").display()));
    command.arg(format!("--screenshot={}", at("picture.png").display()));
    command.arg(format!("file://{}", at("picture.html").display()));
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let said = command.stderr(Stdio::piped()).output();
    let said = said.map_err(|e| refuse(&e))?;
    fs::read(at("picture.png")).map_err(|_| {
        let text = String::from_utf8_lossy(&said.stderr);
        refuse(&text.lines().last().unwrap_or("it says nothing"))
    })
}

/// Chromium by `WEIR_CHROMIUM`, or the first in `PATH`.
fn chromium() -> Result<PathBuf, Refusal> {
    if let Some(named) = env::var_os("WEIR_CHROMIUM").filter(|named| !named.is_empty()) {
        return Ok(PathBuf::from(named));
    }
    let paths = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = env::split_paths(&paths).collect();
    let all = NAMES
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    all.into_iter().find(|path| path.is_file()).ok_or_else(|| {
        Refusal::new(
            LACKS,
            "error: a PNG is drawn by Chromium, and there is none in PATH\n  help: apt-get install \
             chromium, or set WEIR_CHROMIUM; `--format svg` needs none\n",
        )
    })
}

/// Width and height of a picture, from its view box.
fn size_of(svg: &str) -> (u32, u32) {
    let view = svg.split_once("viewBox=\"0 0 ").map(|(_, rest)| rest);
    let view = view.and_then(|rest| rest.split_once('"'));
    let mut numbers = view.map_or("", |(view, _)| view).split(' ').map(|number| {
        let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
        let whole: u32 = whole.parse().ok()?;
        Some(whole.saturating_add(u32::from(part != "0")))
    });
    let mut next = |usual| numbers.next().flatten().unwrap_or(usual);
    (next(560), next(300))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_as_large_as_its_view_box() {
        assert_eq!(size_of("<svg viewBox=\"0 0 560 303.5\" x>"), (560, 304));
        assert_eq!(size_of("<svg>"), (560, 300));
    }
}
