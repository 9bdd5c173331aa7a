//! What an operator does on a scenario's deployer, and the fleet's files there.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use provisor_harness::exec::Command;
use provisor_harness::machine::Machine;
use provisor_vmtests_program::{FLEET, PROVISOR};

use crate::bootstrap::{Report, address};

/// The operator's name at the state backend.
pub(crate) const USER: &str = "operator";
/// Emulated hosts are slow, and CI is slower; a run that takes this long hangs.
const RUN_DEADLINE: Duration = Duration::from_secs(600);

/// An operator with a password that nobody has seen before, so that finding it anywhere means that it leaked.
pub(crate) struct Operator {
    pub(crate) password: String,
}

impl Operator {
    pub(crate) fn new() -> Result<Operator> {
        let mut bytes = [0; 24];
        std::io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut bytes)?;
        Ok(Operator {
            password: bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        })
    }

    /// A command with the backend's credentials in the environment.
    pub(crate) fn runs(&self, command: Command) -> Command {
        command
            .cwd(FLEET)
            .deadline(RUN_DEADLINE)
            .env("HOME", "/root")
            .env("TF_HTTP_USERNAME", USER)
            .env("TF_HTTP_PASSWORD", &self.password)
    }

    /// `provisor` with these arguments.
    pub(crate) fn provisor(&self, arguments: &[&str]) -> Command {
        self.runs(Command::new(PROVISOR).args(arguments.iter().copied()))
    }

    /// Runs `provisor --format json` and reads the report that it prints.
    pub(crate) async fn report(&self, deployer: &Machine, arguments: &[&str]) -> Result<Report> {
        let command = self.provisor(&[&["--format", "json"], arguments].concat());
        Report::read(&deployer.run(command).await?)
    }
}

/// Puts the files of `fleets/<name>` and `system/` on the deployer, with the hosts' addresses and keys filled in.
pub(crate) async fn write_fleet(deployer: &Machine, name: &str, hosts: &[&Machine]) -> Result<()> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"));
    let fleet = source.join("fleets").join(name);
    for (folder, below) in [
        (fleet.clone(), ""),
        (fleet.join("components"), "components/"),
        (source.join("system"), ""),
    ] {
        for file in files(&folder)? {
            let name = file
                .file_name()
                .context("a file without a name")?
                .to_string_lossy()
                .into_owned();
            let text = fill_in(&std::fs::read_to_string(&file)?, hosts)?;
            deployer
                .put(&format!("{FLEET}/{below}{name}"), text, 0o644)
                .await?;
        }
    }
    Ok(())
}

fn fill_in(text: &str, hosts: &[&Machine]) -> Result<String> {
    let mut text = text.to_owned();
    for host in hosts {
        text = text.replace(&format!("@{}.address@", host.name()), &address(host)?);
        text = text.replace(&format!("@{}.host_key@", host.name()), host.host_key());
    }
    Ok(text)
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
