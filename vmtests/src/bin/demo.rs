//! `./dev demo`: a fleet bootstraps itself in three guests, while a person watches.

use std::time::{Duration, Instant};

use anstream::{eprint, eprintln};
use anyhow::{Context as _, Result, ensure};
use provisor_harness::agent;
use provisor_harness::artifacts::TestName;
use provisor_harness::cache::Cache;
use provisor_harness::exec::{ExitStatus, Stream};
use provisor_harness::image::Image;
use provisor_harness::machine::Machine;
use provisor_harness::{Lab, accel};
use provisor_vmtests::bootstrap::{self, DOMAIN, Hosts, Login};
use provisor_vmtests::{programs, tls};

fn main() -> std::process::ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return refuse(&error.into()),
    };
    // Ctrl-C ends the program; the guests die with it, whatever it was doing.
    match runtime.block_on(async { tokio::select! { ended = demo() => ended, _ = tokio::signal::ctrl_c() => Err(anyhow::anyhow!("interrupted")) } }) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => refuse(&error),
    }
}

fn refuse(error: &anyhow::Error) -> std::process::ExitCode {
    eprintln!("\n\x1b[1;31mthe demo failed:\x1b[0m {error:#}");
    std::process::ExitCode::FAILURE
}

async fn demo() -> Result<()> {
    let mut clock = Clock::default();
    let lab = Lab::named(&TestName {
        binary: "demo".to_owned(),
        test: "bootstrap".to_owned(),
    })?;

    title("Three guests: a deployer with no backend, a backend host, an application host");
    let choice = tokio::task::spawn_blocking(accel::choose).await??;
    line(
        "accelerator",
        &format!("{}: {}", choice.accelerator, choice.reason),
    );
    let programs = tokio::task::spawn_blocking(|| programs::build(&say)).await??;
    line(
        "programs",
        &format!(
            "static provisor and provisor-backend; {}",
            programs.tofu.display()
        ),
    );
    clock.lap("programs");
    tokio::task::spawn_blocking(|| {
        Image::obtain(&Cache::open()?, &bootstrap::image(), &say)?.initrd(agent::PROGRAM)
    })
    .await??;
    clock.lap("image");
    let hosts = bootstrap::start(&lab, programs).await?;
    for host in hosts.all() {
        let ready = host.ready_after().as_secs_f64();
        line(
            host.name(),
            &format!(
                "{}, ready {ready:.1} s after its start",
                bootstrap::address(host)?
            ),
        );
    }
    clock.lap("boot");

    title("$ provisor tf --bootstrap");
    watch(&hosts, &["tf", "--bootstrap"]).await?;
    clock.lap("bootstrap");

    title("Where the state is now");
    let anonymous = hosts.ask_backend(Login::None).await?;
    line(
        "without credentials",
        &format!("GET {} -> {}", hosts.state_address()?, anonymous.status),
    );
    let answer = hosts.ask_backend(Login::Mine).await?;
    ensure!(answer.status == 200, "the backend answered {}", answer.status);
    let state: serde_json::Value = serde_json::from_str(&answer.body)?;
    let resources = state["resources"].as_array().map_or(0, Vec::len);
    line(
        "as the operator",
        &format!(
            "-> 200, serial {}, lineage {}, {resources} nodes",
            state["serial"],
            text(&state["lineage"])
        ),
    );

    title("$ provisor tf apply    # again: nothing changed, so nothing is deployed");
    watch(&hosts, &["tf", "apply"]).await?;
    clock.lap("second run");
    title("$ provisor tf plan");
    watch(&hosts, &["tf", "plan"]).await?;
    clock.lap("plan");

    title(&format!("https://{DOMAIN}, seen from the backend host"));
    show_certificates(&hosts).await?;
    clock.lap("TLS");

    title("What it took");
    for (name, took) in &clock.laps {
        line(name, &format!("{:.1} s", took.as_secs_f64()));
    }
    show_memory(&hosts.all())?;
    line("evidence", &lab.artifacts().display().to_string());
    lab.stop().await?;
    eprintln!("\n\x1b[1;32mdone\x1b[0m in {:.1} s", clock.total().as_secs_f64());
    Ok(())
}

/// Runs `provisor` on the deployer and shows what it prints as it prints it.
async fn watch(hosts: &Hosts, arguments: &[&str]) -> Result<()> {
    let command = hosts.provisor(arguments);
    let output = hosts
        .deployer
        .run(command)
        .on_output(|stream, bytes| {
            if stream == Stream::Stderr {
                eprint!("{}", String::from_utf8_lossy(bytes));
            }
        })
        .await?;
    ensure!(
        output.status == ExitStatus::Code(0),
        "provisor ended with {}",
        output.status
    );
    Ok(())
}

async fn show_certificates(hosts: &Hosts) -> Result<()> {
    let client = &hosts.backend;
    let ca = hosts
        .deployer
        .run(hosts.provisor(&["ca"]))
        .check_ok()
        .await?
        .stdout;
    client.put("/root/ca.pem", &ca, 0o644).await?;
    let handshake = tls::connect(client, &hosts.app, "/root/ca.pem").await?;
    ensure!(
        handshake.verified(),
        "the chain does not verify:\n{}",
        handshake.text()
    );
    let leaf = tls::describe(client, handshake.chain()).await?;
    let root = tls::describe(client, ca).await?;
    for (which, description) in [("certificate", leaf), ("signed by", root)] {
        for (index, detail) in description
            .lines()
            .map(str::trim)
            .filter(|detail| !detail.is_empty())
            .enumerate()
        {
            line(if index == 0 { which } else { "" }, detail);
        }
    }
    line("verified", "against the fleet's CA alone, for that name");
    Ok(())
}

fn show_memory(machines: &[&Machine]) -> Result<()> {
    let mut sum = 0.0;
    for machine in machines {
        let mib = machine.pss_mib().context("the guest is gone")?;
        sum += mib;
        line(&format!("memory, {}", machine.name()), &format!("{mib:.0} MiB"));
    }
    line(
        "memory, all guests",
        &format!("{sum:.0} MiB (proportional set size)"),
    );
    Ok(())
}

fn text(value: &serde_json::Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn title(text: &str) {
    eprintln!("\n\x1b[1m{text}\x1b[0m");
}

fn line(name: &str, value: &str) {
    eprintln!("  \x1b[36m{name:<20}\x1b[0m {value}");
}

fn say(text: &str) {
    line("", text);
}

/// How long each part of the demo took.
struct Clock {
    start: Instant,
    last: Instant,
    laps: Vec<(&'static str, Duration)>,
}

impl Default for Clock {
    fn default() -> Clock {
        let now = Instant::now();
        Clock {
            start: now,
            last: now,
            laps: Vec::new(),
        }
    }
}

impl Clock {
    fn lap(&mut self, name: &'static str) {
        self.laps.push((name, self.last.elapsed()));
        self.last = Instant::now();
    }

    fn total(&self) -> Duration {
        self.start.elapsed()
    }
}
