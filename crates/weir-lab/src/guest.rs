//! The scripts of a guest: what its init reads besides its own constant text.
//!
//! In: modules in order, a [`Wiring`], a task. Out: the text of `setup.sh` and `run.sh`.
//! Not here: the functions they call (`guest/*.sh` of this crate).

use crate::device::Wiring;
use crate::lab::Task;

/// The first program.
pub(crate) const INIT: &str = include_str!("../guest/init");
/// Functions of the setup.
pub(crate) const SETUP_FUNCTIONS: &str = include_str!("../guest/setup-functions.sh");
/// Functions for scripts.
pub(crate) const FUNCTIONS: &str = include_str!("../guest/functions.sh");

/// Modules, then devices, then their nodes.
pub(crate) fn setup(order: &[String], wiring: &Wiring) -> String {
    let modules = order.iter().map(|name| {
        let parameters = wiring.parameters.get(name).into_iter().flatten();
        let args = parameters.map(|(parameter, value)| format!(" {parameter}={value}"));
        format!("lab_insmod {name}{}\n", args.collect::<String>())
    });
    let lines = wiring.setup.iter().map(|line| format!("{line}\n"));
    let nodes = wiring.nodes.iter().enumerate();
    let nodes = nodes.map(|(number, command)| format!("lab_node {number} {command}\n"));
    modules.chain(lines).chain(nodes).collect()
}

/// Shell script that the guest runs.
pub(crate) fn run(task: &Task) -> String {
    match task {
        Task::Script(text) => format!(". /lab/functions.sh\n{text}\n"),
        Task::Command(args) => {
            let args: Vec<String> = args.iter().map(|word| quoted(word)).collect();
            format!("exec {}\n", args.join(" "))
        }
        Task::Cases(cases) => {
            let calls = cases.iter().map(|(name, _)| format!("lab_case {name}\n"));
            CASES.to_owned() + &calls.collect::<String>() + "exit 0\n"
        }
        Task::Shell => String::new(),
    }
}

/// Runs one case of a batch; the kernel's log says where it begins and ends.
const CASES: &str = r#"lab_case() {
	printf '\036@@begin %s\n' "$1"
	echo "<6>weir-lab case $1" >/dev/kmsg
	(cd /tmp && LAB_CASE=$1 exec sh "/lab/cases/$1.sh")
	printf '\036@@case %s rc=%s\n' "$1" $?
	echo "<6>weir-lab case " >/dev/kmsg
}
"#;

/// A word as the shell takes it whole.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_setup_loads_makes_and_names() {
        let specs = ["ram:64M".to_owned(), "null:bs=4096".to_owned()];
        let wiring = Wiring::of(&specs, Path::new("/run")).unwrap();
        let order = [
            "brd".to_owned(),
            "configfs".to_owned(),
            "null_blk".to_owned(),
        ];
        assert_eq!(
            setup(&order, &wiring),
            "lab_insmod brd rd_nr=1 rd_size=65536\n\
             lab_insmod configfs\n\
             lab_insmod null_blk nr_devices=0\n\
             lab_null nullb0 blocksize=4096\n\
             lab_node 0 echo /dev/ram0\n\
             lab_node 1 echo /dev/nullb0\n"
        );
    }

    #[test]
    fn the_words_of_a_command_stay_whole() {
        let args = ["sh", "-c", "echo 'it is'; exit 5"].map(str::to_owned);
        assert_eq!(
            run(&Task::Command(args.to_vec())),
            "exec 'sh' '-c' 'echo '\\''it is'\\''; exit 5'\n"
        );
    }
}
