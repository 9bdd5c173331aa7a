//! The hosts of the mesh fleet: two database servers, and two nodes with three applications.

use anyhow::{Context as _, Result};
use provisor_harness::exec::{Command, Output};
use provisor_harness::machine::Machine;
use provisor_harness::ssh::KeyPair;
use provisor_harness::{ImageSpec, Lab};
use provisor_vmtests_program::{FLEET, MOUNT};

use crate::bootstrap::{Report, SUBNET, VLAN};
use crate::operator::{Operator, write_fleet};
use crate::programs::Programs;

/// The hosts, running, with nothing deployed yet.
pub struct Hosts {
    /// Where the operator sits.
    pub deployer: Machine,
    /// Will have PostgreSQL, and the fleet's state.
    pub first: Machine,
    /// Will have PostgreSQL, and the proxy.
    pub second: Machine,
    /// Will have the applications `notes` and `wiki`.
    pub one: Machine,
    /// Will have the application `chat`.
    pub two: Machine,
    operator: Operator,
    // The guests read their programs from here.
    _programs: Programs,
}

/// What the hosts boot: Debian with Nix, an idle nginx, PostgreSQL with its own cluster idle, and `jq`.
pub fn image() -> ImageSpec {
    ImageSpec::debian()
        .packages(["nix-bin", "nginx-light", "postgresql-15", "jq"])
        // The package makes a cluster, which would start with every unit named `postgresql.service`, and take its port.
        .file("/etc/postgresql/15/main/start.conf", "disabled\n")
}

/// Boots the hosts and puts the fleet's files on the deployer.
pub async fn start(lab: &Lab, programs: Programs) -> Result<Hosts> {
    lab.vlan(VLAN).subnet(SUBNET)?;
    let key = KeyPair::generate();
    let image = image();
    let host = |name: &str, memory_mib| {
        lab.machine(name)
            .image(&image)
            .on_vlan(VLAN)
            .memory_mib(memory_mib)
    };
    let deployer = host("deployer", 448).share(MOUNT, programs.folder()).file(
        "/root/.ssh/id_ed25519",
        key.private(),
        0o600,
    );
    let target = |name, memory_mib| host(name, memory_mib).authorize(key.public());
    let [deployer, first, second, one, two] = lab
        .together([
            deployer,
            target("first", 384),
            target("second", 384),
            target("one", 256),
            target("two", 256),
        ])
        .start()
        .await?;
    let hosts = Hosts {
        deployer,
        first,
        second,
        one,
        two,
        operator: Operator::new()?,
        _programs: programs,
    };
    write_fleet(&hosts.deployer, "mesh", &hosts.targets()).await?;
    for target in hosts.targets() {
        target.wait_for_open_port(22).await?;
    }
    Ok(hosts)
}

impl Hosts {
    /// All that are deployed to.
    pub fn targets(&self) -> [&Machine; 4] {
        [&self.first, &self.second, &self.one, &self.two]
    }

    /// The three applications.
    pub fn applications(&self) -> [Application<'_>; 3] {
        [(&self.one, "notes"), (&self.one, "wiki"), (&self.two, "chat")]
            .map(|(node, name)| Application { node, name })
    }

    /// Runs `provisor --format json` and reads the report that it prints.
    pub async fn report(&self, arguments: &[&str]) -> Result<Report> {
        self.operator.report(&self.deployer, arguments).await
    }

    /// Runs `provisor` for a person.
    pub async fn provisor(&self, arguments: &[&str]) -> Result<Output> {
        Ok(self.deployer.run(self.operator.provisor(arguments)).await?)
    }

    /// Replaces the first occurrence of `from` in a file of the fleet, and returns the whole text from before.
    pub async fn edit(&self, file: &str, from: &str, to: &str) -> Result<String> {
        let path = format!("{FLEET}/{file}");
        let before = String::from_utf8(self.deployer.get(&path).await?)?;
        let (head, tail) = before
            .split_once(from)
            .with_context(|| format!("{file} has no `{from}`"))?;
        self.write(file, &format!("{head}{to}{tail}")).await?;
        Ok(before)
    }

    /// Writes a file of the fleet.
    pub async fn write(&self, file: &str, text: &str) -> Result<()> {
        Ok(self.deployer.put(&format!("{FLEET}/{file}"), text, 0o644).await?)
    }
}

/// An application, which knows its two files and nothing else.
#[derive(Clone, Copy)]
pub struct Application<'a> {
    /// Where it runs.
    pub node: &'a Machine,
    /// Its component.
    pub name: &'a str,
}

/// Logs in with what the binding file and the password file say. Arguments: binding, password file, role, database, SQL.
const LOG_IN: &str = r#"
host=$(jq --raw-output .host "$1") && port=$(jq .serves.port "$1") && PGPASSWORD=$(cat "$2") || exit 99
export PGPASSWORD
exec psql -X --tuples-only --no-align --host="$host" --port="$port" --username="$3" --dbname="$4" --command="$5"
"#;

impl Application<'_> {
    /// Its role, and its database.
    pub fn role(&self) -> String {
        format!("{}_{}", self.name, self.node.name())
    }

    /// The grant that it has at `server`.
    pub fn grant(&self, server: &Machine) -> String {
        format!(
            "{}/{}/postgresql/{}/postgresql",
            self.node.name(),
            self.name,
            server.name()
        )
    }

    /// Runs SQL in a database of the server that its binding file names.
    pub async fn sql(&self, database: &str, sql: &str) -> Result<Output> {
        let binding = format!("/etc/{}/database.json", self.name);
        let (password_file, role) = (self.password_file(), self.role());
        let words: [&str; 5] = [&binding, &password_file, &role, database, sql];
        let command = Command::new("sh").args(["-c", LOG_IN, "sh"]).args(words);
        Ok(self.node.run(command).await?)
    }

    /// What its password file holds.
    pub async fn password(&self) -> Result<Vec<u8>> {
        Ok(self.node.get(&self.password_file()).await?)
    }

    fn password_file(&self) -> String {
        format!(
            "/var/lib/provisor/credentials/taken/postgresql/{}/{}/password",
            self.node.name(),
            self.name
        )
    }
}

/// Runs SQL on a server as its superuser.
pub async fn sql_on(server: &Machine, sql: &str) -> Result<String> {
    let psql = "cd / && exec runuser -u postgres -- psql -X -A -t -h /run/postgresql -d postgres -c \"$1\"";
    let command = Command::new("sh").args(["-c", psql, "sh", sql]);
    Ok(server
        .run(command)
        .check_ok()
        .await?
        .stdout_text()
        .trim()
        .to_owned())
}
