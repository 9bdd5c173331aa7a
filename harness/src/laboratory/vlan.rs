//! A VLAN of a lab.

use std::sync::Arc;

use super::{Inner, LabError};
use crate::names::Name;
use crate::net::{Counters, Subnet, Switch};

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
}
