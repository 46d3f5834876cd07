//! Checks of a stored plan that only doors can make.
//!
//! In: a plan that was read. Out: the door or the extension that it names and nobody has. Not here:
//! everything else of a plan, which the run looks at.

use weir_jobfile::check_extensions;
use weir_schema::Plan;

use crate::Door;
use crate::kio;

/// Refuses a door that there is not, and extensions that nothing reads.
///
/// # Errors
/// Word of a plan, and the words that could stand there.
pub fn check_stored(plan: &Plan) -> Result<(), String> {
    let doors = Door::printing();
    if !doors.contains(&plan.door.as_str()) {
        let list = doors.join(", ");
        return Err(format!(
            "`door` is `{}`, and no door of this name makes plans (these do: {list})",
            plan.door
        ));
    }
    let mut others = plan.clone();
    if let Some(own) = others.extensions.remove(kio::EXTENSION) {
        kio::check_extension(&own)?;
    }
    check_extensions(&others)
}
