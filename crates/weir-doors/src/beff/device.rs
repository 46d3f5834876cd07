//! Made-up devices of `--fake-devices`: which one each rank would use.
//!
//! In: the settings of the plan, how many devices and ranks there are. Out: an index for each
//! rank, by the rule that runs follow ([`DeviceRequest`]). Spec: effective bandwidth, 3.

use weir_schema::{DeviceRequest, EngineChoice, NoSuchDevice};

use super::refuse;
use crate::refusal::Refusal;

/// The name of the platform of made-up devices.
const MADE_UP: &str = "fake";

/// The device of each rank, all of them on one machine.
///
/// # Errors
/// A platform or device that does not exist, in the peer's words.
pub(super) fn made_up(
    engine: &EngineChoice,
    devices: usize,
    ranks: u32,
) -> Result<Vec<u32>, Refusal> {
    let request = DeviceRequest::of(engine);
    let wrong = |error: NoSuchDevice| refuse(&peers_words(&error));
    request.platform(&[MADE_UP]).map_err(wrong)?;
    let of_rank = |rank| {
        let index = request.device(devices, rank).map_err(wrong)?;
        Ok(u32::try_from(index).unwrap_or(u32::MAX))
    };
    (0..ranks).map(of_rank).collect()
}

fn peers_words(error: &NoSuchDevice) -> String {
    match error {
        NoSuchDevice::Device { index, last } => {
            format!("Invalid device index specified: {index}/{last}")
        }
        NoSuchDevice::Platform { index, last } => {
            format!("Invalid platform index specified: {index}/{last}")
        }
        NoSuchDevice::PlatformName { name, .. } => {
            format!("Invalid platform string specified: {name}")
        }
    }
}

#[cfg(test)]
mod tests {
    use weir_schema::Setting;

    use super::*;

    fn chosen(settings: &[(&str, Setting)]) -> Result<Vec<u32>, String> {
        let engine = EngineChoice::with("ocl-pcie", settings);
        made_up(&engine, 2, 3).map_err(|refusal| refusal.message)
    }

    #[test]
    fn ranks_go_round_made_up_devices_unless_one_is_named() {
        assert_eq!(chosen(&[]).unwrap(), [0, 1, 0]);
        let second = [("device", Setting::Number(1))];
        assert_eq!(chosen(&second).unwrap(), [1, 1, 1]);
        let platform = [("platform", Setting::Number(0))];
        assert_eq!(chosen(&platform).unwrap(), [0, 1, 0]);
    }

    #[test]
    fn a_device_or_platform_that_there_is_not_is_refused_in_the_peers_words() {
        for (name, value, wanted) in [
            ("device", Setting::Number(5), "device index specified: 5/1"),
            (
                "platform",
                Setting::Number(1),
                "platform index specified: 1/0",
            ),
            (
                "platform_name",
                Setting::Text("X".to_owned()),
                "platform string specified: X",
            ),
        ] {
            let why = chosen(&[(name, value)]).unwrap_err();
            assert!(why.contains(&format!("Invalid {wanted}\n")), "{why}");
        }
    }
}
