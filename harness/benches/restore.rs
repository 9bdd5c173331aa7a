//! How fast machines are there: restored, and booted beside them in the same run.
//!
//! `cargo bench -p provisor-harness --bench restore`; `PROVISOR_BENCH_RUNS` says how often (20). A bench, not a test: the figures are for
//! people, and a busy host makes them larger without anything being wrong.

use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::Result;
use provisor_harness::artifacts::TestName;
use provisor_harness::{Lab, Machine, StartFrom};

/// Three cold boots take 10 s on an idle host: a few runs of them tell enough.
const COLD_RUNS: usize = 3;
const COMMANDS: usize = 200;

#[tokio::main]
async fn main() -> Result<()> {
    let runs = std::env::var("PROVISOR_BENCH_RUNS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(20);
    // Makes the template, and has it in the host's memory.
    answered(3, StartFrom::Template).await?;

    let three = measure(runs, 3, StartFrom::Template).await?;
    let cold = measure(COLD_RUNS.min(runs), 3, StartFrom::Cold).await?;
    let five = measure(runs, 5, StartFrom::Template).await?;
    let again = commands().await?;

    let mut out = std::io::stdout().lock();
    for (what, times) in [
        ("three restored, `true` on all", &three),
        ("three booted, `true` on all", &cold),
        ("five restored, `true` on all", &five),
        ("`true` again by the agent", &again),
    ] {
        let [least, median, most] = spread(times);
        writeln!(
            out,
            "{what:<32} median {:>8.3} s  least {:>8.3} s  most {:>8.3} s  of {}",
            median.as_secs_f64(),
            least.as_secs_f64(),
            most.as_secs_f64(),
            times.len()
        )?;
    }
    let ratio =
        |more: &[Duration], less: &[Duration]| spread(more)[1].as_secs_f64() / spread(less)[1].as_secs_f64();
    writeln!(
        out,
        "three booted / three restored    {:.1}   (goal: at least 8)",
        ratio(&cold, &three)
    )?;
    writeln!(
        out,
        "five restored / three restored   {:.2}  (goal: at most 2)",
        ratio(&five, &three)
    )?;
    Ok(())
}

async fn measure(runs: usize, machines: usize, from: StartFrom) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    for _ in 0..runs {
        times.push(answered(machines, from).await?);
    }
    Ok(times)
}

/// From the wish for networked machines to the answer of each.
async fn answered(machines: usize, from: StartFrom) -> Result<Duration> {
    let lab = lab()?;
    let began = Instant::now();
    let started: Vec<Machine> = match machines {
        3 => start::<3>(&lab, ["a", "b", "c"], from).await?.into(),
        _ => start::<5>(&lab, ["a", "b", "c", "d", "e"], from).await?.into(),
    };
    let mut answers = tokio::task::JoinSet::new();
    for machine in started {
        answers.spawn(async move { machine.run("true").check_ok().await.map(drop) });
    }
    for answer in answers.join_all().await {
        answer?;
    }
    let time = began.elapsed();
    lab.stop().await?;
    Ok(time)
}

async fn start<const N: usize>(lab: &Lab, names: [&str; N], from: StartFrom) -> Result<[Machine; N]> {
    Ok(lab
        .machines(names)
        .on_vlan("mesh")
        .start_from(from)
        .start()
        .await?)
}

async fn commands() -> Result<Vec<Duration>> {
    let lab = lab()?;
    let machine = lab.machine("a").on_vlan("mesh").start().await?;
    let mut times = Vec::new();
    for _ in 0..COMMANDS {
        let began = Instant::now();
        machine.run("true").check_ok().await?;
        times.push(began.elapsed());
    }
    lab.stop().await?;
    Ok(times)
}

fn lab() -> Result<Lab> {
    Ok(Lab::named(&TestName {
        binary: "bench".to_owned(),
        test: "restore".to_owned(),
    })?)
}

/// Least, median, most.
fn spread(times: &[Duration]) -> [Duration; 3] {
    let mut sorted = times.to_vec();
    sorted.sort();
    let at = |index: usize| sorted.get(index).copied().unwrap_or_default();
    [at(0), at(sorted.len() / 2), at(sorted.len().saturating_sub(1))]
}
