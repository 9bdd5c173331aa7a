//! What a run does when the backend misbehaves: OpenTofu is real, the backend and the transport are not.

#![allow(clippy::unwrap_used, reason = "test code outside of test functions")]

mod fake_backend;
mod wrapper_support;

use provisor_deploy::decide::Work;
use provisor_deploy::obstacle::Obstacle;
use provisor_deploy::state::State;
use provisor_deploy::verdict::{Step, Verdict};
use provisor_deploy::wrapper::{
    Asked, Ending, Error, Flags, LockRelease, LostState, Request, StaleLock, StatePlace, Verb,
};

use fake_backend::{FakeBackend, Fault};
use wrapper_support::{CANARY, Fleet, Job, Told, files_with, verdicts};

fn scene() -> (FakeBackend, Fleet) {
    let backend = FakeBackend::start();
    let fleet = Fleet::at(&backend.url());
    (backend, fleet)
}

fn resources(backend: &FakeBackend) -> String {
    let bytes = backend.held(|held| held.state.clone()).unwrap();
    State::parse(bytes).unwrap().view().resources()
}

fn allowing_lost_state() -> Request {
    let flags = Flags {
        lost_state: LostState::Allow,
        ..Flags::default()
    };
    Request {
        asked: Asked {
            flags,
            ..Asked::default()
        },
        ..Request::default()
    }
}

const BOTH_DEPLOYED: [(&str, &Verdict); 2] = [("backend", &Verdict::Deployed), ("forge", &Verdict::Deployed)];

#[test]
fn an_apply_deploys_every_node_and_the_next_one_none() {
    let (backend, fleet) = scene();
    let first = fleet.apply().unwrap();
    assert_eq!((verdicts(&first), first.exit_code()), (BOTH_DEPLOYED.to_vec(), 0));
    assert_eq!(
        first.outputs["systems"],
        serde_json::json!({"backend": "/nix/store/0-backend", "forge": "/nix/store/0-forge"})
    );
    let second = fleet.apply().unwrap();
    let unchanged = [("backend", &Verdict::Unchanged), ("forge", &Verdict::Unchanged)];
    assert_eq!((verdicts(&second), second.exit_code()), (unchanged.to_vec(), 0));
    assert_eq!(fleet.asked().len(), 2, "no node was deployed twice");
    assert_eq!(backend.held(|held| held.lock.clone()), None);
}

#[test]
fn only_a_node_whose_triggers_changed_is_deployed_again() {
    let (_backend, mut fleet) = scene();
    fleet.apply().unwrap();
    fleet
        .entry("forge")
        .ssh_options
        .push("Compression=yes".to_owned());
    let plan = fleet.plan().unwrap();
    assert_eq!(plan.exit_code(), 2);
    assert_eq!(plan.changes.unwrap().nodes.keys().collect::<Vec<_>>(), ["forge"]);
    let report = fleet.apply().unwrap();
    assert_eq!(
        verdicts(&report),
        [("backend", &Verdict::Unchanged), ("forge", &Verdict::Deployed)]
    );
    assert_eq!(fleet.plan().unwrap().exit_code(), 0);
}

#[test]
fn a_second_deployer_finds_nothing_to_do() {
    let (backend, fleet) = scene();
    fleet.apply().unwrap();
    let mut elsewhere = Fleet::at(&backend.url());
    elsewhere.entry("forge").identity = Some("/elsewhere/key".into());
    assert_eq!(elsewhere.plan().unwrap().exit_code(), 0);
    elsewhere.apply().unwrap();
    assert_eq!(elsewhere.asked(), [""; 0]);
}

#[test]
fn a_plan_changes_nothing() {
    let (backend, fleet) = scene();
    let plan = fleet.plan().unwrap();
    assert_eq!((plan.exit_code(), plan.state), (2, StatePlace::Nowhere));
    assert_eq!(plan.changes.unwrap().counts.add, 2);
    assert_eq!(fleet.asked(), [""; 0]);
    assert_eq!(backend.held(|held| held.state.clone()), None);
    assert!(!fleet.workdir().join("marker.json").exists());
}

#[test]
fn a_failed_node_is_told_with_its_verdict_and_its_siblings_are_deployed() {
    let (_backend, mut fleet) = scene();
    let verdict = Verdict::Failed {
        step: Step::Check,
        code: Some(1),
        message: "no bootloader".into(),
    };
    fleet.job(
        "forge",
        Job {
            before: ":".into(),
            verdict: verdict.clone(),
            code: 1,
        },
    );
    let told = Told::default();
    let report = fleet.run_and_tell(&Request::default(), &told).unwrap();
    assert_eq!(
        verdicts(&report),
        [("backend", &Verdict::Deployed), ("forge", &verdict)]
    );
    assert_eq!((report.ending.clone(), report.exit_code()), (Ending::Done, 1));
    let finished = [
        ("backend".to_owned(), Verdict::Deployed),
        ("forge".to_owned(), verdict),
    ];
    assert_eq!(told.finished(), finished, "each node's outcome is told once");

    fleet.job(
        "forge",
        Job {
            before: ":".into(),
            verdict: Verdict::Deployed,
            code: 0,
        },
    );
    let report = fleet.apply().unwrap();
    assert_eq!(
        verdicts(&report),
        [("backend", &Verdict::Unchanged), ("forge", &Verdict::Deployed)]
    );
}

#[test]
fn a_transport_that_dies_without_a_report_leaves_an_unknown_node() {
    let (_backend, mut fleet) = scene();
    fleet.job(
        "forge",
        Job {
            before: "kill -9 $$".into(),
            verdict: Verdict::Deployed,
            code: 0,
        },
    );
    let report = fleet.apply().unwrap();
    assert!(matches!(verdicts(&report)[1], ("forge", Verdict::Unknown { .. })));
    assert_eq!(report.exit_code(), 1);
}

#[test]
fn a_reboot_that_is_needed_does_not_fail_the_node() {
    let (_backend, mut fleet) = scene();
    fleet.job(
        "forge",
        Job {
            before: ":".into(),
            verdict: Verdict::Reboot,
            code: 0,
        },
    );
    assert_eq!(fleet.apply().unwrap().exit_code(), 100);
    assert_eq!(fleet.plan().unwrap().exit_code(), 0);
}

#[test]
fn a_state_that_could_not_be_stored_is_salvaged_and_the_rest_is_applied() {
    let (backend, fleet) = scene();
    backend.script("POST", 1, Fault::Answer(500, "", "disk full"));
    let report = fleet.apply().unwrap();
    assert_eq!(
        (verdicts(&report), report.exit_code()),
        (BOTH_DEPLOYED.to_vec(), 0)
    );
    assert_eq!(fleet.asked().len(), 2, "what was deployed is not deployed again");
    assert_eq!(resources(&backend), "2 resources");
    assert!(!fleet.workdir().join("remote/errored.tfstate").exists());
    assert_eq!(
        std::fs::read_dir(fleet.workdir().join("salvage"))
            .unwrap()
            .count(),
        1,
        "a dated copy is kept"
    );
}

#[test]
fn a_lock_that_the_backend_forgot_in_mid_apply_costs_nothing() {
    let (backend, fleet) = scene();
    backend.script("POST", 1, Fault::ForgetLock);
    let report = fleet.apply().unwrap();
    assert_eq!(
        (verdicts(&report), report.exit_code()),
        (BOTH_DEPLOYED.to_vec(), 0)
    );
    assert_eq!(resources(&backend), "2 resources");
    assert_eq!(backend.held(|held| held.lock.clone()), None);
}

#[test]
fn a_lock_that_opentofu_cannot_give_back_is_given_back_by_the_wrapper() {
    let (backend, fleet) = scene();
    // The first UNLOCK is the observation's.
    backend.script("UNLOCK", 2, Fault::Answer(409, "", "no"));
    let report = fleet.apply().unwrap();
    assert_eq!(
        (report.lock.clone(), report.exit_code()),
        (LockRelease::Released, 0)
    );
    assert_eq!(backend.held(|held| held.lock.clone()), None);
}

#[test]
fn a_lock_that_stays_is_told_apart_from_a_failure() {
    let (backend, fleet) = scene();
    for nth in 2..4 {
        backend.script("UNLOCK", nth, Fault::Answer(409, "", "no"));
    }
    let report = fleet.apply().unwrap();
    assert_eq!(
        (verdicts(&report), report.ending.clone(), report.exit_code()),
        (BOTH_DEPLOYED.to_vec(), Ending::Done, 4)
    );
    let LockRelease::NotReleased { holder } = report.lock else {
        panic!("released")
    };
    assert!(holder.contains("OperationTypeApply"), "{holder}");

    let Err(Error::Refused(Obstacle::LockedByUs { .. })) = fleet.apply() else {
        panic!("not refused")
    };
    let flags = Flags {
        stale_lock: StaleLock::Release,
        ..Flags::default()
    };
    let releasing = Request {
        asked: Asked {
            flags,
            ..Asked::default()
        },
        ..Request::default()
    };
    // The fourth UNLOCK works again.
    assert_eq!(fleet.run(&releasing).unwrap().exit_code(), 0);
}

#[test]
fn a_backend_that_keeps_nothing_is_noticed() {
    let (backend, fleet) = scene();
    backend.script("POST", 1, Fault::Answer(200, "", ""));
    assert!(matches!(fleet.apply(), Err(Error::NotSaved { .. })));
}

#[test]
fn an_apply_over_lost_state_is_refused_unless_it_is_allowed() {
    let (backend, fleet) = scene();
    fleet.apply().unwrap();
    backend.held(|held| held.state = None);
    let error = fleet.apply().unwrap_err();
    assert!(
        matches!(error, Error::Refused(Obstacle::LostAfter { .. })),
        "{error}"
    );
    assert_eq!(error.exit_code(), 3);
    assert_eq!(
        (fleet.asked().len(), backend.held(|held| held.state.clone())),
        (2, None),
        "nothing was touched"
    );

    let told = Told::default();
    let plan = Request {
        asked: Asked {
            verb: Some(Verb::Plan),
            ..Asked::default()
        },
        ..Request::default()
    };
    assert_eq!(
        fleet.run_and_tell(&plan, &told).unwrap().exit_code(),
        2,
        "a plan warns and runs"
    );
    assert!(told.warnings()[0].contains("lost the state"));

    assert_eq!(fleet.run(&allowing_lost_state()).unwrap().exit_code(), 0);
    assert_eq!(fleet.asked().len(), 4);
    assert_eq!(
        fleet.apply().unwrap().exit_code(),
        0,
        "the new state is the known one now"
    );
}

#[test]
fn somebody_elses_lock_is_told_with_its_holder() {
    let (backend, fleet) = scene();
    let lock =
        br#"{"ID":"1","Operation":"OperationTypeApply","Who":"bob@laptop","Created":"2026-01-02T03:04:05Z"}"#;
    backend.held(|held| held.lock = Some(lock.to_vec()));
    let error = fleet.apply().unwrap_err();
    assert!(
        error
            .to_string()
            .contains("bob@laptop for OperationTypeApply since 2026-01-02T03:04:05Z"),
        "{error}"
    );
    assert_eq!(backend.held(|held| held.lock.clone()).unwrap(), lock);
}

#[test]
fn answers_that_would_lose_state_are_refused_before_anything_runs() {
    for (status, headers, body, told) in [
        (200, "", "<html>sign in</html>", "is no state"),
        (301, "Location: http://127.0.0.1/elsewhere\r\n", "", "redirects"),
        (401, "", "", "TF_HTTP_PASSWORD"),
        (503, "", "maintenance", "cannot serve"),
    ] {
        let (backend, fleet) = scene();
        backend.script("GET", 1, Fault::Answer(status, headers, body));
        let error = fleet.apply().unwrap_err();
        assert!(error.to_string().contains(told), "{status}: {error}");
        assert_eq!(
            (error.exit_code(), backend.methods()),
            (3, vec!["GET".to_owned()])
        );
        assert_eq!(fleet.asked(), [""; 0]);
    }
}

#[test]
fn the_password_is_in_no_file_and_not_in_the_transports_environment() {
    let (backend, mut fleet) = scene();
    fleet.job(
        "forge",
        Job {
            before: ":".into(),
            verdict: Verdict::Degraded {
                units: vec!["a".into()],
            },
            code: 4,
        },
    );
    backend.script("POST", 1, Fault::Answer(500, "", "disk full"));
    assert_eq!(fleet.apply().unwrap().exit_code(), 4);
    fleet.plan().unwrap();
    backend.held(|held| {
        assert!(
            held.seen
                .iter()
                .all(|seen| seen.headers.contains_key("authorization")),
            "all requests carry it"
        );
    });
    assert!(fleet.environment_of("forge").contains("PROVISOR_RUN="));
    assert_eq!(
        files_with(fleet.home.path(), CANARY),
        [""; 0].map(std::path::PathBuf::from)
    );
}

#[test]
fn without_opentofu_or_terraform_nothing_is_touched() {
    let (backend, mut fleet) = scene();
    fleet.programs.tofu = Some(fleet.home.path().join("no-such-program"));
    let error = fleet.apply().unwrap_err();
    assert!(
        error
            .to_string()
            .contains("give the path of OpenTofu or Terraform"),
        "{error}"
    );
    assert!(!fleet.state_home().exists());
    assert_eq!(backend.methods(), [""; 0]);
}

#[test]
fn output_of_another_age_stops_the_run() {
    let (backend, mut fleet) = scene();
    let program = fleet.home.path().join("tofu");
    let script = "#!/bin/sh\ncase $1 in version) echo 'OpenTofu v9.0.0';; apply) echo '{\"type\":\"version\",\"ui\":\"2.0\"}'; exit 0;; esac\n";
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    fleet.programs.tofu = Some(program);
    let error = fleet.apply().unwrap_err();
    assert!(error.to_string().contains("has version 2.0"), "{error}");
    assert_eq!(backend.held(|held| held.state.clone()), None);
}

#[test]
fn a_report_says_which_way_was_taken_and_what_it_took() {
    let (backend, fleet) = scene();
    let report = fleet.apply().unwrap();
    assert_eq!(report.work, Work::Steady(Verb::Apply));
    let StatePlace::Backend { address, .. } = &report.state else {
        panic!("{:?}", report.state)
    };
    assert_eq!(*address, backend.url());
    assert_eq!(report.phases.len(), 2);
    assert!(report.logs.join("steady-cycle.log").exists());
}
