//! Leaving the machines of a failed test to a person.
//!
//! Whoever asked a guard for its program holds one end of a socket. A kept lab hands that end to a keeper, a process of its own, and
//! each VLAN to a hub. All of them hold the lab's lock and end when a marker file is removed; so a kept lab is found and ended as any
//! other, and nothing goes by a process's number.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use super::Inner;
use crate::agent;
use crate::machine::Machine;
use crate::running::{Folder, MachineRecord, Record};

/// Hands over all of `machines`, and the VLANs.
///
/// # Errors
/// A keeper does not start; then the machines it did not get end with the test.
pub(super) fn keep(lab: &Inner, machines: &[Machine]) -> io::Result<()> {
    let program = agent::install(&lab.cache.root().join("agent")).map_err(io::Error::other)?;
    let marker = lab.folder().kept();
    fs::write(&marker, "")?;
    let lock = lab.run.keep()?;
    let start = |arguments: &mut Command, stdin: Stdio, lock: &File| {
        arguments
            .stdin(stdin)
            .stdout(lock.try_clone()?)
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map(drop)
    };
    for machine in machines {
        let hold = given_away(lab, machine)?;
        start(
            Command::new(&program).arg("keep").arg(&marker),
            hold.into(),
            &lock,
        )?;
    }
    for switch in std::mem::take(&mut lab.state().switches).into_values() {
        let (socket, cards) = switch.cables();
        drop(switch);
        start(
            Command::new(&program)
                .arg("hub")
                .arg(&marker)
                .arg(socket)
                .args(cards),
            Stdio::null(),
            &lock,
        )?;
    }
    Ok(())
}

fn given_away(lab: &Inner, machine: &Machine) -> io::Result<OwnedFd> {
    let (sender, receiver) = std::sync::mpsc::channel();
    let machine = machine.clone();
    lab.background.spawn(async move {
        let _ = sender.send(machine.give_away().await);
    });
    receiver
        .recv()
        .unwrap_or_else(|_| Err(io::ErrorKind::NotConnected.into()))
}

impl Inner {
    /// Where the lab says of itself what others may know.
    pub(super) fn folder(&self) -> Folder {
        Folder::new(self.run.path())
    }

    /// What it says.
    pub(super) fn record(&self) -> Record {
        let machines = self.state().machines.clone();
        let alive = machines.iter().filter(|machine| machine.death().seen().is_none());
        Record {
            test: self.artifacts.test(),
            artifacts: self.artifacts.folder().to_owned(),
            pid: std::process::id(),
            machines: alive.map(|machine| self.record_of(machine)).collect(),
        }
    }

    fn record_of(&self, machine: &Machine) -> MachineRecord {
        MachineRecord {
            name: machine.name().to_owned(),
            pid: machine.pid(),
            ssh_port: machine.ssh_port(),
            host_key: machine.host_key().to_owned(),
            console: machine.console().path().to_owned(),
            monitor: machine.monitor_socket().to_owned(),
        }
    }

    /// Says it, when machines have come. That it cannot be said is no reason for a test to fail.
    pub(super) fn say_who_runs(&self) {
        if let Err(error) = self.folder().write(&self.record(), self.key.private()) {
            tracing::warn!(%error, "cannot describe the lab in {}", self.run.path().display());
        }
    }
}
