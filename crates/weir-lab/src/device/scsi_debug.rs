//! The kernel's simulated SCSI disk, which can inject errors and have zones.
//!
//! In: `scsi-debug[:PARAMETER=VALUE,...]`. Out: the module with those parameters. One at most: they
//! are the module's.

use anyhow::ensure;

use super::DeviceKind;

pub(super) const SCSI_DEBUG: DeviceKind = DeviceKind {
    name: "scsi-debug",
    form: "scsi-debug[:dev_size_mb=64,opts=2,medium_error_start=4660,medium_error_count=8,...]",
    what: "scsi_debug with any of its parameters",
    wire: |wiring, spec| {
        ensure!(
            wiring.next("scsi-debug") == 0,
            "device `{spec}`: there can be one scsi-debug"
        );
        wiring.module("sd_mod");
        wiring.module("scsi_debug");
        for (name, value) in &spec.settings {
            wiring.parameter(spec, "scsi_debug", name, value.as_deref().unwrap_or("1"))?;
        }
        if spec.value("dev_size_mb").is_none() {
            wiring.parameter(spec, "scsi_debug", "dev_size_mb", "64")?;
        }
        wiring.node("lab_scsi_debug".to_owned());
        Ok(())
    },
};
