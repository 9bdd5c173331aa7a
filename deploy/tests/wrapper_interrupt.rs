//! Ctrl-C in mid-apply. A binary of its own: a signal belongs to a whole process.

mod fake_backend;
mod wrapper_support;

use nix::sys::signal::{Signal, raise};
use provisor_deploy::verdict::Verdict;
use provisor_deploy::wrapper::Ending;

use fake_backend::FakeBackend;
use wrapper_support::{Fleet, Job, verdicts};

#[test]
fn an_interrupt_is_forwarded_waited_for_and_leaves_no_lock() {
    let backend = FakeBackend::start();
    let mut fleet = Fleet::at(&backend.url());
    let fifo = fleet.home.path().join("deploying");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    // It tells that it began, then waits for what never comes.
    let before = format!("echo began > '{0}'; read never < '{0}'", fifo.display());
    fleet.job(
        "forge",
        Job {
            before,
            verdict: Verdict::Deployed,
            code: 0,
        },
    );
    let interrupter = std::thread::spawn(move || {
        std::fs::read(&fifo).unwrap();
        raise(Signal::SIGINT).unwrap();
    });
    let report = fleet.apply().unwrap();
    interrupter.join().unwrap();
    assert_eq!(
        (report.ending.clone(), report.exit_code()),
        (Ending::Interrupted, 130)
    );
    let told = verdicts(&report);
    assert!(matches!(told[1], ("forge", Verdict::Unknown { .. })), "{told:?}");
    assert_eq!(
        backend.held(|held| held.lock.clone()),
        None,
        "OpenTofu had the time to give it back"
    );

    fleet.job(
        "forge",
        Job {
            before: ":".into(),
            verdict: Verdict::Deployed,
            code: 0,
        },
    );
    let again = fleet.apply().unwrap();
    assert_eq!(
        (verdicts(&again)[1], again.exit_code()),
        (("forge", &Verdict::Deployed), 0)
    );
}
