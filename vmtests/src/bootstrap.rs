//! The hosts of the bootstrap fleet: a deployer with no backend, a backend host, an application host.

use anyhow::{Context as _, Result};
use provisor_harness::exec::{Command, Output};
use provisor_harness::machine::Machine;
use provisor_harness::ssh::KeyPair;
use provisor_harness::{ImageSpec, Lab};
use provisor_vmtests_program::MOUNT;
pub use provisor_vmtests_program::{FLEET, PROVISOR, STATE_HOME, TOFU};
use serde_json::Value;

use crate::canary::Canary;
use crate::operator::{Operator, USER, write_fleet};
use crate::programs::Programs;

/// Domain of the website that the fleet serves.
pub const DOMAIN: &str = "app.example.test";

pub(crate) const VLAN: &str = "mesh";
pub(crate) const SUBNET: &str = "10.90.0.0/24";

/// The three hosts, running, with nothing deployed yet.
pub struct Hosts {
    /// Where the operator sits.
    pub deployer: Machine,
    /// Will hold the state.
    pub backend: Machine,
    /// Will serve the website.
    pub app: Machine,
    operator: Operator,
    // The guests read their programs from here.
    _programs: Programs,
}

/// What the hosts boot: Debian with Nix and an idle nginx.
pub fn image() -> ImageSpec {
    ImageSpec::debian().packages(["nix-bin", "nginx-light"])
}

/// Boots the hosts and puts the fleet's files on the deployer.
pub async fn start(lab: &Lab, programs: Programs) -> Result<Hosts> {
    lab.vlan(VLAN).subnet(SUBNET)?;
    let key = KeyPair::generate();
    let image = image();
    let host = |name: &str| lab.machine(name).image(&image).on_vlan(VLAN);
    let deployer = host("deployer")
        .memory_mib(384)
        .share(MOUNT, programs.folder())
        .file("/root/.ssh/id_ed25519", key.private(), 0o600);
    let target = |name| host(name).memory_mib(256).authorize(key.public());
    let [deployer, backend, app] = lab
        .together([deployer, target("backend"), target("app")])
        .start()
        .await?;

    let hosts = Hosts {
        deployer,
        backend,
        app,
        operator: Operator::new()?,
        _programs: programs,
    };
    write_fleet(&hosts.deployer, "bootstrap", &[&hosts.backend, &hosts.app]).await?;
    for target in [&hosts.backend, &hosts.app] {
        target.wait_for_open_port(22).await?;
    }
    Ok(hosts)
}

impl Hosts {
    /// All of them.
    pub fn all(&self) -> [&Machine; 3] {
        [&self.deployer, &self.backend, &self.app]
    }

    /// Runs `provisor` on the deployer as the operator would, with the credentials in the environment.
    pub fn provisor(&self, arguments: &[&str]) -> Command {
        self.operator.provisor(arguments)
    }

    /// Runs `provisor --format json` and reads the report that it prints.
    pub async fn report(&self, arguments: &[&str]) -> Result<Report> {
        self.operator.report(&self.deployer, arguments).await
    }

    /// Runs a program that talks to the state backend, with the credentials in the environment.
    pub fn as_operator(&self, command: Command) -> Command {
        self.operator.runs(command)
    }

    /// Address of the fleet's state on the backend that it deploys.
    pub fn state_address(&self) -> Result<String> {
        Ok(format!("http://{}:8080/state/bootstrap", address(&self.backend)?))
    }

    /// Asks the backend over HTTP, from the deployer; `Login::Mine` is the operator's.
    pub async fn ask_backend(&self, login: Login) -> Result<HttpAnswer> {
        // By standard input: an argument would show the password to everybody on the host.
        let config = match login {
            Login::Mine => format!("user = \"{USER}:{}\"\n", self.operator.password),
            Login::Wrong => format!("user = \"{USER}:not the password\"\n"),
            Login::None => String::new(),
        };
        let url = self.state_address()?;
        let curl = Command::new("curl")
            .args([
                "--silent",
                "--show-error",
                "--config",
                "-",
                "--write-out",
                "\\n%{http_code}",
                &url,
            ])
            .stdin(config);
        let text = self.deployer.run(curl).check_ok().await?.stdout_text();
        let (body, status) = text.rsplit_once('\n').context("curl wrote no status")?;
        Ok(HttpAnswer {
            status: status.parse()?,
            body: body.to_owned(),
        })
    }

    /// The secrets that exist once the fleet is deployed, to be looked for where they must not be.
    pub async fn canaries(&self) -> Result<Vec<Canary>> {
        let mut canaries = vec![Canary::new(
            "the backend's password",
            self.operator.password.as_bytes(),
        )];
        let key = self
            .app
            .get("/var/lib/provisor/grants/website/main/key.pem")
            .await?;
        canaries.push(Canary::pem(
            "the website's private key",
            std::str::from_utf8(&key)?,
        )?);
        Ok(canaries)
    }

    /// Turns the operator's password into something that is not secret any more: planted where it must be found.
    pub fn plant(&self, text: &str) -> String {
        text.replace("@password@", &self.operator.password)
    }
}

/// Whose credentials a request carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Login {
    /// The operator's.
    Mine,
    /// The operator's name with another password.
    Wrong,
    /// Nobody's.
    None,
}

/// What the backend answered.
#[derive(Clone, Debug)]
pub struct HttpAnswer {
    /// HTTP status.
    pub status: u16,
    /// The body, as text.
    pub body: String,
}

/// What a run of `provisor --format json` ended with.
#[derive(Clone, Debug)]
pub struct Report {
    /// Exit status of the program.
    pub status: provisor_harness::exec::ExitStatus,
    /// The report, as printed.
    pub json: Value,
}

impl Report {
    pub(crate) fn read(output: &Output) -> Result<Report> {
        let json = serde_json::from_slice(&output.stdout)
            .with_context(|| format!("no report was printed: {output}"))?;
        Ok(Report {
            status: output.status,
            json,
        })
    }

    /// The phases in their order.
    pub fn phases(&self) -> Vec<&str> {
        let phases = self.json["phases"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        phases
            .iter()
            .filter_map(|phase| phase["phase"].as_str())
            .collect()
    }

    /// Each node with its verdict, sorted by node.
    pub fn verdicts(&self) -> Vec<(&str, &str)> {
        let nodes = self.json["nodes"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        nodes
            .iter()
            .filter_map(|node| Some((node["node"].as_str()?, node["verdict"]["verdict"].as_str()?)))
            .collect()
    }
}

/// What a deployment would change on a host, even one that says it changed nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostTraces {
    boot_id: String,
    generation: String,
    activations: String,
}

/// Reads the traces of `host`.
pub async fn traces(host: &Machine) -> Result<HostTraces> {
    let read = async |command: &str| anyhow::Ok(host.run(command).check_ok().await?.stdout_text());
    Ok(HostTraces {
        boot_id: read("cat /proc/sys/kernel/random/boot_id").await?,
        generation: read("readlink /nix/var/nix/profiles/system").await?,
        // Systemd's own word, not that of the transport.
        activations: read(
            "journalctl -o json --output-fields=UNIT | grep -o 'provisor-switch[^\"]*' | sort -u",
        )
        .await?,
    })
}

impl HostTraces {
    /// Activation units that ever ran.
    pub fn activations(&self) -> usize {
        self.activations.lines().count()
    }
}

/// A machine's address on the fleet's network.
pub fn address(machine: &Machine) -> Result<String> {
    Ok(machine
        .address(VLAN)
        .with_context(|| format!("{} is not on {VLAN}", machine.name()))?
        .to_string())
}
