//! Combined meaning of the options of verification.
//!
//! In: a draft. Out: what the plan verifies, notes, conflicts. Not here: what must fit targets and
//! block sizes, which is looked at before the run.

use weir_schema::catalogue::EngineInfo;
use weir_schema::{Kind, Mix, Verify, VerifyMethod};

use crate::conflict::Conflict;
use crate::diagnostic::Fault;
use crate::draft::{Direction, Draft};
use crate::report::CompileReport;

/// Verification of the job; an engine that moves no data has nothing to check.
pub(crate) fn resolve_verify(
    draft: &Draft,
    (engine, mix): (&EngineInfo, &Mix),
    report: &mut CompileReport,
) -> Option<Verify> {
    if draft.verifies && engine.moves_no_data() {
        report.note(format!(
            "engine {} moves no data: nothing is verified",
            engine.name
        ));
    }
    let only_trims = !mix.has(Kind::Read) && !mix.has(Kind::Write);
    if draft.verifies && only_trims && !engine.moves_no_data() {
        report.note("a job that only trims brings no data: nothing is verified".to_owned());
    }
    let verify = &draft.verify;
    if draft.verifies && verify.peer_rules && verify.method == VerifyMethod::Sha512 {
        report.note(
            "sha512 by the rules of fio 3.33 is no digest: damage in the middle of a block passes"
                .to_owned(),
        );
    }
    let true_digest = matches!(verify.method, VerifyMethod::Sha256 | VerifyMethod::Sha512);
    if draft.verifies && true_digest && !verify.peer_rules {
        report.note(
            "sha256 and sha512 are the true digests, which fio 3.33 cannot check: \
             verify_compat=fio-3.33 follows its rules"
                .to_owned(),
        );
    }
    (draft.verifies && !engine.moves_no_data()).then(|| verify.clone())
}

/// Conflicts between the options of verification.
pub(crate) fn verify_conflicts(draft: &Draft, found: &mut Vec<Conflict>) {
    let verify = &draft.verify;
    if !draft.verifies {
        return;
    }
    if verify.only && draft.direction == Direction::Trim {
        found.push((
            Fault::new("job.conflict", "`verify_only` of a job that only trims")
                .label("it brings no data that could be verified")
                .help("leave it out to trim, or give the rw of the job that wrote the data"),
            &["verify_only"],
        ));
    }
    if verify.only && verify.backlog > 0 {
        found.push((
            Fault::new("job.conflict", "`verify_backlog` with verify_only")
                .label("nothing is written that could be read back")
                .help("leave one of them out"),
            &["verify_backlog", "verify_only"],
        ));
    }
    if draft.sizes.unaligned {
        found.push((
            Fault::new("job.conflict", "`bs_unaligned` with verify")
                .label("blocks of any length have no common place for headers")
                .help("use bsrange without bs_unaligned"),
            &["bs_unaligned", "verify"],
        ));
    }
    if verify.method == VerifyMethod::Pattern && verify.pattern.is_none() {
        found.push((
            Fault::new("job.conflict", "`verify=pattern` without a pattern")
                .label("which one?")
                .help("add verify_pattern=0xff, for example"),
            &["verify"],
        ));
    }
}
