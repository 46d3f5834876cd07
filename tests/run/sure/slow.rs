//! Slow tests: they take long.

use super::*;

#[test]
fn every_figure_of_a_real_run_lies_in_an_interval_of_its_own() {
    let stage = Stage::in_memory();
    let file = stage.file(
        "j.fio",
        "[global]\nbs=4k\ntime_based\nruntime=1s\nstonewall\nsize=8m\n\
         [null]\nioengine=null\nrw=randrw\n\
         [psync]\nioengine=psync\nrw=randread\nfilename=data\n\
         [slow]\nioengine=null\nrw=read\nrate_iops=200\n",
    );
    let said = stage.say(&["run", "--format=json", &file]).code(0);
    let result = result(&said);
    // Rate, bandwidth, mean and four percentiles of each of four kinds.
    assert_eq!(is_sure(&said, &result), 4 * 7, "{said}");
    for job in result.jobs() {
        let metrics = job.metrics.iter().filter(|m| m.interval.is_none());
        assert_eq!(metrics.count(), 0, "{said}");
    }
    let said = stage.say(&["run", "--width=120", &file]).code(0);
    assert_eq!(said.out.matches(" % in this run").count(), 4, "{said}");
}
