//! Starting machines: names and addresses, images, disks, and then all boots side by side.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::addresses::Wish;
use super::reserve::{Need, reserve};
use super::{Inner, LabError};
use crate::accel::{self, Accelerator};
use crate::agent::{self, Bytes, SetupFile};
use crate::budget::Lease;
use crate::image::{self, Image, ImageSpec};
use crate::machine::{self, Arrival, Link, Machine, Place, Plan, Running, StartFrom};
use crate::names::Name;
use crate::net::Mac;
use crate::qemu::{self, Access, Card, Disk, Launch, MachineSpec, Paths, Qemu, Start};
use crate::ssh::{KeyPair, Login};
use crate::template::{self, Maker, TEMPLATES_VARIABLE, Template};

/// Starts machines side by side; answers when all are ready, in the order of `plans`.
pub(crate) async fn start(lab: &Arc<Inner>, plans: Vec<Plan>) -> Result<Vec<Machine>, LabError> {
    let names = names(&plans)?;
    lab.book().assign(&names)?;
    let accelerator = choose_accelerator(lab).await?;
    let images = obtain_images(lab, &plans).await?;
    let needs: Vec<_> = plans.iter().map(Need::from).collect();
    let (memory, _booting) = reserve(lab, &needs, accelerator).await?;

    let mut booting = JoinSet::new();
    let planned = plans.into_iter().zip(names).zip(images).zip(memory);
    for (index, (((plan, (name, _)), image), memory)) in planned.enumerate() {
        let lab = Arc::clone(lab);
        let number = lab.next_number();
        let background = Arc::clone(&lab.background);
        let starting = Starting {
            lab,
            number,
            name,
            accelerator,
            image,
            plan,
        };
        booting.spawn(async move { (index, background.run(starting.start(memory)).await) });
    }
    let ended: BTreeMap<usize, _> = booting.join_all().await.into_iter().collect();
    let (mut started, mut errors) = (Vec::new(), Vec::new());
    for machine in ended.into_values() {
        match machine {
            Ok(machine) => started.push(machine),
            Err(error) => errors.push(error),
        }
    }
    LabError::gather(errors)?;
    let before = lab.state().machines.clone();
    lab.state().machines.extend(started.iter().cloned());
    lab.say_who_runs();
    introduce_to(before).await?;
    Ok(started)
}

/// Has the machines that were there learn the names of those that came.
pub(super) async fn introduce_to(machines: Vec<Machine>) -> Result<(), LabError> {
    let alive = machines
        .into_iter()
        .filter(|machine| machine.death().seen().is_none());
    let learning: JoinSet<_> = alive
        .map(|machine| async move { machine.learn_hosts().await.map_err(LabError::from) })
        .collect();
    LabError::gather(
        learning
            .join_all()
            .await
            .into_iter()
            .filter_map(Result::err)
            .collect(),
    )
}

/// Checks the names of machines and VLANs.
fn names(plans: &[Plan]) -> Result<Vec<(Name, Vec<Wish>)>, LabError> {
    let wish = |(vlan, address): &(String, _)| {
        Ok(Wish {
            vlan: vlan.parse()?,
            address: *address,
        })
    };
    let name = |plan: &Plan| {
        let wishes = plan.cards.iter().map(wish).collect::<Result<_, LabError>>()?;
        Ok((plan.name.parse()?, wishes))
    };
    plans.iter().map(name).collect()
}

pub(super) async fn choose_accelerator(lab: &Arc<Inner>) -> Result<Accelerator, LabError> {
    let choice = lab.background.run_blocking(accel::choose).await?;
    lab.timeline.note(
        "lab",
        format_args!("runs guests by {}: {}", choice.accelerator, choice.reason),
    );
    Ok(choice.accelerator)
}

/// An image with all that it takes to boot it.
#[derive(Clone, Debug)]
struct Bootable {
    image: Image,
    initrd: PathBuf,
}

/// The image of each plan. Making one takes minutes; no deadline counts them.
async fn obtain_images(lab: &Arc<Inner>, plans: &[Plan]) -> Result<Vec<Bootable>, LabError> {
    let specs: Vec<ImageSpec> = plans.iter().map(|plan| plan.image.clone()).collect();
    let (cache, timeline) = (lab.cache.clone(), lab.timeline.clone());
    let obtain = move || {
        let progress = |line: &str| timeline.note("lab", line);
        let obtain = |spec: &ImageSpec| {
            let image = Image::obtain(&cache, spec, &progress)?;
            let initrd = image.initrd(agent::PROGRAM)?;
            Ok(Bootable { image, initrd })
        };
        specs.iter().map(obtain).collect()
    };
    lab.background.run_blocking(obtain).await
}

/// A machine on its way.
struct Starting {
    lab: Arc<Inner>,
    number: usize,
    name: Name,
    accelerator: Accelerator,
    image: Bootable,
    plan: Plan,
}

/// A QEMU whose guest comes up.
struct Launched {
    qemu: Qemu,
    paths: Paths,
    arrival: Arrival,
}

impl Starting {
    async fn start(self, memory: Lease) -> Result<Machine, LabError> {
        let (lab, name) = (&self.lab, &self.name);
        let places = self.places();
        let management = Mac::of(name.as_str(), "management");
        let spec = MachineSpec {
            name: name.to_string(),
            memory_mib: self.plan.memory_mib,
            cpus: self.plan.cpus,
            accelerator: self.accelerator,
            kernel: self.image.image.kernel(),
            initrd: self.image.initrd.clone(),
            start: Start::Cold,
            disks: self.disks().await?,
            management,
            cards: self.cards(&places)?,
            display: self.plan.display,
            hot_slots: (0..self.plan.hot_disks).map(machine::hot_slot).collect(),
        };
        let template = self.template(&spec).await;

        let began = Instant::now();
        let Launched { qemu, paths, arrival } = self.launch(spec, template).await?;
        qemu.keep_until_gone(memory);
        let ssh_port = qemu
            .monitor()
            .ssh_port()
            .await
            .map_err(|error| LabError::Monitor {
                machine: name.to_string(),
                error,
                evidence: Box::new(qemu.evidence()),
            })?;
        let host_key = KeyPair::generate();
        let files = self.files(&host_key);
        let setup = machine::setup(name, management, &places, &self.plan.shares, &lab.book(), files);
        let setup = match arrival {
            Arrival::Booted => setup,
            Arrival::Restored => template::wake_up(setup),
        };
        let up = machine::boot(
            &qemu,
            name.as_str(),
            self.accelerator,
            &paths.agent,
            setup,
            arrival,
        )
        .await;
        let agent = up.map_err(|error| LabError::Boot(Box::new(error)))?;
        let ready_after = began.elapsed();
        lab.timeline.note(
            name.as_str(),
            format_args!("is ready after {:.2} s", ready_after.as_secs_f64()),
        );
        let login = Login::new("root", lab.key.private(), host_key.public())?;
        Ok(Machine::new(Running {
            name: name.clone(),
            accelerator: self.accelerator,
            qemu,
            agent_port: paths.agent,
            journal: paths.journal,
            monitor: paths.monitor,
            link: watch::Sender::new(Link::Up(Arc::new(agent))),
            ssh_port,
            login,
            host_key: host_key.public().to_owned(),
            management,
            places,
            shares: self.plan.shares,
            ready_after,
            timeline: lab.timeline.clone(),
            book: Arc::clone(&lab.book),
            points: Default::default(),
        }))
    }

    /// What it is restored from. None if it is to boot, and if there can be no template: what is wrong with the guest shows better when
    /// it boots itself.
    async fn template(&self, spec: &MachineSpec) -> Option<Template> {
        if self.plan.from == StartFrom::Cold
            || std::env::var_os(TEMPLATES_VARIABLE).is_some_and(|value| value == "off")
        {
            return None;
        }
        let maker = Maker {
            qemu: accel::find_qemu().ok()?,
            sockets: self.lab.run.path().join(format!("t{}", self.number)),
            guard_folder: self.guard_folder(),
            artifacts: self.lab.artifacts.folder().to_owned(),
            timeline: self.lab.timeline.clone(),
        };
        let (cache, image, spec) = (self.lab.cache.clone(), self.image.image.clone(), spec.clone());
        let (timeline, name) = (self.lab.timeline.clone(), self.name.clone());
        let obtain = move || {
            let progress = |line: &str| timeline.note(name.as_str(), line);
            let template = Template::obtain(&cache, &image, &spec, &maker, &progress);
            template
                .inspect_err(|error| {
                    timeline.note(
                        name.as_str(),
                        format_args!("boots, since it has no template: {error}"),
                    )
                })
                .ok()
        };
        self.lab.background.run_blocking(obtain).await
    }

    /// QEMU with a guest that was restored, or else with one that boots.
    async fn launch(&self, spec: MachineSpec, template: Option<Template>) -> Result<Launched, LabError> {
        let (lab, name) = (&self.lab, self.name.as_str());
        if let Some(template) = template {
            lab.timeline.note(
                name,
                format_args!("is restored from template {}", template.key().as_str()),
            );
            let (qemu, paths) = self.qemu(&template.restores(&spec)).await?;
            match template::restore(&qemu, &template, &self.socket("i")?).await {
                Ok(()) => {
                    let arrival = Arrival::Restored;
                    return Ok(Launched { qemu, paths, arrival });
                }
                Err(error) => lab
                    .timeline
                    .note(name, format_args!("boots, since it cannot be restored: {error}")),
            }
            qemu.kill().await;
            for used in [&paths.qmp, &paths.agent, &paths.monitor] {
                let _ = std::fs::remove_file(used);
            }
        }
        lab.timeline.note(name, "boots");
        let (qemu, paths) = self.qemu(&spec).await?;
        let arrival = Arrival::Booted;
        Ok(Launched { qemu, paths, arrival })
    }

    async fn qemu(&self, spec: &MachineSpec) -> Result<(Qemu, Paths), LabError> {
        let (lab, name) = (&self.lab, &self.name);
        let files = lab.artifacts.machine(name.as_str())?;
        let paths = Paths {
            qmp: self.socket("q")?,
            agent: self.socket("a")?,
            console: files.console.clone(),
            journal: files.journal.clone(),
            monitor: self.socket("m")?,
        };
        let launch = Launch {
            machine: name.to_string(),
            program: accel::find_qemu()?,
            args: qemu::args(spec, &paths),
            paths: paths.clone(),
            files: files.clone(),
            artifacts: lab.artifacts.folder().to_owned(),
            guard_folder: self.guard_folder(),
            scratch: lab.run.path().to_owned(),
            timeline: lab.timeline.clone(),
        };
        let qemu = Qemu::launch(launch).await.map_err(|error| LabError::Launch {
            machine: name.to_string(),
            error,
        })?;
        lab.recorder.add(&files, qemu.pid());
        Ok((qemu, paths))
    }

    fn guard_folder(&self) -> PathBuf {
        self.lab.cache.root().join("agent")
    }

    fn socket(&self, which: impl std::fmt::Display) -> Result<PathBuf, LabError> {
        Ok(self.lab.run.socket(&format!("m{}.{which}", self.number))?)
    }

    fn places(&self) -> Vec<Place> {
        let cards = self.lab.book().cards(&self.name);
        let place = |(vlan, address, subnet): (Name, _, _)| {
            let mac = Mac::of(self.name.as_str(), vlan.as_str());
            Place {
                vlan,
                mac,
                address,
                subnet,
            }
        };
        cards.into_iter().map(place).collect()
    }

    fn cards(&self, places: &[Place]) -> Result<Vec<Card>, LabError> {
        let card = |(index, place): (usize, &Place)| {
            let socket = self.socket(index)?;
            let plug = self
                .lab
                .on_switch(&place.vlan, |switch| switch.plug(self.name.as_str(), &socket))?;
            Ok(Card { mac: place.mac, plug })
        };
        places.iter().enumerate().map(card).collect()
    }

    /// The image, a disk for what the guest writes, and the shared folders.
    async fn disks(&self) -> Result<Vec<Disk>, LabError> {
        let root = Disk {
            serial: image::ROOT_SERIAL.to_owned(),
            path: self.image.image.root(),
            access: Access::ReadOnly,
        };
        let layer = Disk {
            serial: image::DISK_SERIAL.to_owned(),
            path: self.image.image.disk(),
            access: Access::CopyOnWrite,
        };
        let share = |index| self.lab.run.path().join(format!("m{}.share{index}", self.number));
        let shares: Vec<_> = self
            .plan
            .shares
            .iter()
            .enumerate()
            .map(|(index, shared)| (shared.clone(), share(index)))
            .collect();
        let shared = shares.iter().enumerate().map(|(index, (_, path))| Disk {
            serial: machine::share_serial(index),
            path: path.clone(),
            access: Access::ReadOnly,
        });
        let more: Vec<_> = self
            .plan
            .disks
            .iter()
            .enumerate()
            .map(|(index, disk)| {
                (
                    disk.clone(),
                    self.lab.run.path().join(format!("m{}.more{index}", self.number)),
                )
            })
            .collect();
        let added = more.iter().map(|(disk, path)| Disk {
            serial: disk.name.clone(),
            path: path.clone(),
            access: Access::Write,
        });
        let disks = [root, layer].into_iter().chain(shared).chain(added).collect();

        let make = move || {
            more.iter().try_for_each(|(disk, path)| disk.make(path))?;
            shares
                .iter()
                .try_for_each(|(share, path)| machine::pack_share(&share.host, path))?;
            Ok::<_, LabError>(())
        };
        self.lab.background.run_blocking(make).await?;
        Ok(disks)
    }

    /// What the test wants to be there, and what SSH needs.
    fn files(&self, host_key: &KeyPair) -> Vec<SetupFile> {
        let file = |path: &str, content: String, mode| SetupFile {
            path: path.to_owned(),
            content: Bytes(content.into_bytes()),
            mode,
            uid: 0,
            gid: 0,
        };
        let keys =
            std::iter::once(self.lab.key.public()).chain(self.plan.authorized.iter().map(String::as_str));
        let authorized = keys.map(|key| format!("{}\n", key.trim_end())).collect();
        let ours = [
            file(
                "/etc/ssh/ssh_host_ed25519_key",
                host_key.private().to_owned(),
                0o600,
            ),
            file(
                "/etc/ssh/ssh_host_ed25519_key.pub",
                format!("{}\n", host_key.public()),
                0o644,
            ),
            file("/root/.ssh/authorized_keys", authorized, 0o600),
        ];
        ours.into_iter().chain(self.plan.files.iter().cloned()).collect()
    }
}

impl Inner {
    pub(super) fn next_number(&self) -> usize {
        let mut state = self.state();
        state.numbered += 1;
        state.numbered - 1
    }
}
