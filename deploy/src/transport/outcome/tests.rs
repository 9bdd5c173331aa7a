use super::*;

fn properties(text: &str) -> UnitProperties {
    let mut unit = UnitProperties::default();
    for pair in text.split_whitespace() {
        let (key, value) = pair.split_once('=').unwrap();
        unit.set(key, value);
    }
    unit
}

const QUIET: Circumstances = Circumstances {
    failed_units: Vec::new(),
    not_restarted: Vec::new(),
    current: Current::Wanted,
    log: String::new(),
};

fn exited(code: i32) -> UnitState {
    UnitState::Ended(Ended::Exited(code))
}

#[test]
fn what_systemctl_shows_is_read_as_a_state() {
    let table = [
        ("", UnitState::Absent),
        (
            "LoadState=not-found ActiveState=inactive ExecMainCode=0 ExecMainStatus=0",
            UnitState::Absent,
        ),
        (
            "LoadState=loaded ActiveState=activating ExecMainCode=0 ExecMainStatus=0",
            UnitState::Running,
        ),
        (
            "LoadState=loaded ActiveState=deactivating ExecMainCode=0 ExecMainStatus=0",
            UnitState::Running,
        ),
        (
            "LoadState=loaded ActiveState=active ExecMainCode=1 ExecMainStatus=0",
            exited(0),
        ),
        (
            "LoadState=loaded ActiveState=failed ExecMainCode=1 ExecMainStatus=4",
            exited(4),
        ),
        (
            "LoadState=loaded ActiveState=failed ExecMainCode=1 ExecMainStatus=100",
            exited(100),
        ),
        (
            "LoadState=loaded ActiveState=failed Result=signal ExecMainCode=2 ExecMainStatus=9",
            UnitState::Ended(Ended::Killed(9)),
        ),
        (
            "LoadState=loaded ActiveState=failed Result=core-dump ExecMainCode=3 ExecMainStatus=11",
            UnitState::Ended(Ended::Killed(11)),
        ),
        (
            "LoadState=loaded ActiveState=failed Result=resources ExecMainCode=0 ExecMainStatus=0",
            UnitState::Ended(Ended::NotRun("resources".into())),
        ),
    ];
    for (text, state) in table {
        assert_eq!(properties(text).state(), state, "{text}");
    }
}

#[test]
fn the_next_move_follows_the_unit_then_the_record_then_the_boot() {
    let on_start = || Asked::OnStart {
        complaint: "no bus".into(),
    };
    let done = |ended| Next::Done(Conclusion::Ended(ended));
    let table = [
        (Asked::Later, UnitState::Running, None, Boot::Same, Next::Wait),
        (on_start(), UnitState::Running, Some(0), Boot::Same, Next::Wait),
        (on_start(), exited(0), Some(0), Boot::Same, done(Ended::Exited(0))),
        (
            Asked::Later,
            exited(4),
            Some(0),
            Boot::Same,
            done(Ended::Exited(4)),
        ),
        (
            Asked::Later,
            UnitState::Absent,
            Some(100),
            Boot::Other,
            done(Ended::Exited(100)),
        ),
        (
            Asked::Later,
            UnitState::Absent,
            Some(2),
            Boot::Same,
            done(Ended::Exited(2)),
        ),
        (Asked::Later, UnitState::Absent, None, Boot::Same, Next::Start),
        (
            Asked::Later,
            UnitState::Absent,
            None,
            Boot::Other,
            Next::Done(Conclusion::Rebooted),
        ),
        (
            on_start(),
            UnitState::Absent,
            None,
            Boot::Same,
            done(Ended::NotRun("no bus".into())),
        ),
    ];
    for (asked, unit, record, boot, wanted) in table {
        let observation = Observation {
            asked,
            unit,
            record,
            boot,
        };
        assert_eq!(next(&observation), wanted, "{observation:?}");
    }
}

#[test]
fn a_unit_of_an_earlier_run_is_joined_waited_for_or_passed_over() {
    let unit = |hash: &str, rest: &str| {
        properties(&format!(
            "Id=provisor-switch-old-{hash}.service LoadState=loaded {rest}"
        ))
    };
    let running = "ActiveState=activating ExecMainCode=0 ExecMainStatus=0";
    let fine = "ActiveState=active ExecMainCode=1 ExecMainStatus=0";
    let degraded = "ActiveState=failed ExecMainCode=1 ExecMainStatus=4";
    let attach = |hash| Approach::Attach {
        unit: format!("provisor-switch-old-{hash}.service"),
    };
    let table = [
        (vec![], Current::Absent, Approach::Start),
        (vec![unit("ours", running)], Current::Absent, attach("ours")),
        (
            vec![unit("ours", fine), unit("theirs", running)],
            Current::Wanted,
            Approach::WaitFor {
                unit: "provisor-switch-old-theirs.service".into(),
            },
        ),
        (vec![unit("ours", fine)], Current::Wanted, attach("ours")),
        (
            vec![unit("ours", fine)],
            Current::Other("/nix/store/x".into()),
            Approach::Start,
        ),
        (vec![unit("ours", degraded)], Current::Wanted, attach("ours")),
        (vec![unit("theirs", fine)], Current::Wanted, Approach::Start),
    ];
    for (units, current, wanted) in table {
        assert_eq!(
            approach(&units, "ours", current.clone()),
            wanted,
            "{units:?} {current:?}"
        );
    }
}

#[test]
fn every_exit_code_has_its_verdict() {
    let units = Circumstances {
        failed_units: vec!["a.service".into()],
        ..QUIET
    };
    let of = |code| verdict(&Conclusion::Ended(Ended::Exited(code)), &units);
    assert_eq!(of(0), Verdict::Deployed);
    assert_eq!(
        of(4),
        Verdict::Degraded {
            units: vec!["a.service".into()]
        }
    );
    assert_eq!(of(100), Verdict::Reboot);
    for code in [1, 2, 3, 11, 255] {
        assert!(
            matches!(of(code), Verdict::Failed { step: Step::Activate, code: Some(c), .. } if c == code),
            "{code}"
        );
    }
}

#[test]
fn success_is_believed_only_of_the_system_that_runs_with_its_units() {
    let success = Conclusion::Ended(Ended::Exited(0));
    let elsewhere = Circumstances {
        current: Current::Other("/nix/store/other".into()),
        ..QUIET
    };
    assert!(matches!(
        verdict(&success, &elsewhere),
        Verdict::Failed { message, .. } if message.contains("/nix/store/other")
    ));
    let stale = Circumstances {
        not_restarted: vec!["nginx.service".into()],
        ..QUIET
    };
    assert_eq!(
        verdict(&success, &stale),
        Verdict::Degraded {
            units: vec!["nginx.service".into()]
        }
    );
    assert_eq!(
        verdict(
            &success,
            &Circumstances {
                current: Current::Absent,
                ..QUIET
            }
        ),
        Verdict::Deployed
    );
}

#[test]
fn what_is_not_known_is_unknown_and_a_signal_is_no_exit_code() {
    assert!(matches!(
        verdict(&Conclusion::Rebooted, &QUIET),
        Verdict::Unknown { .. }
    ));
    let killed = verdict(&Conclusion::Ended(Ended::Killed(9)), &QUIET);
    assert!(matches!(killed, Verdict::Failed { code: None, message, .. } if message.contains("signal 9")));
}

#[test]
fn a_failure_carries_the_last_lines_of_its_log() {
    let circumstances = Circumstances {
        log: "activation: no space left".into(),
        ..QUIET
    };
    let verdict = verdict(&Conclusion::Ended(Ended::Exited(2)), &circumstances);
    assert!(matches!(verdict, Verdict::Failed { message, .. } if message.ends_with("no space left")));
}
