//! What is refused at first sight: one clear error with what to do, its exit code, and nothing left behind.
#![allow(clippy::unwrap_used, reason = "test code outside of test functions")]

use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use provisor_backend::store::KeepVersions;
use provisor_backend::users::hash_line;
use provisor_backend::{BodyLimit, Config, Handle, Password, Server};
use rstest::rstest;

const PASSWORD: &str = "canary-71c0";

/// A fleet's files, and a home for what its deployer keeps, which is not there yet.
struct Deployer {
    folder: tempfile::TempDir,
}

impl Deployer {
    fn new() -> Deployer {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("fleet/fleet.toml", FLEET),
            ("fleet/components/website.toml", WEBSITE),
            ("fleet/components/state-backend.toml", STATE_BACKEND),
            ("fleet/system.nix", "{ node }: throw \"nothing may be built\"\n"),
            ("bin/fake_tofu", "#!/bin/sh\necho 'OpenTofu v1.10.6'\n"),
        ] {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let deployer = Deployer { folder };
        std::fs::set_permissions(deployer.path("bin/fake_tofu"), PermissionsExt::from_mode(0o755)).unwrap();
        deployer
    }

    fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    fn replace(&self, file: &str, old: &str, new: &str) {
        let path = self.path(file);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(old), "{file} has no {old:?}");
        std::fs::write(path, text.replace(old, new)).unwrap();
    }

    /// `provisor tf …` of this fleet, with no program on PATH but those it is given.
    fn tf(&self, backend: SocketAddr, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_provisor"));
        command
            .env_clear()
            .env("HOME", self.path("home"))
            .env("TF_HTTP_ADDRESS", format!("http://{backend}/state/fleet"))
            .env("TF_HTTP_USERNAME", "alice")
            .env("TF_HTTP_PASSWORD", PASSWORD)
            .env("TF_HTTP_RETRY_MAX", "0")
            .arg("--fleet")
            .arg(self.path("fleet"))
            .arg("--tofu")
            .arg(self.path("bin/fake_tofu"))
            .arg("tf")
            .args(arguments);
        command
    }
}

/// An address at which nobody listens.
fn nobody() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

/// A real backend that knows `alice` by another password.
fn backend(folder: &Path) -> (tokio::runtime::Runtime, SocketAddr, Handle) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let users = folder.join("users");
    let line = hash_line("alice", &Password::new("another")).unwrap();
    std::fs::write(&users, format!("{line}\n")).unwrap();
    std::fs::set_permissions(&users, PermissionsExt::from_mode(0o600)).unwrap();
    let config = Config {
        listen: "127.0.0.1:0".parse().unwrap(),
        database: folder.join("states.sqlite"),
        users,
        body_limit: BodyLimit::default(),
        keep_versions: KeepVersions::default(),
    };
    let (address, handle) = runtime.block_on(Server::bind(config)).unwrap();
    (runtime, address, handle)
}

/// The error is there, with what to do; the password is not; the deployer's home is as empty as before.
#[track_caller]
fn refused(deployer: &Deployer, output: &Output, code: i32, texts: &[&str]) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    for text in texts {
        assert!(stderr.contains(text), "{text:?} is missing in:\n{stderr}");
    }
    assert!(!stderr.contains(PASSWORD), "{stderr}");
    assert!(!deployer.path("home").exists(), "something was left in the home");
}

#[test]
fn a_backend_that_is_away_is_refused_before_anything_is_made() {
    let deployer = Deployer::new();
    let output = deployer.tf(nobody(), &["apply"]).output().unwrap();
    refused(&deployer, &output, 3, &["cannot be reached", "--bootstrap"]);
}

#[test]
fn a_wrong_password_is_refused_before_anything_is_made() {
    let deployer = Deployer::new();
    let (_runtime, address, _handle) = backend(deployer.folder.path());
    let output = deployer.tf(address, &["apply"]).output().unwrap();
    refused(
        &deployer,
        &output,
        3,
        &["refuses these credentials (401)", "TF_HTTP_PASSWORD"],
    );
}

#[rstest]
#[case::apply("apply")]
#[case::plan("plan")]
fn a_bootstrap_with_a_verb_is_refused(#[case] verb: &str) {
    let deployer = Deployer::new();
    let output = deployer.tf(nobody(), &["--bootstrap", verb]).output().unwrap();
    refused(
        &deployer,
        &output,
        3,
        &["--bootstrap", verb, "leave out one of both"],
    );
}

#[test]
fn three_mistakes_in_two_files_are_shown_with_their_places() {
    let deployer = Deployer::new();
    deployer.replace("fleet/fleet.toml", "[\"website\"]", "[\"webiste\"]");
    deployer.replace(
        "fleet/fleet.toml",
        "alice]\nenvironment = \"test\"",
        "alice]\nenvironment = \"tset\"",
    );
    deployer.replace("fleet/components/website.toml", "domain =", "domian =");
    let output = deployer.tf(nobody(), &["--bootstrap"]).output().unwrap();
    let places = [
        "unknown component",
        "unknown environment",
        "no key `domian`",
        "fleet.toml:25:15",
        "fleet.toml:22:15",
        "website.toml:2:1",
        "write `website`",
        "write `test`",
        "write `domain`",
    ];
    refused(&deployer, &output, 3, &places);
}

#[test]
fn without_opentofu_or_terraform_the_error_says_how_to_get_one() {
    let deployer = Deployer::new();
    let mut command = Command::new(env!("CARGO_BIN_EXE_provisor"));
    let output = command
        .env_clear()
        .env("HOME", deployer.path("home"))
        .env("PATH", deployer.path("bin"))
        .arg("--fleet")
        .arg(deployer.path("fleet"))
        .args(["tf", "--bootstrap"])
        .output()
        .unwrap();
    refused(
        &deployer,
        &output,
        1,
        &["install OpenTofu", "--tofu", "./dev setup"],
    );
}

const FLEET: &str = r#"name = "fleet"

[ssh]
user = "root"

[networks.mesh]
cidr = "10.90.0.0/24"

[environments.test.resources."certificates".ssl]
issuer = "internal-ca"

[groups.hosting-provider]
environment = "test"
backend = "backend"

[groups.hosting-provider.nodes.backend]
address = "10.90.0.1"
networks.mesh = "10.90.0.1"
components = ["state-backend"]

[groups.alice]
environment = "test"

[groups.alice.nodes.app]
components = ["website"]
address = "10.90.0.2"
networks.mesh = "10.90.0.2"
"#;

const WEBSITE: &str = r#"[resources."main".ssl]
domain = "app.example.test"
"#;

const STATE_BACKEND: &str = r#"provides = [{ name = "state-backend", scope = "mesh", serves = { port = 8080 } }]
"#;
