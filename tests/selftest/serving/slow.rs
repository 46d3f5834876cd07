//! Slow tests: under the launchers of MPI, on hosts whose networks root makes.

use crate::slow::interfaces::on_host;

use super::{
    Running, Signal, Stage, count, each_launcher, launch, masters, self_test, table, until,
};

#[test]
fn the_ranks_of_a_launcher_are_one_group() {
    each_launcher("servers under a launcher", |stage, launcher| {
        let words = ["rpc", "serve", "--path", ".", "--tags", "2"];
        let mut command = launch(stage, launcher, 2, &words);
        // It kills the ranks after a second, which a busy machine may need for more than their end.
        command.env("OMPI_MCA_odls_base_sigkill_timeout", "5");
        let servers = Running::start(command);
        until("both ranks are there", || {
            let table = table(stage);
            ["\nsize 2\n", "\n0 tcp://", "\n1 tcp://"]
                .iter()
                .all(|part| table.contains(part))
        });
        let test = self_test(
            stage,
            "-e all:all -m all:0 -s '(0 0) (b10k b10k)' -r 20 --output json",
        );
        let blocks = masters(&test.code(0).calm());
        for block in &blocks {
            assert_eq!(block.len(), 2);
            assert!(block.iter().all(|master| count(master, "succeeded") == 80));
        }
        servers.signal(Signal::TERM);
        until("they have left their table", || {
            !table(stage).contains("tcp://")
        });
        servers.end();
    });
}

#[test]
fn who_listens_everywhere_is_in_the_table_with_an_address_that_others_reach() {
    for (cards, words, address) in [
        (&[("eth0", "0")][..], "tcp://0.0.0.0:0", "tcp://10.88.0.1:"),
        (
            &[("eth0", "0"), ("eth1", "0")],
            "tcp://0.0.0.0:0,shm://",
            "tcp://10.88.0.1:",
        ),
    ] {
        let stage = Stage::new();
        let script = "cat daos_server.attach_info_tmp; $asks";
        let words = format!("--transport {words}");
        let Some(host) = on_host(&stage, cards, ("", &words), script) else {
            return;
        };
        host.out(&format!("READY {address}"))
            .out(&format!("\n0 {address}"));
    }
    let stage = Stage::new();
    let words = "--transport tcp://0.0.0.0:0";
    if let Some(host) = on_host(&stage, &[], ("", words), "cat daos_server.attach_info_tmp") {
        host.out("\n0 tcp://127.0.0.1:")
            .err("only this machine reaches this server");
    }
}
