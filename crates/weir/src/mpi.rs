//! `weir mpi info`: the MPI library that weir uses here, and whether the launcher agrees.

use std::fmt::Write as _;

use weir_world::mpi::{LIBRARY_VARIABLE, MpiError, MpiLibrary, MpiLibraryFacts};
use weir_world::{Launcher, World};

use crate::{Outcome, printed, world};

/// The verb. Under a launcher MPI is started too, and one of the processes prints.
pub(crate) fn info() -> Outcome {
    let launcher = Launcher::of_this_process();
    match page(launcher) {
        _ if launcher.is_some_and(|l| !l.prints_for_all()) => Ok(0),
        Ok(page) => Ok(printed(&page)),
        Err(error) => Err(world::mpi_refused(&error)),
    }
}

fn page(launcher: Option<Launcher>) -> Result<String, MpiError> {
    let wish = std::env::var(LIBRARY_VARIABLE).ok();
    let library = MpiLibrary::open(launcher, wish.as_deref())?;
    let mut page = about(library.facts());
    let Some(launcher) = launcher else {
        return Ok(page + "launcher  none\n");
    };
    let world = library.start()?;
    // Writing to a string cannot fail.
    let _ = writeln!(
        page,
        "launcher  {}, {} processes",
        launcher.kind, launcher.size
    );
    let _ = writeln!(page, "world     {} ranks", world.size());
    Ok(page)
}

fn about(facts: &MpiLibraryFacts) -> String {
    format!(
        "family    {}\nlibrary   {}\nstandard  MPI {}.{}\nfile      {}\n",
        facts.family, facts.library, facts.version, facts.subversion, facts.file
    )
}

#[cfg(test)]
mod tests {
    use weir_world::mpi::Family;

    use super::*;

    #[test]
    fn the_page_has_a_line_for_each_fact() {
        let facts = MpiLibraryFacts {
            family: Family::Mpich,
            library: "MPICH Version: 4.0.2".to_owned(),
            version: 4,
            subversion: 0,
            file: "/lib/libmpich.so.12".to_owned(),
        };
        assert_eq!(
            about(&facts),
            "family    MPICH\nlibrary   MPICH Version: 4.0.2\nstandard  MPI 4.0\n\
             file      /lib/libmpich.so.12\n"
        );
    }
}
