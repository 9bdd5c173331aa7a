//! A VLAN of a lab.

use std::path::PathBuf;
use std::sync::Arc;

use super::{Inner, LabError};
use crate::names::Name;
use crate::net::{Counters, Subnet, Switch};

/// If set, and not to nothing, every VLAN of every lab is captured from its start.
pub const CAPTURE_VARIABLE: &str = "PROVISOR_PCAP";

/// A network between machines of one lab.
#[derive(Debug)]
pub struct Vlan<'a> {
    lab: &'a Arc<Inner>,
    name: String,
}

impl<'a> Vlan<'a> {
    pub(super) fn new(lab: &'a Arc<Inner>, name: &str) -> Self {
        Self {
            lab,
            name: name.to_owned(),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Chooses its subnet, such as `10.90.0.0/24`, before the first machine is on it.
    ///
    /// # Errors
    /// [`LabError`]: not a subnet, or another one is in use already.
    pub fn subnet(self, subnet: &str) -> Result<Self, LabError> {
        let name: Name = self.name.parse()?;
        let subnet: Subnet = subnet.parse()?;
        self.lab.book().choose(&name, subnet)?;
        Ok(self)
    }

    /// Writes all its frames, from now on, to `VLAN.pcapng` among the test's artifacts, and answers with the path. The file can be read at
    /// any time, also after the test was killed. [`CAPTURE_VARIABLE`] does this for all VLANs without a change to the test.
    ///
    /// # Errors
    /// [`LabError`]: no name, or the file cannot be written.
    pub fn capture(&self) -> Result<PathBuf, LabError> {
        let name: Name = self.name.parse()?;
        let path = self.lab.capture_path(&name);
        let path = self.lab.on_switch(&name, |switch| switch.capture(&path))??;
        self.lab.timeline.note("lab", format_args!("captures {name}"));
        Ok(path)
    }

    /// What its switch has done so far; nothing if no machine was ever on it.
    pub fn counters(&self) -> Counters {
        let state = self.lab.state();
        let switch = self
            .name
            .parse::<Name>()
            .ok()
            .and_then(|name| state.switches.get(&name));
        switch.map(Switch::counters).unwrap_or_default()
    }

    pub(super) fn lab(&self) -> &'a Arc<Inner> {
        self.lab
    }
}

impl Inner {
    /// Does something with the switch of `vlan`, which comes to be when it is first needed.
    pub(super) fn on_switch<T>(&self, vlan: &Name, act: impl FnOnce(&Switch) -> T) -> Result<T, LabError> {
        let _background = self.background.enter();
        let mut state = self.state();
        if !state.switches.contains_key(vlan) {
            let socket = self.run.socket(&format!("v{}", state.switches.len()))?;
            let switch = Switch::start(&socket)?;
            if std::env::var_os(CAPTURE_VARIABLE).is_some_and(|value| !value.is_empty()) {
                switch.capture(&self.capture_path(vlan))?;
            }
            state.switches.insert(vlan.clone(), switch);
        }
        Ok(act(&state.switches[vlan]))
    }

    fn capture_path(&self, vlan: &Name) -> PathBuf {
        self.artifacts.folder().join(format!("{vlan}.pcapng"))
    }
}
