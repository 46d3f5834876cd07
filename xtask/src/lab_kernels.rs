//! Kernels of the lab: images unpacked under `lab/kernels`, never installed, with the headers of the
//! same release; and under `lab/full-kernels` one with every driver, without headers.
//!
//! In: the series that tests need. Out: what was brought, or a line that says what is missing; the
//! tests that need it then skip. Not here: other packages (`packages`), booting them (weir-lab).

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::cmd::{self, Cmd};
use crate::packages;

/// A series of Debian's kernels.
struct Series {
    /// The package that depends on the newest image of the series.
    image: &'static str,
    begins: &'static str,
    /// Folder that it is unpacked in.
    folder: &'static str,
    /// Modules are built for it.
    wants_headers: bool,
}

const SERIES: &[Series] = &[
    Series {
        image: "linux-image-cloud-amd64",
        begins: "6.1.",
        folder: FOLDER,
        wants_headers: true,
    },
    Series {
        image: "linux-image-6.12-cloud-amd64",
        begins: "6.12.",
        folder: FOLDER,
        wants_headers: true,
    },
    // Kernels for virtual machines have no RDMA.
    Series {
        image: "linux-image-amd64",
        begins: "6.1.",
        folder: "lab/full-kernels",
        wants_headers: false,
    },
];

const FOLDER: &str = "lab/kernels";
const HEADERS: &str = "/usr/src/linux-headers-";

/// Brings the series that are not there. Never fails: it says what is missing.
pub(crate) fn ensure_there() {
    let missing: Vec<&Series> = SERIES.iter().filter(|series| !series.is_there()).collect();
    if missing.is_empty() {
        return;
    }
    if let Err(error) = update() {
        println!("WITHOUT kernels of the lab: {error:#}; tests that boot them are skipped");
        return;
    }
    for series in missing {
        if let Err(error) = series.bring() {
            println!(
                "WITHOUT kernel {}* of the lab: {error:#}; tests that boot it are skipped",
                series.begins
            );
        }
    }
}

fn update() -> Result<()> {
    ensure!(cmd::find("apt-get").is_some(), "this system has no apt-get");
    packages::apt("update -q", &[])
}

impl Series {
    fn is_there(&self) -> bool {
        let folders = fs::read_dir(self.folder).into_iter().flatten().flatten();
        folders
            .filter_map(|folder| folder.file_name().into_string().ok())
            .any(|release| {
                release.starts_with(self.begins)
                    && self.has_image(&release)
                    && self.has_headers(&release)
            })
    }

    fn bring(&self) -> Result<()> {
        let depends = Cmd::new("apt-cache depends").arg(self.image).read()?;
        let release =
            release_of(&depends).with_context(|| format!("{} depends on no image", self.image))?;
        ensure!(
            release.starts_with(self.begins),
            "this system's {} is {release}",
            self.image
        );
        if !self.has_headers(release) {
            packages::apt(
                "install -y -q --no-install-recommends",
                &[&format!("linux-headers-{release}")],
            )?;
        }
        if !self.has_image(release) {
            unpack(release, self.folder)?;
        }
        Ok(())
    }

    fn has_headers(&self, release: &str) -> bool {
        let makefile = format!("{HEADERS}{release}/Makefile");
        !self.wants_headers || Path::new(&makefile).is_file()
    }

    fn has_image(&self, release: &str) -> bool {
        let image = Path::new(self.folder).join(release).join("boot");
        image.join(format!("vmlinuz-{release}")).is_file()
    }
}

/// Needs no rights.
fn unpack(release: &str, folder: &str) -> Result<()> {
    let (into, download) = (Path::new(folder).join(release), "target/lab-download");
    // What an earlier call left is of an older release.
    let _ = fs::remove_dir_all(download);
    fs::create_dir_all(download)?;
    let package = format!("linux-image-{release}");
    Cmd::new("env --chdir")
        .arg(download)
        .args(["apt-get", "download", "-q", &package])
        .run()?;
    let file = fs::read_dir(download)?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|end| end == "deb"))
        .context("apt-get download brought no package")?;
    fs::create_dir_all(&into)?;
    Cmd::new("dpkg -x").arg(&file).arg(&into).run()?;
    fs::remove_dir_all(download)?;
    let depmod = cmd::find("depmod").context("no depmod (apt: kmod)")?;
    Cmd::program(&depmod)
        .arg("-b")
        .arg(&into)
        .arg(release)
        .run()
}

/// The release of the image on which a package depends.
fn release_of(depends: &str) -> Option<&str> {
    let names = depends
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Depends: linux-image-"));
    names
        .into_iter()
        .find(|release| release.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_is_that_of_the_image_on_which_the_package_depends() {
        let said =
            "linux-image-cloud-amd64\n  Depends: linux-image-6.1.0-56-cloud-amd64\n  Suggests: x\n";
        assert_eq!(release_of(said), Some("6.1.0-56-cloud-amd64"));
        assert_eq!(release_of("linux-image-cloud-amd64\n"), None);
    }

    #[test]
    fn no_series_is_taken_for_another() {
        assert!(SERIES.iter().all(|series| series.begins.ends_with('.')));
    }
}
