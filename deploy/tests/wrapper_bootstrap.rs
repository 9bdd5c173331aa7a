//! A fleet brings up its own state backend: OpenTofu and the backend are real, the transport is not.

#![allow(clippy::unwrap_used, reason = "test code outside of test functions")]

mod wrapper_support;

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use provisor_backend::store::KeepVersions;
use provisor_backend::{BodyLimit, Config, Handle, Password, Server};
use provisor_deploy::address::StateAddress;
use provisor_deploy::decide::Work;
use provisor_deploy::marker::Cause;
use provisor_deploy::obstacle::Obstacle;
use provisor_deploy::progress::Phase;
use provisor_deploy::state::State;
use provisor_deploy::store::{Client, Patience, Read};
use provisor_deploy::verdict::{Step, Verdict};
use provisor_deploy::workdir::WorkDir;
use provisor_deploy::wrapper::{Asked, Error, Mode, Request, Secret, StatePlace, Verb};

use wrapper_support::{CANARY, Fleet, Job, Told, verdicts};

/// A fleet on whose node `backend` a real state backend starts as soon as the node is deployed.
struct Scene {
    fleet: Fleet,
    address: SocketAddr,
    folder: tempfile::TempDir,
    runtime: tokio::runtime::Runtime,
    /// Keeps the port for the backend: bound, and nobody listens.
    _port: tokio::net::TcpSocket,
}

impl Scene {
    fn new() -> Scene {
        let port = tokio::net::TcpSocket::new_v4().unwrap();
        port.set_reuseaddr(true).unwrap();
        port.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = port.local_addr().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let line = provisor_backend::users::hash_line("alice", &Password::new(CANARY)).unwrap();
        let users = folder.path().join("users");
        std::fs::write(&users, format!("{line}\n")).unwrap();
        std::fs::set_permissions(&users, std::fs::Permissions::from_mode(0o600)).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        Scene {
            fleet: Fleet::with_own_backend(address.port()),
            address,
            folder,
            runtime,
            _port: port,
        }
    }

    fn serve(&self) -> Handle {
        serve(&self.runtime.handle().clone(), self.address, self.folder.path())
    }

    /// Lets the transport of the node `backend` start the backend.
    fn serve_when_deployed(&mut self) {
        let fifo = self.folder.path().join("start");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let before = format!("echo start > '{}'", fifo.display());
        self.fleet.job(
            "backend",
            Job {
                before,
                verdict: Verdict::Deployed,
                code: 0,
            },
        );
        let (runtime, address, folder) = (
            self.runtime.handle().clone(),
            self.address,
            self.folder.path().to_owned(),
        );
        std::thread::spawn(move || {
            std::fs::read(fifo).unwrap();
            let handle = serve(&runtime, address, &folder);
            // It serves until the test ends.
            std::mem::forget(handle);
        });
    }

    fn state(&self) -> Option<State> {
        let address = StateAddress::derived("127.0.0.1", self.address.port(), "fleet").unwrap();
        match Client::new(address, &self.fleet.credentials, Patience::of_a_poll())
            .unwrap()
            .read()
            .unwrap()
        {
            Read::Absent => None,
            Read::Held(state) => Some(state),
            Read::Corrupt(error) => panic!("{error}"),
        }
    }

    fn open_workdir(&self) -> WorkDir {
        let address = StateAddress::derived("127.0.0.1", self.address.port(), "fleet").unwrap();
        WorkDir::open(&self.fleet.state_home(), &address, Timestamp::now()).unwrap()
    }

    /// A bootstrap that ends before the backend serves: its local cycle is done.
    fn stop_after_local_cycle(&self) -> State {
        let asked = Asked {
            mode: Mode::Bootstrap,
            ..Asked::default()
        };
        let hasty = Request {
            asked,
            backend_wait: Duration::ZERO,
            ..Request::default()
        };
        let error = self.fleet.run(&hasty).unwrap_err();
        assert!(error.to_string().contains("does not serve after 0 s"), "{error}");
        State::parse(std::fs::read(self.fleet.workdir().join("terraform.tfstate")).unwrap()).unwrap()
    }
}

fn serve(runtime: &tokio::runtime::Handle, listen: SocketAddr, folder: &Path) -> Handle {
    let config = Config {
        listen,
        database: folder.join("states.sqlite"),
        users: folder.join("users"),
        body_limit: BodyLimit::default(),
        keep_versions: KeepVersions::default(),
    };
    runtime.block_on(Server::bind(config)).unwrap().1
}

fn request(mode: Mode, verb: Option<Verb>) -> Request {
    Request {
        asked: Asked {
            mode,
            verb,
            ..Asked::default()
        },
        ..Request::default()
    }
}

const BOTH_DEPLOYED: [(&str, &Verdict); 2] = [("backend", &Verdict::Deployed), ("forge", &Verdict::Deployed)];

#[test]
fn a_fleet_bootstraps_itself_and_its_second_run_changes_nothing() {
    let mut scene = Scene::new();
    scene.serve_when_deployed();
    let told = Told::default();
    let report = scene
        .fleet
        .run_and_tell(&request(Mode::Bootstrap, None), &told)
        .unwrap();
    assert_eq!(
        told.phases(),
        [
            Phase::Observe,
            Phase::LocalCycle,
            Phase::WaitForBackend,
            Phase::Migrate,
            Phase::SteadyCycle
        ]
    );
    let of_backend = told.of_node("backend");
    assert_eq!(of_backend, ["deploying", "connecting", "Deployed", "Unchanged"]);
    assert_eq!(
        (report.work, verdicts(&report)),
        (Work::LocalCycle, BOTH_DEPLOYED.to_vec())
    );
    assert_eq!(report.exit_code(), 0);

    let state = scene.state().unwrap();
    let StatePlace::Backend { lineage, serial, .. } = report.state else {
        panic!("{:?}", report.state)
    };
    assert_eq!(
        (lineage, serial),
        (state.view().lineage.clone(), state.view().serial)
    );
    let marker = scene.open_workdir().read_marker().unwrap().unwrap();
    assert_eq!(
        (marker.lineage, marker.cause),
        (state.view().lineage.clone(), Cause::Migrated)
    );
    assert!(!scene.fleet.workdir().join("terraform.tfstate").exists());

    for mode in [Mode::Steady, Mode::Bootstrap] {
        let told = Told::default();
        let again = scene.fleet.run_and_tell(&request(mode, None), &told).unwrap();
        assert_eq!(told.phases(), [Phase::Observe, Phase::SteadyCycle], "{mode:?}");
        assert_eq!(
            verdicts(&again),
            [("backend", &Verdict::Unchanged), ("forge", &Verdict::Unchanged)]
        );
        assert_eq!(again.exit_code(), 0);
    }
    assert_eq!(scene.fleet.asked().len(), 2);
    let plan = scene.fleet.plan().unwrap();
    assert_eq!(
        (plan.exit_code(), plan.changes.map(|changes| changes.any)),
        (0, Some(false))
    );
}

#[test]
fn a_bootstrap_that_stops_before_the_wait_resumes_with_the_migration_and_keeps_the_lineage() {
    let scene = Scene::new();
    let local = scene.stop_after_local_cycle();
    assert!(matches!(
        scene.fleet.apply(),
        Err(Error::Refused(Obstacle::Unreachable { .. }))
    ));
    let _handle = scene.serve();
    assert!(matches!(
        scene.fleet.apply(),
        Err(Error::Refused(Obstacle::LostWithLocal { .. }))
    ));
    let report = scene.fleet.bootstrap().unwrap();
    assert_eq!((report.work, report.exit_code()), (Work::Migrate, 0));
    assert_eq!(scene.state().unwrap().view().lineage, local.view().lineage);
    assert_eq!(scene.fleet.asked().len(), 2, "nothing is deployed a second time");
}

#[test]
fn a_bootstrap_that_stops_in_its_local_cycle_goes_on_where_it_was() {
    let mut scene = Scene::new();
    let verdict = Verdict::Failed {
        step: Step::Connect,
        code: None,
        message: "no route".into(),
    };
    scene.fleet.job(
        "forge",
        Job {
            before: ":".into(),
            verdict: verdict.clone(),
            code: 1,
        },
    );
    let report = scene.fleet.bootstrap().unwrap();
    assert_eq!(
        verdicts(&report),
        [("backend", &Verdict::Deployed), ("forge", &verdict)]
    );
    assert!(matches!(report.state, StatePlace::WorkingDirectory { .. }));
    assert_eq!(report.exit_code(), 1);

    scene.fleet.job(
        "forge",
        Job {
            before: ":".into(),
            verdict: Verdict::Deployed,
            code: 0,
        },
    );
    let _handle = scene.serve();
    let report = scene.fleet.bootstrap().unwrap();
    assert_eq!(
        verdicts(&report),
        [("backend", &Verdict::Unchanged), ("forge", &Verdict::Deployed)]
    );
    assert!(matches!(report.state, StatePlace::Backend { .. }));
}

#[test]
fn a_bootstrap_that_stops_before_its_marker_is_finished_by_the_next_run() {
    let scene = Scene::new();
    scene.stop_after_local_cycle();
    let kept = std::fs::read(scene.fleet.workdir().join("terraform.tfstate")).unwrap();
    let _handle = scene.serve();
    scene.fleet.bootstrap().unwrap();
    // As it is on disk when the run dies after its POST.
    std::fs::remove_file(scene.fleet.workdir().join("marker.json")).unwrap();
    std::fs::write(scene.fleet.workdir().join("terraform.tfstate"), &kept).unwrap();
    assert_eq!(scene.fleet.apply().unwrap().exit_code(), 0);
    assert!(scene.fleet.workdir().join("marker.json").exists());
    assert!(!scene.fleet.workdir().join("terraform.tfstate").exists());
    // As it is when the run dies after its marker.
    std::fs::write(scene.fleet.workdir().join("terraform.tfstate"), &kept).unwrap();
    assert_eq!(scene.fleet.apply().unwrap().exit_code(), 0);
    assert!(!scene.fleet.workdir().join("terraform.tfstate").exists());
    assert_eq!(scene.fleet.asked().len(), 2);
}

#[test]
fn a_wrong_password_is_told_at_once_and_the_right_one_resumes() {
    let mut scene = Scene::new();
    scene.serve_when_deployed();
    scene.fleet.credentials.password = Some(Secret::new("wrong"));
    let error = scene.fleet.bootstrap().unwrap_err();
    assert!(
        error
            .to_string()
            .contains("set TF_HTTP_USERNAME and TF_HTTP_PASSWORD"),
        "{error}"
    );
    assert!(scene.fleet.workdir().join("terraform.tfstate").exists());
    let error = scene.fleet.apply().unwrap_err();
    assert!(
        matches!(error, Error::Refused(Obstacle::Backend { .. })),
        "{error}"
    );

    scene.fleet.credentials.password = Some(Secret::new(CANARY));
    assert_eq!(scene.fleet.bootstrap().unwrap().exit_code(), 0);
}

#[test]
fn an_unreachable_backend_outside_a_bootstrap_fails_and_deploys_nothing() {
    let scene = Scene::new();
    let error = scene.fleet.apply().unwrap_err();
    assert!(error.to_string().contains("run with --bootstrap"), "{error}");
    assert_eq!(error.exit_code(), 3);
    assert_eq!(scene.fleet.asked(), [""; 0]);
}

#[test]
fn a_second_bootstrap_while_the_backend_is_gone_is_refused() {
    let scene = Scene::new();
    let handle = scene.serve();
    scene.fleet.bootstrap().unwrap();
    scene.runtime.block_on(handle.stop()).unwrap();
    let error = scene.fleet.bootstrap().unwrap_err();
    assert!(
        matches!(error, Error::Refused(Obstacle::SecondState { .. })),
        "{error}"
    );
    assert_eq!(scene.fleet.asked().len(), 2);
}

#[test]
fn a_bootstrap_with_a_verb_is_refused_and_leaves_nothing_behind() {
    let scene = Scene::new();
    for verb in [Verb::Apply, Verb::Plan] {
        let error = scene
            .fleet
            .run(&request(Mode::Bootstrap, Some(verb)))
            .unwrap_err();
        assert!(
            matches!(error, Error::Refused(Obstacle::BootstrapWithVerb { .. })),
            "{error}"
        );
        assert_eq!(error.exit_code(), 3);
    }
    assert!(!scene.fleet.state_home().exists());
}

#[test]
fn a_backend_that_restarts_in_mid_apply_keeps_its_lock_and_the_apply() {
    let mut scene = Scene::new();
    let handle = scene.serve();
    scene.fleet.apply().unwrap();
    // The node's new system restarts the backend while OpenTofu holds the lock.
    let [down, up] = ["down", "up"].map(|name| scene.folder.path().join(name));
    for fifo in [&down, &up] {
        nix::unistd::mkfifo(fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    }
    let before = format!("echo > '{}'; echo > '{}'", down.display(), up.display());
    scene.fleet.job(
        "backend",
        Job {
            before,
            verdict: Verdict::Deployed,
            code: 0,
        },
    );
    scene.fleet.entry("backend").system = "/nix/store/1-backend".into();
    let (runtime, address, folder) = (
        scene.runtime.handle().clone(),
        scene.address,
        scene.folder.path().to_owned(),
    );
    let restart = std::thread::spawn(move || {
        std::fs::read(down).unwrap();
        runtime.block_on(handle.stop()).unwrap();
        let handle = serve(&runtime, address, &folder);
        std::fs::read(up).unwrap();
        handle
    });
    let report = scene.fleet.apply().unwrap();
    let _handle = restart.join().unwrap();
    assert_eq!(
        verdicts(&report),
        [("backend", &Verdict::Deployed), ("forge", &Verdict::Unchanged)]
    );
    assert_eq!(report.exit_code(), 0);
    assert_eq!(scene.fleet.plan().unwrap().exit_code(), 0);
}
