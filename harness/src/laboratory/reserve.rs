//! Getting memory for machines before any of them starts, and a turn to boot them.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::{Inner, LabError};
use crate::accel::Accelerator;
use crate::budget::{Budget, BudgetError, Claimant, Lease, Pool, Size, Waiting, Wish, cost_mib};
use crate::machine::{BroughtPlan, Plan};
use crate::timeline::Timeline;

/// A person who looks at a test that does nothing wonders after this time.
const QUIET: Duration = Duration::from_secs(10);

/// What one machine needs.
pub(super) struct Need {
    name: String,
    memory_mib: u32,
    cpus: u8,
}

impl From<&Plan> for Need {
    fn from(plan: &Plan) -> Self {
        Self {
            name: plan.name.clone(),
            memory_mib: plan.memory_mib,
            cpus: plan.cpus,
        }
    }
}

impl From<&BroughtPlan> for Need {
    fn from(plan: &BroughtPlan) -> Self {
        Self {
            name: plan.name.clone(),
            memory_mib: plan.memory_mib,
            cpus: plan.cpus,
        }
    }
}

/// A share of the memory for each of `needs`, to be kept as long as its QEMU runs, and the turn to boot, to be kept until all are ready.
///
/// All or nothing, so that labs that start do not wait for each other; memory first, so that nobody waits for memory in its turn to boot.
pub(super) async fn reserve(
    lab: &Arc<Inner>,
    needs: &[Need],
    accelerator: Accelerator,
) -> Result<(Vec<Lease>, Vec<Lease>), LabError> {
    let budget = Budget::new(lab.cache.root(), Size::of_this_machine()?);
    let memory = needs.iter().map(|need| Wish {
        name: need.name.clone(),
        amount: cost_mib(need.memory_mib, accelerator),
    });
    let cpus = needs.iter().map(|need| u64::from(need.cpus)).sum::<u64>();
    let names: Vec<_> = needs.iter().map(|need| need.name.as_str()).collect();
    let boot = Wish {
        name: names.join(", "),
        // A lab with more machines than processors boots when it has them all.
        amount: cpus.min(budget.boots.total()),
    };
    let asked = Asked {
        timeline: lab.timeline.clone(),
        claimant: Claimant::of(&lab.test),
    };
    let memory = memory.collect();
    let taken = async move {
        let memory = asked.take(&budget.memory, "MiB of memory", memory).await?;
        let boot = asked
            .take(&budget.boots, "processors to boot on", vec![boot])
            .await?;
        Ok::<_, BudgetError>((memory, boot))
    };
    Ok(lab.background.run(taken).await?)
}

/// Who asks, and where a long wait is told.
struct Asked {
    timeline: Timeline,
    claimant: Claimant,
}

impl Asked {
    /// Takes `wishes` from `pool`, whose unit is `unit`. That it waits is told on the timeline, and after a while to whoever looks on.
    async fn take(&self, pool: &Pool, unit: &str, wishes: Vec<Wish>) -> Result<Vec<Lease>, BudgetError> {
        let began = Instant::now();
        let (sender, waits) = watch::channel(None);
        let on_wait = |waiting: Waiting| {
            let line = format!("waits for {}", told(&waiting, unit));
            if sender.send_replace(Some(line.clone())).is_none() {
                self.timeline.note("lab", line);
            }
        };
        let tell = async {
            sleep(QUIET).await;
            if let Some(line) = &*waits.borrow() {
                let _ = writeln!(std::io::stderr(), "{line}");
            }
            std::future::pending().await
        };
        let taken = tokio::select! {
            taken = pool.take(&self.claimant, &wishes, on_wait) => taken,
            never = tell => never,
        };
        if waits.borrow().is_some() {
            let waited = began.elapsed().as_secs_f64();
            self.timeline
                .note("lab", format_args!("waited {waited:.2} s for {unit}"));
        }
        taken
    }
}

fn told(waiting: &Waiting, unit: &str) -> String {
    let Waiting {
        wanted,
        free,
        total,
        holders,
    } = waiting;
    let holders = holders.join("; ");
    format!("{wanted} {unit}, {free} of {total} are free; held: {holders}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_says_for_what_and_for_whom() {
        let waiting = Waiting {
            wanted: 484,
            free: 32,
            total: 1000,
            holders: vec!["484 by `a`".to_owned(), "484 by `b`".to_owned()],
        };
        assert_eq!(
            told(&waiting, "MiB of memory"),
            "484 MiB of memory, 32 of 1000 are free; held: 484 by `a`; 484 by `b`"
        );
    }
}
