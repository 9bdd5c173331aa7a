//! Boots and drives QEMU guests from Rust tests, without root and with or without KVM.
//!
//! A [`Lab`] holds the machines and VLANs of one test. A machine is described by a [`MachineBuilder`], runs as a [`Machine`], and dies
//! with its lab. Commands run by an agent in the guest, on a channel that needs no network, or by SSH.
//!
//! ```no_run
//! use provisor_harness::{ImageSpec, Lab, lab};
//! use rstest::rstest;
//!
//! #[rstest]
//! #[tokio::test]
//! async fn the_application_reaches_its_database(lab: Lab) -> anyhow::Result<()> {
//!     let image = ImageSpec::debian().package("postgresql").enable("postgresql.service");
//!     let [app, database] = lab.machines(["app", "database"]).image(&image).on_vlan("mesh").start().await?;
//!
//!     database.wait_for_unit("postgresql.service").await?;
//!     app.run("pg_isready --host=database.mesh").check_ok().await?;
//!     app.put("/etc/app/password", "s3cret", 0o600).await?;
//!
//!     database.kill().await;
//!     app.wait_until_fails("ping -c 1 -W 1 database").await?;
//!     Ok(lab.stop().await?)
//! }
//! # fn main() {}
//! ```
//!
//! What holds for all of it:
//!
//! - every wait ends at once when the guest dies, and its error carries the evidence ([`death`], [`wait`]);
//! - no QEMU outlives its test, however the test ends ([`guard`]);
//! - the console is always in a file, with QEMU's own output, the talk with its monitor and a timeline ([`artifacts`]);
//! - no privileges, no fixed ports, no fixed names: any number of tests run beside each other;
//! - what is slow to make is made once and kept ([`cache`], [`image`]), a booted guest too: machines are restored from it ([`StartFrom`]).

pub mod accel;
pub mod agent;
pub mod artifacts;
mod background;
pub mod budget;
pub mod cache;
pub mod checks;
pub mod console;
pub mod death;
pub mod exec;
pub mod guard;
pub mod image;
mod laboratory;
pub mod machine;
mod names;
pub mod net;
pub mod qemu;
pub mod qmp;
mod recorder;
pub mod report;
mod run_dir;
pub mod ssh;
mod template;
pub mod timeline;
pub mod wait;

pub use exec::{Command, Execute, ExitStatus, Output, Transport};
pub use image::ImageSpec;
pub use laboratory::{AddressError, CAPTURE_VARIABLE, Fault, Lab, LabError, Links, Vlan, lab};
pub use machine::{Machine, MachineBuilder, Machines, StartFrom};
pub use names::{Name, NameError};
pub use run_dir::RunDirError;
pub use template::TEMPLATES_VARIABLE;
