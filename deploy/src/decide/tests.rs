mod axes;

use jiff::Timestamp;
use rstest::rstest;

use super::*;
use crate::marker::Cause;
use crate::state::samples::state;
use crate::store::StoreError;

/// A steady apply of a graph that holds its own backend, with nothing anywhere.
fn fresh() -> Observation {
    Observation {
        remote: Remote::Absent,
        local: Local::None,
        errored: Errored::None,
        marker: None,
        lock: Lock::Free,
        hosting: Hosting::OwnNode,
        asked: Asked::default(),
    }
}

fn bootstrap() -> Asked {
    Asked {
        mode: Mode::Bootstrap,
        ..Asked::default()
    }
}

fn allowing() -> Asked {
    Asked {
        flags: Flags {
            lost_state: LostState::Allow,
            ..Flags::default()
        },
        ..Asked::default()
    }
}

fn verb(verb: Verb) -> Asked {
    Asked {
        verb: Some(verb),
        ..Asked::default()
    }
}

fn run(before: &[Preparation], work: Work) -> Course {
    Course::Run {
        before: before.to_vec(),
        work,
        warnings: Vec::new(),
    }
}

fn local(serial: u64) -> Local {
    Local::Held(state("L", serial, &["a"]))
}

const APPLY: Work = Work::Steady(Verb::Apply);

#[rstest]
#[case::a_first_apply(fresh(), run(&[], APPLY))]
#[case::an_ordinary_apply(Observation { remote: axes::held(), ..fresh() }, run(&[], APPLY))]
#[case::an_apply_after_a_bootstrap(
    Observation { remote: axes::held(), marker: axes::marker("L", 4), ..fresh() }, run(&[], APPLY))]
#[case::an_apply_over_a_destroyed_fleet(
    Observation { remote: axes::empty(), marker: axes::marker("L", 3), ..fresh() }, run(&[], APPLY))]
#[case::a_bootstrap_of_a_fresh_provider(
    Observation { remote: axes::unreachable(), asked: bootstrap(), ..fresh() }, run(&[], Work::LocalCycle))]
#[case::a_bootstrap_that_stopped_in_its_local_cycle(
    Observation { remote: axes::unreachable(), local: local(2), asked: bootstrap(), ..fresh() }, run(&[], Work::LocalCycle))]
#[case::a_bootstrap_that_stopped_before_anything_was_stored(
    Observation { remote: axes::unreachable(), local: Local::Zero, asked: bootstrap(), ..fresh() }, run(&[], Work::LocalCycle))]
#[case::a_bootstrap_that_stopped_before_its_migration(
    Observation { local: local(2), asked: bootstrap(), ..fresh() }, run(&[], Work::Migrate))]
#[case::a_bootstrap_that_stopped_before_its_migration_over_a_destroyed_fleet(
    Observation { remote: Remote::Empty(state("M", 9, &[])), local: local(2), asked: bootstrap(), ..fresh() },
    run(&[], Work::Migrate))]
#[case::a_bootstrap_that_stopped_before_its_marker(
    Observation { remote: axes::held(), local: local(4), asked: bootstrap(), ..fresh() },
    run(&[Preparation::FinishMigration], APPLY))]
#[case::an_apply_after_a_bootstrap_that_stopped_before_its_marker(
    Observation { remote: axes::held(), local: local(3), ..fresh() },
    run(&[Preparation::FinishMigration], APPLY))]
#[case::a_bootstrap_that_stopped_after_its_marker(
    Observation { remote: axes::held(), local: local(4), marker: axes::marker("L", 4), asked: bootstrap(), ..fresh() },
    run(&[Preparation::RetireLocal], APPLY))]
#[case::a_bootstrap_of_a_fleet_that_is_deployed(
    Observation { remote: axes::held(), marker: axes::marker("L", 4), asked: bootstrap(), ..fresh() }, run(&[], APPLY))]
#[case::a_bootstrap_while_the_backend_serves_and_nothing_is_stored(
    Observation { asked: bootstrap(), ..fresh() }, run(&[], APPLY))]
#[case::a_plan_beside_an_unfinished_migration(
    Observation { remote: axes::held(), local: local(4), asked: verb(Verb::Plan), ..fresh() },
    run(&[], Work::Steady(Verb::Plan)))]
#[case::a_lost_state_given_up_by_name_while_the_backend_is_gone(
    Observation {
        remote: axes::unreachable(), marker: axes::marker("L", 4),
        asked: Asked { mode: Mode::Bootstrap, ..allowing() }, ..fresh()
    },
    run(&[Preparation::ForgetMarker], Work::LocalCycle))]
#[case::a_destroy_of_a_graph_that_holds_its_own_backend(
    Observation { remote: axes::held(), asked: verb(Verb::Destroy), ..fresh() }, run(&[], Work::DetachThenDestroy))]
#[case::a_destroy_of_another_graph(
    Observation { remote: axes::held(), hosting: Hosting::Elsewhere, asked: verb(Verb::Destroy), ..fresh() },
    run(&[], Work::Steady(Verb::Destroy)))]
#[case::an_errored_state_first(
    Observation { remote: axes::held(), errored: axes::waits(Cycle::Remote, "L", 6), ..fresh() },
    run(&[Preparation::PushErrored], APPLY))]
#[case::an_errored_first_state(
    Observation { errored: axes::waits(Cycle::Remote, "L", 1), ..fresh() }, run(&[Preparation::PushErrored], APPLY))]
#[case::an_errored_state_that_was_stored_after_all(
    Observation { remote: axes::held(), errored: axes::waits(Cycle::Remote, "L", 4), ..fresh() },
    run(&[Preparation::ArchiveErrored(Cycle::Remote)], APPLY))]
#[case::an_errored_state_brings_back_a_lost_one(
    Observation { errored: axes::waits(Cycle::Remote, "L", 6), marker: axes::marker("L", 4), ..fresh() },
    run(&[Preparation::PushErrored], APPLY))]
#[case::an_errored_state_of_the_local_cycle(
    Observation {
        remote: axes::unreachable(), local: Local::Zero, errored: axes::waits(Cycle::Local, "L", 1), asked: bootstrap(), ..fresh()
    },
    run(&[Preparation::AdoptErrored], Work::LocalCycle))]
#[case::an_errored_state_of_the_local_cycle_while_the_backend_serves(
    Observation { local: local(1), errored: axes::waits(Cycle::Local, "L", 2), asked: bootstrap(), ..fresh() },
    run(&[Preparation::AdoptErrored], Work::Migrate))]
#[case::a_lock_of_a_dead_migration(
    Observation { local: local(1), lock: Lock::Abandoned(axes::holder()), asked: bootstrap(), ..fresh() },
    run(&[Preparation::ReleaseLock(axes::holder())], Work::Migrate))]
#[case::a_stale_lock_released_by_name(
    Observation {
        remote: axes::held(), lock: Lock::Mine(axes::holder()),
        asked: Asked { flags: Flags { stale_lock: StaleLock::Release, ..Flags::default() }, ..Asked::default() }, ..fresh()
    },
    run(&[Preparation::ReleaseLock(axes::holder())], APPLY))]
#[case::outputs_while_somebody_applies(
    Observation { remote: axes::held(), lock: Lock::Other(axes::holder()), asked: verb(Verb::Output), ..fresh() },
    run(&[], Work::Steady(Verb::Output)))]
fn a_run_takes_this_course(#[case] observed: Observation, #[case] expected: Course) {
    assert_eq!(decide(&observed), expected);
}

#[rstest]
#[case::an_apply_without_its_backend(
    Observation { remote: axes::unreachable(), ..fresh() },
    "GET http://b/s: the state backend cannot be reached (refused)\nif this fleet's backend was never deployed, run with --bootstrap; else bring it back, or correct TF_HTTP_ADDRESS")]
#[case::an_apply_without_its_backend_after_a_bootstrap(
    Observation { remote: axes::unreachable(), marker: axes::marker("L", 4), ..fresh() }, "bring the backend back")]
#[case::a_plan_without_somebody_elses_backend(
    Observation { remote: axes::unreachable(), hosting: Hosting::Elsewhere, asked: verb(Verb::Plan), ..fresh() },
    "bring the backend back")]
#[case::a_bootstrap_with_a_verb(
    Observation { asked: Asked { verb: Some(Verb::Plan), ..bootstrap() }, ..fresh() }, "--bootstrap")]
#[case::a_bootstrap_with_an_apply(
    Observation { asked: Asked { verb: Some(Verb::Apply), ..bootstrap() }, ..fresh() }, "takes no verb")]
#[case::a_bootstrap_of_a_graph_without_a_backend_node(
    Observation { hosting: Hosting::Elsewhere, asked: bootstrap(), ..fresh() }, "set `backend` on the group")]
#[case::a_second_bootstrap_while_the_backend_is_gone(
    Observation { remote: axes::unreachable(), marker: axes::marker("L", 4), asked: bootstrap(), ..fresh() },
    "would start a second state")]
#[case::wrong_credentials(Observation { remote: axes::denied(), ..fresh() }, "TF_HTTP_PASSWORD")]
#[case::a_sick_backend(Observation { remote: axes::failing(), asked: bootstrap(), ..fresh() }, "cannot serve")]
#[case::a_login_page(Observation { remote: axes::corrupt(), asked: allowing(), ..fresh() }, "is no state")]
#[case::a_lost_state(
    Observation { marker: axes::marker("L", 4), ..fresh() }, "had it on 1970-01-01T00:00:00Z")]
#[case::a_lost_state_and_a_bootstrap(
    Observation { marker: axes::marker("L", 4), asked: bootstrap(), ..fresh() }, "it lost the state")]
#[case::a_lost_state_while_the_working_directory_has_a_fleet(
    Observation { local: local(4), ..fresh() }, "finish an interrupted bootstrap with --bootstrap")]
#[case::a_state_that_went_back_in_time(
    Observation { remote: axes::held(), marker: axes::marker("L", 9), ..fresh() }, "has serial 4 of the state, and had serial 9")]
#[case::a_local_state_that_is_newer(
    Observation { remote: axes::held(), local: local(5), ..fresh() }, "run with --bootstrap to finish the migration")]
#[case::two_fleets(
    Observation { remote: axes::held(), local: Local::Held(state("M", 1, &["a"])), asked: bootstrap(), ..fresh() },
    "two different fleets (lineage M, serial 1 and lineage L, serial 4)")]
#[case::a_torn_local_state(
    Observation { remote: axes::unreachable(), local: Local::Corrupt { reason: "torn".into() }, asked: bootstrap(), ..fresh() },
    "terraform.tfstate.backup")]
#[case::somebody_at_work(
    Observation { remote: axes::held(), lock: Lock::Other(axes::holder()), asked: verb(Verb::Plan), ..fresh() }, "bob@laptop")]
#[case::a_stale_lock(
    Observation { remote: axes::held(), lock: Lock::Mine(axes::holder()), ..fresh() }, "--reclaim-lock")]
#[case::an_errored_state_and_a_bootstrap_without_the_backend(
    Observation { remote: axes::unreachable(), errored: axes::waits(Cycle::Remote, "L", 6), asked: bootstrap(), ..fresh() },
    "without --bootstrap")]
fn a_run_is_refused_and_told_what_to_do(#[case] observed: Observation, #[case] text: &str) {
    let Course::Refuse(obstacle) = decide(&observed) else {
        panic!("{:?}", decide(&observed))
    };
    assert!(obstacle.to_string().contains(text), "{obstacle}");
}

#[rstest]
#[case::a_lost_state(Observation { marker: axes::marker("L", 4), asked: verb(Verb::Plan), ..fresh() }, "lost the state")]
#[case::a_fleet_in_the_working_directory(Observation { local: local(4), asked: verb(Verb::Plan), ..fresh() }, "(1 resource)")]
#[case::a_waiting_errored_state(
    Observation { remote: axes::held(), errored: axes::waits(Cycle::Remote, "L", 6), asked: verb(Verb::State), ..fresh() },
    "errored.tfstate")]
#[case::two_fleets(
    Observation { remote: axes::held(), local: Local::Held(state("M", 1, &["a"])), asked: verb(Verb::Output), ..fresh() },
    "two different fleets")]
#[case::another_lineage(
    Observation { remote: axes::held(), marker: axes::marker("M", 4), ..fresh() }, "another deployer started anew")]
#[case::a_lost_state_given_up_by_name(
    Observation { marker: axes::marker("L", 4), asked: allowing(), ..fresh() }, "lost the state")]
fn a_run_goes_on_with_a_warning(#[case] observed: Observation, #[case] text: &str) {
    let Course::Run { work, warnings, .. } = decide(&observed) else {
        panic!("{:?}", decide(&observed))
    };
    assert_eq!(work, Work::Steady(observed.asked.verb()));
    assert!(
        warnings.iter().any(|warning| warning.to_string().contains(text)),
        "{warnings:?}"
    );
}

#[rstest]
#[case::of_another_lineage("N", 6)]
#[case::older("L", 3)]
fn an_errored_state_that_does_not_follow_is_set_aside_and_the_run_stops(
    #[case] lineage: &str,
    #[case] serial: u64,
) {
    let errored = axes::waits(Cycle::Remote, lineage, serial);
    let course = decide(&Observation {
        remote: axes::held(),
        errored,
        ..fresh()
    });
    assert!(matches!(
        course,
        Course::SetAside {
            cycle: Cycle::Remote,
            obstacle: Obstacle::ErroredConflicts { .. }
        }
    ));
}

/// Calls `check` with every observation there is and the course it takes.
fn for_all(mut check: impl FnMut(&Observation, &Course)) {
    for remote in axes::remotes() {
        for local in axes::locals() {
            for marker in axes::markers() {
                for lock in axes::locks() {
                    for errored in axes::errored() {
                        for hosting in [Hosting::OwnNode, Hosting::Elsewhere] {
                            let mut observed = Observation {
                                remote: remote.clone(),
                                local: local.clone(),
                                marker: marker.clone(),
                                lock: lock.clone(),
                                errored: errored.clone(),
                                hosting,
                                asked: Asked::default(),
                            };
                            for asked in axes::asked() {
                                observed.asked = asked;
                                check(&observed, &decide(&observed));
                            }
                        }
                    }
                }
            }
        }
    }
}

fn prepares(course: &Course, wanted: impl Fn(&Preparation) -> bool) -> bool {
    matches!(course, Course::Run { before, .. } if before.iter().any(wanted))
}

fn works(course: &Course) -> Option<Work> {
    match course {
        Course::Run { work, .. } => Some(*work),
        Course::SetAside { .. } | Course::Refuse(_) => None,
    }
}

/// One walk through the whole product, since it takes seconds: each property has its name beside it.
#[test]
fn the_whole_table_keeps_its_promises() {
    let mut rows = 0_u64;
    for_all(|observed, course| {
        rows += 1;
        let Asked { mode, verb, flags } = observed.asked;
        let changes = observed.asked.verb().changes_state();
        let promise = |kept: bool, name: &str| assert!(kept, "{name}: {observed:#?}\n{course:#?}");

        promise(
            !(mode == Mode::Bootstrap && verb.is_some())
                || matches!(course, Course::Refuse(Obstacle::BootstrapWithVerb { .. })),
            "a bootstrap with a verb is refused",
        );
        promise(
            !matches!(
                observed.remote,
                Remote::Corrupt { .. } | Remote::Denied(_) | Remote::Failing(_)
            ) || matches!(course, Course::Refuse(_)),
            "a backend that denies, fails or answers no state is never worked with",
        );
        promise(
            !(matches!(observed.remote, Remote::Unreachable(_)) && mode == Mode::Steady)
                || matches!(course, Course::Refuse(_)),
            "without its backend only a bootstrap runs",
        );
        promise(
            works(course) != Some(Work::LocalCycle)
                || (mode == Mode::Bootstrap && matches!(observed.remote, Remote::Unreachable(_))),
            "a local cycle needs a bootstrap and an unreachable backend",
        );
        promise(
            works(course) != Some(Work::LocalCycle)
                || observed.marker.is_none()
                || flags.lost_state == LostState::Allow,
            "a backend that had the state is not bootstrapped over",
        );
        promise(
            works(course) != Some(Work::Migrate) || mode == Mode::Bootstrap,
            "nothing migrates outside a bootstrap",
        );
        let salvages = prepares(course, |preparation| *preparation == Preparation::PushErrored);
        let lost = matches!(observed.remote, Remote::Absent)
            && (observed.marker.is_some()
                || (matches!(observed.local, Local::Held(_)) && mode == Mode::Steady));
        promise(
            !(lost && changes && flags.lost_state == LostState::Refuse && !salvages)
                || works(course).is_none(),
            "an apply over lost state is refused unless it is allowed",
        );
        let locked = match observed.lock {
            Lock::Other(_) => true,
            Lock::Mine(_) => flags.stale_lock == StaleLock::Refuse,
            Lock::Unasked | Lock::Free | Lock::Abandoned(_) => false,
        };
        promise(
            !(locked && observed.asked.verb().takes_lock())
                || works(course).is_none_or(|work| work == Work::LocalCycle),
            "a locked state is worked with by nobody who needs the lock",
        );
        promise(
            changes
                || matches!(course, Course::Refuse(_))
                || !prepares(course, |preparation| {
                    !matches!(preparation, Preparation::ReleaseLock(_))
                }),
            "a verb that only looks settles nothing",
        );
        promise(
            changes || !matches!(course, Course::SetAside { .. }),
            "a verb that only looks moves no errored state",
        );
        promise(
            matches!(observed.errored, Errored::None)
                || !changes
                || works(course).is_none()
                || prepares(course, |preparation| {
                    matches!(
                        preparation,
                        Preparation::PushErrored | Preparation::AdoptErrored | Preparation::ArchiveErrored(_)
                    )
                }),
            "an errored state is settled before anything is changed",
        );
        if let (Some(work), Course::Run { before, .. }) = (works(course), course) {
            let retires = before.iter().any(|preparation| {
                matches!(
                    preparation,
                    Preparation::FinishMigration | Preparation::RetireLocal
                )
            });
            promise(
                !(retires && work == Work::Migrate),
                "what is to migrate is not retired first",
            );
            promise(
                !retires || matches!(observed.remote, Remote::Held(_) | Remote::Empty(_)) || salvages,
                "a local state is retired only when the backend has one",
            );
        }
    });
    assert!(rows > 500_000, "{rows}");
}
