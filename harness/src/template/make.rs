//! Making a template: a boot, a wait until all is up, and the save.

use std::path::{Path, PathBuf};
use std::time::Duration;

use qapi::qmp;
use tokio::net::UnixListener;

use super::{DISK, MEMORY, STATE, Template, TemplateError, blank, paths, size_of, template_of};
use crate::agent::{Agent, Bytes, Interface, Setup, SetupFile};
use crate::artifacts::MachineArtifacts;
use crate::exec::{Command, Execute};
use crate::image::Image;
use crate::machine::{self, Arrival, MANAGEMENT_ADDRESS};
use crate::net::Mac;
use crate::qemu::{Access, Launch, MachineSpec, Memory, Qemu};
use crate::qmp::Qmp;
use crate::ssh::KeyPair;
use crate::timeline::Timeline;
use crate::wait::Deadline;

/// What a template is made with.
#[derive(Clone, Debug)]
pub(crate) struct Maker {
    /// QEMU, by its absolute path.
    pub(crate) qemu: PathBuf,
    /// Where its sockets are.
    pub(crate) sockets: PathBuf,
    /// Where the program that guards it is kept.
    pub(crate) guard_folder: PathBuf,
    /// Where a failure says that the evidence is.
    pub(crate) artifacts: PathBuf,
    /// The timeline of the test that needs it.
    pub(crate) timeline: Timeline,
}

/// Starting all services of a guest takes 3 to 15 s under emulation. A unit that never comes up is saved as it is then.
const SETTLE_PATIENCE: Duration = Duration::from_secs(120);

/// Saving takes a tenth of a second; with the memory in the state some seconds.
const SAVE_PATIENCE: Duration = Duration::from_secs(120);

/// Between two looks at what the guest or QEMU is doing.
const PAUSE: Duration = Duration::from_millis(100);

impl Maker {
    /// Fills `folder` with the template for machines like `spec`.
    pub(super) async fn make(
        &self,
        image: &Image,
        spec: &MachineSpec,
        folder: &Path,
    ) -> Result<(), TemplateError> {
        std::fs::create_dir_all(&self.sockets).map_err(io_error(&self.sockets))?;
        for (index, disk) in spec.disks.iter().enumerate() {
            if disk.access == Access::CopyOnWrite {
                let path = folder.join(DISK);
                image.new_disk(&path).map_err(|error| TemplateError::Save {
                    reason: error.to_string(),
                })?;
            } else {
                let path = blank(folder, index);
                std::fs::File::create(&path)
                    .and_then(|file| file.set_len(size_of(disk)))
                    .map_err(io_error(&path))?;
            }
        }
        let memory = folder.join(MEMORY);
        let saved = match self.launch(spec, folder, Memory::File(memory.clone())).await {
            Ok(qemu) => self.boot_and_save(qemu, spec, folder).await,
            Err(error) => {
                // An older or a newer QEMU may not have what shared memory takes.
                self.timeline
                    .note("template", format_args!("its memory cannot be shared: {error}"));
                let _ = std::fs::remove_file(&memory);
                let qemu = self.launch(spec, folder, Memory::InState).await?;
                self.boot_and_save(qemu, spec, folder).await
            }
        };
        for index in 0..spec.disks.len() {
            let _ = std::fs::remove_file(blank(folder, index));
        }
        saved
    }

    async fn launch(&self, spec: &MachineSpec, folder: &Path, memory: Memory) -> Result<Qemu, TemplateError> {
        let shared = matches!(memory, Memory::File(_));
        let saved = template_of(spec, folder, &self.sockets, memory);
        let paths = paths(folder, &self.sockets);
        let _ = std::fs::remove_file(&paths.qmp);
        let launch = Launch {
            machine: "template".to_owned(),
            program: self.qemu.clone(),
            args: crate::qemu::args(&saved, &paths),
            files: MachineArtifacts {
                command: folder.join("command"),
                console: paths.console.clone(),
                journal: paths.journal.clone(),
                growth: folder.join("growth"),
                state: folder.join("guest"),
                stderr: folder.join("stderr"),
                qmp: folder.join("qmp"),
            },
            paths,
            artifacts: self.artifacts.clone(),
            guard_folder: self.guard_folder.clone(),
            scratch: folder.to_owned(),
            timeline: self.timeline.clone(),
        };
        let qemu = Qemu::launch(launch)
            .await
            .map_err(|error| TemplateError::Launch(Box::new(error)))?;
        if shared {
            leave_memory_where_it_is(qemu.monitor()).await?;
        }
        Ok(qemu)
    }

    async fn boot_and_save(
        &self,
        qemu: Qemu,
        spec: &MachineSpec,
        folder: &Path,
    ) -> Result<(), TemplateError> {
        let port = paths(folder, &self.sockets).agent;
        let agent = machine::boot(
            &qemu,
            "template",
            spec.accelerator,
            &port,
            setup(),
            Arrival::Booted,
        )
        .await
        .map_err(|error| TemplateError::Boot(Box::new(error)))?;
        self.settle(&qemu, &agent).await;
        agent.close();
        drop(agent);
        qemu.monitor().execute(qmp::stop {}).await?;
        let state = folder.join(STATE);
        let saving = self.save(qemu.monitor(), &state);
        let saved = qemu
            .death()
            .race(Deadline::after(SAVE_PATIENCE).limit(saving))
            .await;
        match saved {
            Ok(Some(saved)) => saved?,
            Ok(None) => return Err(not_saved("it took too long")),
            Err(death) => return Err(not_saved(&death.to_string())),
        }
        qemu.quit().await.map_err(|death| not_saved(&death.to_string()))
    }

    /// Waits until all that starts at boot has started, and has what every command takes in the guest's memory.
    async fn settle(&self, qemu: &Qemu, agent: &Agent) {
        let settled = async {
            loop {
                let asked = agent
                    .run(Command::new("systemctl").args(["is-system-running", "--wait"]))
                    .await;
                let state = asked.map_or_else(|error| error.to_string(), |output| output.stdout_text());
                match state.as_str() {
                    "running" => return None,
                    "degraded" | "maintenance" => return Some(state),
                    _ => tokio::time::sleep(PAUSE).await,
                }
            }
        };
        let deadline = Deadline::after(SETTLE_PATIENCE);
        let said = match qemu.death().race(deadline.limit(settled)).await {
            Ok(Some(None)) => None,
            Ok(Some(state)) => state,
            Ok(None) => Some("still starting".to_owned()),
            Err(death) => Some(death.to_string()),
        };
        if let Some(said) = said {
            self.timeline
                .note("template", format_args!("is saved though it is {said}"));
        }
        let warm = Command::shell(
            "udevadm settle; cat /proc/sys/kernel/random/boot_id; hostname; ip -brief address; sync; true",
        );
        let _ = qemu
            .death()
            .race(deadline.limit(agent.run(warm).into_future()))
            .await;
    }

    async fn save(&self, monitor: &Qmp, state: &Path) -> Result<(), TemplateError> {
        let socket = self.sockets.join("s");
        let _ = std::fs::remove_file(&socket);
        let listener = UnixListener::bind(&socket).map_err(io_error(&socket))?;
        let migrate = qmp::migrate {
            channels: None,
            detach: None,
            resume: None,
            uri: Some(format!("unix:{}", socket.display())),
        };
        monitor.execute(migrate).await?;
        let receive = async {
            let (mut stream, _) = listener.accept().await?;
            let mut file = tokio::fs::File::create(state).await?;
            tokio::io::copy(&mut stream, &mut file).await?;
            file.sync_all().await
        };
        receive.await.map_err(io_error(state))?;
        loop {
            let info = monitor.execute(qmp::query_migrate {}).await?;
            match info.status {
                Some(qmp::MigrationStatus::completed) => return Ok(()),
                Some(qmp::MigrationStatus::failed | qmp::MigrationStatus::cancelled) => {
                    return Err(not_saved(&info.error_desc.unwrap_or_default()));
                }
                _ => tokio::time::sleep(PAUSE / 10).await,
            }
        }
    }
}

impl Template {
    /// Tells QEMU that the memory is in a file of its own, if it is.
    pub(super) async fn prepare(&self, monitor: &Qmp) -> Result<(), crate::qmp::QmpError> {
        match self.memory() {
            Memory::File(_) => leave_memory_where_it_is(monitor).await,
            Memory::InState => Ok(()),
        }
    }
}

/// The capability is marked unstable (`x-`), and has been there from QEMU 4 to 10.
async fn leave_memory_where_it_is(monitor: &Qmp) -> Result<(), crate::qmp::QmpError> {
    let capabilities = vec![qmp::MigrationCapabilityStatus {
        capability: qmp::MigrationCapability::x_ignore_shared,
        state: true,
    }];
    monitor
        .execute(qmp::migrate_set_capabilities { capabilities })
        .await
        .map(drop)
}

/// The machine that is saved: no name that is anybody's, a host key that nobody trusts, and only the card for the host.
fn setup() -> Setup {
    let key = KeyPair::generate();
    let file = |path: &str, content: String, mode| SetupFile {
        path: path.to_owned(),
        content: Bytes(content.into_bytes()),
        mode,
        uid: 0,
        gid: 0,
    };
    let (address, prefix) = MANAGEMENT_ADDRESS;
    let Mac(mac) = super::card_mac(0);
    Setup {
        hostname: Some("template".to_owned()),
        interfaces: vec![Interface {
            mac,
            new_mac: None,
            addresses: vec![(address.into(), prefix)],
            gateway: None,
            up: true,
        }],
        files: vec![
            file("/etc/ssh/ssh_host_ed25519_key", key.private().to_owned(), 0o600),
            file(
                "/etc/ssh/ssh_host_ed25519_key.pub",
                format!("{}\n", key.public()),
                0o644,
            ),
        ],
        entropy: Bytes(rand::random::<[u8; 32]>().to_vec()),
        ..Setup::default()
    }
}

fn not_saved(reason: &str) -> TemplateError {
    TemplateError::Save {
        reason: reason.to_owned(),
    }
}

fn io_error(path: &Path) -> impl FnOnce(std::io::Error) -> TemplateError {
    let path = path.to_owned();
    move |source| TemplateError::Io { path, source }
}
