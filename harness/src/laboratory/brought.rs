//! From a brought guest that was described to one that answers.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::watch;

use super::addresses::Wish;
use super::reserve::{Need, reserve};
use super::start::{choose_accelerator, introduce_to};
use super::{Inner, LabError};
use crate::accel;
use crate::budget::Lease;
use crate::machine::{self, BroughtPlan, Link, Machine, Place, Running};
use crate::names::Name;
use crate::net::Mac;
use crate::qemu::{self, BroughtSpec, Card, Launch, Paths, Qemu};

/// Starts a brought machine; answers when it has run a command.
pub(crate) async fn start(lab: &Arc<Inner>, plan: BroughtPlan) -> Result<Machine, LabError> {
    let name: Name = plan.name.parse()?;
    let wish = |(vlan, address): &(String, _)| {
        Ok(Wish {
            vlan: vlan.parse()?,
            address: *address,
        })
    };
    let wishes = plan.cards.iter().map(wish).collect::<Result<_, LabError>>()?;
    lab.book().assign(&[(name.clone(), wishes)])?;
    let accelerator = choose_accelerator(lab).await?;
    let (memory, _booting) = reserve(lab, &[Need::from(&plan)], accelerator).await?;

    let starting = Starting {
        lab: Arc::clone(lab),
        number: lab.next_number(),
        name,
        accelerator,
        plan,
    };
    let machine = lab.background.run(starting.boot(memory)).await?;
    let before = lab.state().machines.clone();
    lab.state().machines.push(machine.clone());
    introduce_to(before).await?;
    Ok(machine)
}

struct Starting {
    lab: Arc<Inner>,
    number: usize,
    name: Name,
    accelerator: accel::Accelerator,
    plan: BroughtPlan,
}

impl Starting {
    async fn boot(self, memory: Vec<Lease>) -> Result<Machine, LabError> {
        let (lab, name, plan) = (&self.lab, &self.name, &self.plan);
        let places = self.places();
        let files = lab.artifacts.machine(name.as_str())?;
        let socket = |which: &str| lab.run.socket(&format!("m{}.{which}", self.number));
        let paths = Paths {
            qmp: socket("q")?,
            agent: socket("a")?,
            console: files.console.clone(),
            journal: files.journal.clone(),
            monitor: socket("m")?,
        };
        let management = Mac::of(name.as_str(), "management");
        let spec = BroughtSpec {
            name: name.to_string(),
            memory_mib: plan.memory_mib,
            cpus: plan.cpus,
            accelerator: self.accelerator,
            kernel: plan.brought.kernel.clone(),
            initrd: plan.brought.initrd.clone(),
            append: plan.brought.append.clone(),
            disks: plan.brought.disks.clone(),
            management,
            cards: self.cards(&places)?,
        };
        let began = Instant::now();
        lab.timeline.note(name.as_str(), "starts, as it was brought");
        let launch = Launch {
            machine: name.to_string(),
            program: accel::find_qemu()?,
            args: qemu::brought_args(&spec, &paths),
            paths: paths.clone(),
            files,
            artifacts: lab.artifacts.folder().to_owned(),
            guard_folder: lab.cache.root().join("agent"),
            scratch: lab.run.path().to_owned(),
            timeline: lab.timeline.clone(),
        };
        let refused = |error| LabError::Launch {
            machine: name.to_string(),
            error,
        };
        let qemu = Qemu::launch(launch).await.map_err(refused)?;
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
        let answered = machine::answers(&qemu, name.as_str(), ssh_port, &plan.login).await;
        let ssh = answered.map_err(|error| LabError::Boot(Box::new(error)))?;
        let ready_after = began.elapsed();
        lab.timeline.note(
            name.as_str(),
            format_args!("is ready after {:.2} s", ready_after.as_secs_f64()),
        );
        Ok(Machine::new(Running {
            name: name.clone(),
            accelerator: self.accelerator,
            qemu,
            agent_port: paths.agent,
            link: watch::Sender::new(Link::UpBySsh(ssh)),
            ssh_port,
            host_key: plan.login.host_key(),
            login: plan.login.clone(),
            management,
            places,
            shares: Vec::new(),
            ready_after,
            timeline: lab.timeline.clone(),
            book: Arc::clone(&lab.book),
            points: Default::default(),
            journal: paths.journal,
            monitor: paths.monitor,
        }))
    }

    fn places(&self) -> Vec<Place> {
        let cards = self.lab.book().cards(&self.name);
        let place = |(vlan, address, subnet): (Name, _, _)| Place {
            mac: Mac::of(self.name.as_str(), vlan.as_str()),
            vlan,
            address,
            subnet,
        };
        cards.into_iter().map(place).collect()
    }

    fn cards(&self, places: &[Place]) -> Result<Vec<Card>, LabError> {
        let card = |(index, place): (usize, &Place)| {
            let socket = self.lab.run.socket(&format!("m{}.{index}", self.number))?;
            let plug = self
                .lab
                .on_switch(&place.vlan, |switch| switch.plug(self.name.as_str(), &socket))?;
            Ok(Card { mac: place.mac, plug })
        };
        places.iter().enumerate().map(card).collect()
    }
}
