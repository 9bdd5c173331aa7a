use super::super::testing::FakeHost;
use super::super::*;
use crate::transport::job::tests::entry;

fn deploy(host: &FakeHost) -> Verdict {
    deploy_job(host, &host.job())
}

/// Deploys, and proves that the report file says the same.
fn deploy_job(host: &FakeHost, job: &Job) -> Verdict {
    let order = host.order();
    let report = super::super::deploy(job, &order, &mut |_| {}).unwrap();
    let written = NodeReport::read(&order.report, &order.run, &job.entry.system).unwrap();
    assert_eq!(written.as_ref(), Some(&report));
    report.verdict
}

fn hash() -> &'static str {
    "00000000000000000000000000000000"
}

#[test]
fn the_steps_go_in_order_over_one_connection_which_is_closed() {
    let host = FakeHost::new();
    assert_eq!(deploy(&host), Verdict::Deployed);
    let steps = [
        "connect", "missing", "check", "profile", "start", "finish", "close",
    ];
    assert_eq!(host.calls(), steps);
}

#[test]
fn every_code_of_the_activation_becomes_its_verdict() {
    for code in [0, 1, 2, 4, 11, 100, 255] {
        let host = FakeHost::new();
        host.answers(
            "start",
            &host
                .ended(code)
                .replace("current=", "failed=nginx.service\nlog=last words\ncurrent="),
        );
        let verdict = deploy(&host);
        match code {
            0 => assert_eq!(verdict, Verdict::Deployed),
            4 => assert_eq!(
                verdict,
                Verdict::Degraded {
                    units: vec!["nginx.service".into()]
                }
            ),
            100 => assert_eq!(verdict, Verdict::Reboot),
            _ => assert!(
                matches!(&verdict, Verdict::Failed { step: Step::Activate, code: Some(c), message }
                    if *c == code && message.ends_with("last words")),
                "{code}: {verdict:?}"
            ),
        }
    }
}

#[test]
fn a_cut_in_mid_activation_is_answered_by_asking_and_never_by_a_second_start() {
    let host = FakeHost::new();
    host.answers("start", "boot=b1\n");
    host.answers("observe", &host.ended(4));
    assert_eq!(deploy(&host), Verdict::Degraded { units: vec![] });
    let calls = host.calls();
    assert_eq!(
        calls.iter().filter(|call| *call == "start").count(),
        1,
        "{calls:?}"
    );
    assert!(calls.contains(&"observe".to_owned()), "{calls:?}");
}

#[test]
fn a_cut_before_the_unit_was_made_starts_it() {
    let host = FakeHost::new();
    host.answers("start-1", "");
    host.answers(
        "observe",
        "boot=b1\nunit:Id=u.service\nunit:LoadState=not-found\ncurrent=\ncode=0\n",
    );
    assert_eq!(deploy(&host), Verdict::Deployed);
    let calls = host.calls();
    assert_eq!(calls[4..7], ["start", "observe", "start"], "{calls:?}");
}

#[test]
fn a_host_that_stays_away_is_unknown_and_never_failed() {
    let host = FakeHost::new();
    host.answers("start", "boot=b1\n");
    host.answers("observe", "");
    let mut job = host.job();
    job.deadlines.reconnect = 0;
    let verdict = deploy_job(&host, &job);
    assert!(
        matches!(&verdict, Verdict::Unknown { message } if message.contains("provisor-switch-run-1-")
            && message.ends_with("apply again")),
        "{verdict:?}"
    );
}

#[test]
fn a_host_that_was_restarted_without_a_record_is_unknown_and_with_one_is_known() {
    for (record, known) in [("", false), ("record=0\n", true)] {
        let host = FakeHost::new();
        host.answers("start", "");
        let gone = "unit:Id=u.service\nunit:LoadState=not-found";
        host.answers(
            "observe",
            &format!(
                "boot=b2\n{gone}\n{record}current={}\ncode=0\n",
                entry().system.display()
            ),
        );
        let verdict = deploy(&host);
        assert_eq!(verdict == Verdict::Deployed, known, "{verdict:?}");
        assert_eq!(matches!(verdict, Verdict::Unknown { .. }), !known, "{verdict:?}");
    }
}

#[test]
fn a_unit_that_already_activates_this_system_is_joined() {
    let host = FakeHost::new();
    let unit = format!("provisor-switch-earlier-{}.service", hash());
    host.answers(
        "connect",
        &format!(
            "boot=b1\nnix=yes\nunit:Id={unit}\nunit:LoadState=loaded\nunit:ActiveState=activating\n\
             unit:ExecMainCode=0\nunit:ExecMainStatus=0\ncode=0\n"
        ),
    );
    assert_eq!(deploy(&host), Verdict::Deployed);
    assert!(!host.calls().contains(&"start".to_owned()), "{:?}", host.calls());
}

#[test]
fn a_unit_that_activates_another_system_is_waited_for_first() {
    let host = FakeHost::new();
    host.answers(
        "connect",
        "boot=b1\nnix=yes\nunit:Id=provisor-switch-earlier-other.service\nunit:LoadState=loaded\n\
         unit:ActiveState=activating\nunit:ExecMainCode=0\nunit:ExecMainStatus=0\ncode=0\n",
    );
    assert_eq!(deploy(&host), Verdict::Deployed);
    let calls = host.calls();
    assert_eq!(calls[4..6], ["observe", "start"], "{calls:?}");
}

#[test]
fn nothing_is_activated_after_a_copy_that_is_not_whole() {
    let host = FakeHost::new();
    host.answers("missing", "missing=/nix/store/x\ncode=0\n");
    let verdict = deploy(&host);
    assert!(
        matches!(
            verdict,
            Verdict::Failed {
                step: Step::VerifyCopy,
                ..
            }
        ),
        "{verdict:?}"
    );
    assert_eq!(host.calls(), ["connect", "missing", "missing", "close"]);
}

#[test]
fn the_bytes_that_were_sent_are_in_the_report() {
    let host = FakeHost::new();
    host.answers("missing-1", "missing=/nix/store/x\ncode=0\n");
    let report = super::super::deploy(&host.job(), &host.order(), &mut |_| {}).unwrap();
    assert_eq!((report.verdict, report.copied_bytes), (Verdict::Deployed, 1000));
}

#[test]
fn the_profile_is_not_set_when_the_check_fails() {
    let host = FakeHost::new();
    host.answers("check", "code=1\n");
    let verdict = deploy(&host);
    assert!(
        matches!(
            verdict,
            Verdict::Failed {
                step: Step::Check,
                code: Some(1),
                ..
            }
        ),
        "{verdict:?}"
    );
    assert_eq!(host.calls(), ["connect", "missing", "check", "close"]);
}

#[test]
fn a_lost_connection_before_the_activation_has_no_exit_code() {
    for (step, wanted) in [
        ("connect", Step::Connect),
        ("missing", Step::Copy),
        ("check", Step::Check),
        ("profile", Step::Profile),
    ] {
        let host = FakeHost::new();
        host.answers(step, "");
        let verdict = deploy(&host);
        assert!(
            matches!(&verdict, Verdict::Failed { step, code: None, message }
                if *step == wanted && message.contains("Broken pipe")),
            "{verdict:?}"
        );
    }
}

#[test]
fn a_host_without_nix_is_told_so() {
    let host = FakeHost::new();
    host.answers("connect", "boot=b1\ncurrent=\ncode=0\n");
    let verdict = deploy(&host);
    assert!(
        matches!(verdict, Verdict::Failed { step: Step::Connect, message, .. } if message.contains("install Nix"))
    );
}

#[test]
fn a_unit_that_does_not_take_its_new_grant_degrades_the_node() {
    let host = FakeHost::new();
    host.answers("finish", "failed=nginx.service\ncode=0\n");
    assert_eq!(
        deploy(&host),
        Verdict::Degraded {
            units: vec!["nginx.service".into()]
        }
    );
}

#[test]
fn a_killed_transport_leaves_a_report_that_claims_nothing() {
    let host = FakeHost::new();
    let (job, order) = (host.job(), host.order());
    let mut seen = None;
    let mut look = |_: &str| {
        seen.get_or_insert_with(|| NodeReport::read(&order.report, &order.run, &job.entry.system).unwrap());
    };
    super::super::deploy(&job, &order, &mut look).unwrap();
    assert!(matches!(seen.flatten().unwrap().verdict, Verdict::Unknown { .. }));
}
