//! What all tests of a user on this machine may take together: memory for their guests, and turns to boot them.
//!
//! Two pools, each a folder under `<cache>/budget/`. Who takes a share writes a file there and keeps it locked; the kernel lets go of
//! the lock when the process ends, however it ends, and a file that nobody locks counts for nothing. So there is no daemon, nothing to
//! clean up, and no share that a killed test keeps.
//!
//! - A request is granted whole or not at all.
//! - Requests are granted in the order they came: small ones do not overtake a large one.
//! - A test that holds memory and wants more goes before those that hold none, since these can wait without keeping others waiting. If
//!   everybody who holds memory waits for more, the one that sees it gets an error at once, and the others go on.
//! - Who waits is woken by the end of a holder, at once.
//! - Processes may see budgets of different sizes, as in containers that share a cache. Each keeps the sum within its own.
//!
//! Memory is held until QEMU is gone. After a SIGKILL of the test itself its share is free a few milliseconds before its guard has killed
//! QEMU: the reserve is larger than what a new guest takes in that time.

mod claim;
mod decide;
mod error;
mod pool;
mod size;
mod watch;

use std::path::Path;

pub use claim::{Claimant, Wish};
pub use error::BudgetError;
pub use pool::{Lease, Pool, Waiting};
pub use size::{CPUS_VARIABLE, MEMORY_VARIABLE, Size};

use crate::accel::Accelerator;
use crate::qemu::TRANSLATION_CACHE_MIB;

/// The two pools.
#[derive(Clone, Debug)]
pub struct Budget {
    /// MiB of memory, held by a guest as long as its QEMU runs.
    pub memory: Pool,
    /// Processors, held by machines that start until they are ready. Guests that idle need none.
    pub boots: Pool,
}

impl Budget {
    /// The budget of this size that is shared by all who name the same cache folder.
    pub fn new(cache: &Path, size: Size) -> Self {
        let folder = cache.join("budget");
        Self {
            memory: Pool::memory(folder.join("memory"), size.memory_mib),
            boots: Pool::boots(folder.join("boots"), size.cpus),
        }
    }
}

/// The most that a guest with this much memory may cost the host, in MiB: its own memory, QEMU's translation cache under emulation, and
/// QEMU itself.
pub fn cost_mib(memory_mib: u32, accelerator: Accelerator) -> u64 {
    let translation = match accelerator {
        Accelerator::Tcg => TRANSLATION_CACHE_MIB,
        Accelerator::Kvm => 0,
    };
    u64::from(memory_mib) + u64::from(translation) + QEMU_MIB
}

/// QEMU without its guest has 38 MiB when stopped and up to 80 with its devices at work.
const QEMU_MIB: u64 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_costs_its_memory_qemu_s_and_the_translations_of_an_emulated_one() {
        assert_eq!(cost_mib(256, Accelerator::Kvm), 256 + 100);
        assert_eq!(cost_mib(256, Accelerator::Tcg), 256 + 128 + 100);
    }
}
