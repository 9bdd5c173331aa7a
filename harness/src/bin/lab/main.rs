//! `lab`: looks after what guests need on this machine.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program's edge")]

mod evidence;
mod new;
mod repl;
mod running;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use provisor_harness::cache::{Cache, Entry, Size, free_space};
use provisor_harness::image::{Image, ImageSpec};
use provisor_harness::{accel, image};

/// Looks after what guests need on this machine.
#[derive(Parser)]
#[command(version)]
struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Says what this machine has for running guests, and what is missing.
    Doctor,
    /// Guest images in the cache.
    #[command(subcommand)]
    Images(Images),
    /// Writes a project of your own, with a first scenario.
    New(new::New),
    /// Machines by hand: start, run, reboot, kill, one line each.
    Repl,
    /// Shows the machines that run, what they take, and for which test.
    Top,
    /// Opens a shell in a machine that runs, by SSH, or runs a command in it.
    Shell {
        /// The machine.
        machine: String,
        /// The command; a shell if there is none.
        command: Vec<String>,
        /// The test, where several have a machine of that name.
        #[arg(long)]
        test: Option<String>,
    },
    /// Follows the console of a machine that runs.
    Console {
        /// The machine.
        machine: String,
        /// The test, where several have a machine of that name.
        #[arg(long)]
        test: Option<String>,
    },
    /// Lets paused tests go on.
    Resume,
    /// Ends kept labs, and removes what killed tests left.
    Sweep,
    /// Lists the tests that left evidence, and how each ended.
    Tests {
        /// The folder with all evidence.
        #[arg(default_value = "target/debug/vm-artifacts")]
        folder: PathBuf,
    },
    /// Writes the timeline of one test anew, even if it was killed.
    Timeline {
        /// The test's folder.
        folder: PathBuf,
    },
    /// Adds peak memory and evidence to a JUnit report, as properties.
    Junit {
        /// The report that cargo nextest wrote, such as target/nextest/ci/junit.xml.
        report: PathBuf,
        /// The folder with all evidence.
        #[arg(long, default_value = "target/debug/vm-artifacts")]
        evidence: PathBuf,
    },
}

#[derive(Subcommand)]
enum Images {
    /// Builds the base image, with these packages added.
    Build {
        /// A Debian package to add; may be given again.
        #[arg(long = "package", value_name = "NAME")]
        packages: Vec<String>,
        /// The Debian release.
        #[arg(long, default_value = "bookworm")]
        suite: String,
    },
    /// Lists what is in the cache.
    List,
    /// Removes what was not used for some days, and what killed builds left.
    Prune {
        /// Removes what was not used for this many days; 0 removes all.
        #[arg(long, default_value_t = 14)]
        days: u64,
    },
}

fn main() -> ExitCode {
    let done = match Args::parse().verb {
        Verb::Doctor => return doctor(),
        Verb::Images(Images::Build { packages, suite }) => build(&packages, &suite),
        Verb::Images(Images::List) => list(),
        Verb::Images(Images::Prune { days }) => prune(days),
        Verb::New(asked) => start_project(&asked),
        Verb::Repl => repl::repl(),
        Verb::Top => running::top(),
        Verb::Shell {
            machine,
            command,
            test,
        } => running::shell(&machine, test.as_deref(), &command),
        Verb::Console { machine, test } => running::console(&machine, test.as_deref()),
        Verb::Resume => running::resume(),
        Verb::Sweep => running::sweep(),
        Verb::Tests { folder } => evidence::tests(&folder),
        Verb::Timeline { folder } => evidence::timeline(&folder),
        Verb::Junit { report, evidence } => evidence::junit(&report, &evidence),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

type Done = Result<(), Box<dyn std::error::Error>>;

/// One line a finding; fails when guests cannot run.
fn doctor() -> ExitCode {
    let qemu = accel::find_qemu().map(|path| path.display().to_string());
    let accelerator = accel::choose().map(|choice| format!("{}: {}", choice.accelerator, choice.reason));
    let images = image::check_host().map(|()| "can be built here".to_owned());
    let cache = Cache::open().and_then(|cache| {
        cache.require_space(0)?;
        Ok(format!(
            "{}, {} free",
            cache.root().display(),
            Size(free_space(cache.root())?)
        ))
    });
    let findings = [
        ("qemu", qemu.map_err(|error| error.to_string())),
        ("accelerator", accelerator.map_err(|error| error.to_string())),
        ("images", images.map_err(|error| error.to_string())),
        ("cache", cache.map_err(|error| error.to_string())),
    ];
    for (what, finding) in &findings {
        match finding {
            Ok(text) => println!("ok       {what}: {text}"),
            Err(text) => println!("missing  {what}: {text}"),
        }
    }
    if findings.iter().all(|(_, finding)| finding.is_ok()) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn build(packages: &[String], suite: &str) -> Done {
    let spec = ImageSpec::debian().suite(suite).packages(packages);
    let image = Image::obtain(&Cache::open()?, &spec, &|line| eprintln!("{line}"))?;
    println!("{}", image.root().display());
    Ok(())
}

fn start_project(asked: &new::New) -> Done {
    let folder = new::new(asked)?;
    println!("{}", folder.display());
    eprintln!("hint: cd there, then `cargo nextest run`; tests/hello.rs is the first scenario");
    Ok(())
}

fn list() -> Done {
    Cache::open()?.list()?.iter().for_each(show);
    Ok(())
}

fn prune(days: u64) -> Done {
    let removed = Cache::open()?.prune(Duration::from_secs(days * 24 * 3600))?;
    removed.iter().for_each(show);
    eprintln!(
        "removed {} entries, {}",
        removed.len(),
        Size(removed.iter().map(|entry| entry.bytes).sum())
    );
    Ok(())
}

fn show(entry: &Entry) {
    let idle = entry.used.elapsed().unwrap_or_default().as_secs() / (24 * 3600);
    println!(
        "{:8} {}  {}  used {idle} days ago",
        entry.kind,
        entry.key,
        Size(entry.bytes)
    );
}
