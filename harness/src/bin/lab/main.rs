//! `lab`: looks after what guests need on this machine.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program's edge")]

mod new;

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
