//! QEMU is a shell script here, and its monitor is played by the test: no guest is needed to see how it fails.

use super::*;
use crate::artifacts::Artifacts;
use crate::qmp::fake::{FakeMonitor, GREETING, OK};

/// A `fake_qemu`: what its script does instead of QEMU.
struct FakeQemu {
    folder: tempfile::TempDir,
    launch: Launch,
}

impl FakeQemu {
    fn doing(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let fake = folder.path().join("fake_qemu");
        let console = folder.path().join("evidence/app/console");
        std::fs::write(&fake, format!("console='{}'\n{script}\n", console.display())).unwrap();
        let artifacts = Artifacts::prepare(folder.path().join("evidence")).unwrap();
        let files = artifacts.machine("app").unwrap();
        let paths = Paths {
            qmp: folder.path().join("q"),
            agent: folder.path().join("a"),
            console: files.console.clone(),
            journal: files.journal.clone(),
            monitor: folder.path().join("m"),
        };
        let launch = Launch {
            machine: "app".to_owned(),
            program: "/bin/sh".into(),
            args: vec![fake.into(), "-display".into(), "none".into()],
            paths,
            files,
            artifacts: artifacts.folder().to_owned(),
            guard_folder: folder.path().join("guard"),
            scratch: folder.path().to_owned(),
            timeline: Timeline::create(&artifacts.timeline()).unwrap(),
        };
        Self { folder, launch }
    }

    /// Starts it while the test plays its monitor.
    async fn launched<F: Future<Output = T>, T>(
        &self,
        play: impl FnOnce(FakeMonitor) -> F,
    ) -> (Result<Qemu, LaunchError>, T) {
        tokio::join!(Qemu::launch(self.launch.clone()), async {
            play(self.monitor().await).await
        })
    }

    /// Calls the harness, as QEMU does once it has started.
    async fn monitor(&self) -> FakeMonitor {
        loop {
            match UnixStream::connect(&self.launch.paths.qmp).await {
                Ok(stream) => return FakeMonitor::new(stream),
                Err(_) => tokio::task::yield_now().await,
            }
        }
    }

    /// A QEMU that runs, with its monitor.
    async fn running(&self) -> (Qemu, FakeMonitor) {
        let (qemu, monitor) = self
            .launched(|mut monitor| async {
                monitor.greet().await;
                monitor
            })
            .await;
        (qemu.unwrap(), monitor)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

fn runs(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[tokio::test]
async fn a_qemu_that_is_not_installed_is_named_with_the_package() {
    let mut fake = FakeQemu::doing("");
    fake.launch.program = fake.path("no-such-qemu");
    let message = Qemu::launch(fake.launch.clone()).await.unwrap_err().to_string();
    assert!(
        message.contains("no-such-qemu") && message.contains("in the package qemu-system-x86"),
        "{message}"
    );
}

#[tokio::test]
async fn a_qemu_that_dies_at_the_start_is_shown_with_what_it_said() {
    let fake = FakeQemu::doing("echo \"Parameter 'reconnect' is unexpected\" >&2; exit 3");
    let message = Qemu::launch(fake.launch.clone()).await.unwrap_err().to_string();
    assert!(
        message.starts_with("at its start, QEMU ended with exit code 3: "),
        "{message}"
    );
    assert!(
        message.contains("\n  | Parameter 'reconnect' is unexpected\n"),
        "{message}"
    );
    assert!(
        message.ends_with(&format!("artifacts: {}", fake.path("evidence").display())),
        "{message}"
    );
}

#[tokio::test]
async fn a_qemu_that_dies_after_it_called_is_the_same() {
    let fake = FakeQemu::doing("while [ ! -e \"$0.go\" ]; do sleep 0.01; done; echo late >&2; exit 4");
    let go = fake.path("fake_qemu.go");
    let (launched, ()) = fake
        .launched(|mut monitor| async move {
            monitor.say_raw(&GREETING[..30]).await;
            std::fs::write(go, "").unwrap();
            drop(monitor);
        })
        .await;
    let message = launched.unwrap_err().to_string();
    assert!(
        message.starts_with("at its start, QEMU ended with exit code 4: "),
        "{message}"
    );
    assert!(message.contains("  | late"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_mute_monitor_is_given_up_and_its_qemu_killed() {
    let fake = FakeQemu::doing("echo $$ > \"$0.pid\"; echo still here >&2; exec sleep 1000");
    let (pid, said) = (fake.path("fake_qemu.pid"), fake.launch.files.stderr.clone());
    let (launched, _monitor) = fake
        .launched(|monitor| async move {
            // Time stands still until the script has spoken.
            while !said.metadata().is_ok_and(|file| file.len() > 0) {
                tokio::task::yield_now().await;
            }
            monitor
        })
        .await;
    let message = launched.unwrap_err().to_string();
    assert!(message.contains("its monitor said nothing for 60 s"), "{message}");
    assert!(message.contains("  | still here"), "{message}");
    let pid: u32 = std::fs::read_to_string(pid).unwrap().trim().parse().unwrap();
    while runs(pid) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_qemu_that_ends_by_itself_is_a_death_with_its_status() {
    let fake = FakeQemu::doing("while [ ! -e \"$0.go\" ]; do sleep 0.01; done; exit 7");
    let (qemu, monitor) = fake.running().await;
    let waiting = qemu.death().race(std::future::pending::<()>());
    std::fs::write(fake.path("fake_qemu.go"), "").unwrap();
    drop(monitor);
    assert_eq!(
        waiting.await,
        Err(Death::Exited {
            how: guard::Death::Exited(7)
        })
    );
}

#[tokio::test]
async fn what_the_monitor_said_last_tells_more_than_the_exit() {
    let fake = FakeQemu::doing("while [ ! -e \"$0.go\" ]; do sleep 0.01; done; exit 0");
    let (qemu, mut monitor) = fake.running().await;
    std::fs::write(fake.path("fake_qemu.go"), "").unwrap();
    qemu.process.ended().await;
    monitor
        .say(r#"{"event":"GUEST_PANICKED","data":{"action":"poweroff"}}"#)
        .await;
    drop(monitor);
    assert_eq!(qemu.death().died().await, Death::Panicked);
}

#[tokio::test]
async fn a_panic_on_the_console_is_a_death_even_if_qemu_says_nothing() {
    let fake = FakeQemu::doing(
        "printf 'booting\\r\\n[ 1.2] Kernel panic - not syncing: sysrq triggered crash\\r\\n' > \"$console\"; exec sleep 1000",
    );
    let (qemu, monitor) = fake.running().await;
    let waiting = qemu.death().died();
    let line = "Kernel panic - not syncing: sysrq triggered crash".to_owned();
    assert_eq!(waiting.await, Death::PanicOnConsole { line });
    assert_eq!(
        qemu.evidence().console,
        "booting\n[ 1.2] Kernel panic - not syncing: sysrq triggered crash"
    );
    qemu.process.ended().await;
    drop(monitor);
}

#[tokio::test]
async fn a_dropped_qemu_is_killed() {
    let fake = FakeQemu::doing("exec sleep 1000");
    let (qemu, monitor) = fake.running().await;
    let process = qemu.process.clone();
    drop(qemu);
    process.ended().await;
    assert!(!runs(process.pid()));
    drop(monitor);
}

#[tokio::test]
async fn a_qemu_asked_to_quit_ends_in_order() {
    let fake = FakeQemu::doing("while [ ! -e \"$0.go\" ]; do sleep 0.01; done");
    let (qemu, mut monitor) = fake.running().await;
    let (ended, ()) = tokio::join!(qemu.quit(), async {
        assert_eq!(monitor.heard().await, "quit");
        monitor.say(OK).await;
        std::fs::write(fake.path("fake_qemu.go"), "").unwrap();
        drop(monitor);
    });
    assert_eq!(ended, Ok(()));
    assert_eq!(qemu.death().seen(), Some(Death::Stopped));
}

#[tokio::test]
async fn the_command_line_and_the_monitor_s_talk_are_kept() {
    let fake = FakeQemu::doing("exec sleep 1000");
    let (qemu, monitor) = fake.running().await;
    qemu.kill().await;
    drop(monitor);
    let command = std::fs::read_to_string(&fake.launch.files.command).unwrap();
    assert_eq!(command.lines().skip(2).collect::<Vec<_>>(), ["-display", "none"]);
    let talk = std::fs::read_to_string(&fake.launch.files.qmp).unwrap();
    assert!(talk.contains("-> qmp_capabilities {}"), "{talk}");
    assert!(talk.contains("<- {\"return\":{}}"), "{talk}");
}
