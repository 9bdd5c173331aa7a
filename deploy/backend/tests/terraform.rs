//! The server as OpenTofu or Terraform meets it: the real program from PATH, on loopback.

#![allow(clippy::unwrap_used, reason = "a test may panic, and its helpers too")]

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use rstest::{fixture, rstest};
use tempfile::TempDir;

use support::{PASSWORD, TestServer, USER, lock, state};

mod support;

const LOCAL: &str = "";
const REMOTE: &str = "terraform {\n  backend \"http\" {}\n}\n";

/// A working directory whose state is at a server's `/state/web`.
struct Deployment {
    server: TestServer,
    folder: TempDir,
    program: PathBuf,
}

#[fixture]
fn deployment() -> Deployment {
    let deployment = Deployment {
        server: TestServer::start(),
        folder: tempfile::tempdir().unwrap(),
        program: program(),
    };
    deployment.configure(REMOTE, "one");
    deployment
}

/// OpenTofu, else Terraform, else the OpenTofu that `./dev` fetched.
fn program() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    ["tofu", "terraform"]
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .chain(fetched())
        .find(|candidate| candidate.is_file())
        .expect("neither tofu nor terraform is on PATH; install one, or have `./dev setup` fetch OpenTofu")
}

/// `opentofu/VERSION/tofu` in the user's cache.
fn fetched() -> Vec<PathBuf> {
    let folder = |name: &str, below: &str| Some(PathBuf::from(std::env::var_os(name)?).join(below));
    let cache = folder("PROVISOR_CACHE", "")
        .or_else(|| folder("XDG_CACHE_HOME", "provisor"))
        .or_else(|| folder("HOME", ".cache/provisor"));
    let releases = cache.and_then(|cache| fs::read_dir(cache.join("opentofu")).ok());
    releases
        .into_iter()
        .flatten()
        .filter_map(|release| Some(release.ok()?.path().join("tofu")))
        .collect()
}

impl Deployment {
    /// Writes the configuration: one resource that needs no provider from anywhere.
    fn configure(&self, backend: &str, content: &str) {
        let resource =
            format!("resource \"terraform_data\" \"web\" {{\n  triggers_replace = \"{content}\"\n}}\n");
        fs::write(self.folder.path().join("main.tf"), format!("{backend}{resource}")).unwrap();
    }

    fn run(&self, args: &[&str]) -> Run {
        self.run_as(PASSWORD, "/state/web", args)
    }

    /// Runs the program with no settings but ours.
    fn run_as(&self, password: &str, path: &str, args: &[&str]) -> Run {
        let address = format!("http://{}{path}", self.server.address());
        let output = Command::new(&self.program)
            .args(args)
            .current_dir(self.folder.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.folder.path())
            .env("CHECKPOINT_DISABLE", "1")
            .env("TF_IN_AUTOMATION", "1")
            .env("TF_CLI_ARGS", "-no-color")
            .env("TF_HTTP_ADDRESS", &address)
            .env("TF_HTTP_LOCK_ADDRESS", &address)
            .env("TF_HTTP_UNLOCK_ADDRESS", &address)
            .env("TF_HTTP_USERNAME", USER)
            .env("TF_HTTP_PASSWORD", password)
            .env("TF_HTTP_RETRY_MAX", "0")
            .output()
            .unwrap();
        Run::from(output)
    }

    /// Sets the directory up and applies.
    fn deploy(&self) {
        self.run(&["init", "-input=false"]).succeeds();
        self.run(&["apply", "-auto-approve", "-input=false"]).succeeds();
    }

    /// What the server holds; empty where it holds nothing.
    fn stored(&self) -> String {
        let reply = self.server.send("GET", "/state/web", "");
        if reply.status == 200 {
            reply.body
        } else {
            String::new()
        }
    }

    fn assert_unlocked(&self) {
        assert_eq!(self.server.send("LOCK", "/state/web", &lock("probe")).status, 200);
        assert_eq!(
            self.server.send("UNLOCK", "/state/web", &lock("probe")).status,
            200
        );
    }
}

/// A run that is over.
struct Run {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

impl Run {
    fn succeeds(self) -> Self {
        assert_eq!(self.code, Some(0), "{}{}", self.stdout, self.stderr);
        self
    }

    fn fails_saying(self, text: &str) -> Self {
        assert_eq!(self.code, Some(1), "{}{}", self.stdout, self.stderr);
        // The program wraps its lines, and draws a border before each.
        let words = self.stderr.replace(['│', '\n'], " ");
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(text), "{text:?} is not in\n{}", self.stderr);
        self
    }
}

/// A field of a state: the text between `"name": ` and the end of its line.
fn field<'a>(state: &'a str, name: &str) -> &'a str {
    let start = format!("\n  \"{name}\": ");
    let (_, rest) = state
        .split_once(&start)
        .unwrap_or_else(|| panic!("no {name} in {state}"));
    rest.lines().next().unwrap().trim_end_matches(',')
}

#[rstest]
fn a_deployment_lives_from_init_to_destroy(deployment: Deployment) {
    deployment.deploy();
    let applied = deployment.stored();
    assert!(applied.contains("\"type\": \"terraform_data\""), "{applied}");
    deployment
        .run(&["plan", "-detailed-exitcode", "-input=false"])
        .succeeds();
    assert_eq!(
        deployment.run(&["state", "pull"]).succeeds().stdout.trim(),
        applied.trim()
    );

    deployment.configure(REMOTE, "two");
    deployment
        .run(&["apply", "-auto-approve", "-input=false"])
        .succeeds();
    let changed = deployment.stored();
    assert_eq!(field(&changed, "lineage"), field(&applied, "lineage"));
    assert_ne!(field(&changed, "serial"), field(&applied, "serial"));

    deployment
        .run(&["destroy", "-auto-approve", "-input=false"])
        .succeeds();
    let destroyed = deployment.stored();
    assert_eq!(field(&destroyed, "resources"), "[]");
    assert_eq!(field(&destroyed, "lineage"), field(&applied, "lineage"));
    deployment.assert_unlocked();
    deployment.deploy();
}

#[rstest]
fn a_lock_of_somebody_else_stops_a_run_until_it_is_forced(deployment: Deployment) {
    deployment.deploy();
    let before = deployment.stored();
    let id = "3b241101-e2bb-4255-8caf-4136c566a962";
    assert_eq!(
        deployment.server.send("LOCK", "/state/web", &lock(id)).status,
        200
    );

    deployment.configure(REMOTE, "two");
    let blocked = deployment.run(&["apply", "-auto-approve", "-input=false"]);
    blocked
        .fails_saying("Error acquiring the state lock")
        .fails_saying(id);
    assert_eq!(deployment.stored(), before);

    deployment.run(&["force-unlock", "-force", id]).succeeds();
    deployment
        .run(&["apply", "-auto-approve", "-input=false"])
        .succeeds();
    assert_ne!(deployment.stored(), before);
}

#[rstest]
fn a_wrong_password_fails_and_leaves_nothing(deployment: Deployment) {
    let refused = deployment.run_as("wrong", "/state/web", &["init", "-input=false"]);
    refused.fails_saying("HTTP remote state endpoint requires auth");
    deployment.run(&["init", "-input=false"]).succeeds();
    let refused = deployment.run_as("wrong", "/state/web", &["apply", "-auto-approve", "-input=false"]);
    refused.fails_saying("HTTP remote state endpoint requires auth");
    assert_eq!(deployment.stored(), "");
    assert!(!deployment.folder.path().join("errored.tfstate").exists());
    deployment.assert_unlocked();
}

#[rstest]
fn a_trailing_slash_in_the_address_keeps_the_state(deployment: Deployment) {
    let slashed = |args: &[&str]| deployment.run_as(PASSWORD, "/state//web/", args).succeeds();
    slashed(&["init", "-input=false"]);
    slashed(&["apply", "-auto-approve", "-input=false"]);
    let first = deployment.stored();
    assert_eq!(field(&first, "version"), "4");
    deployment.configure(REMOTE, "two");
    slashed(&["apply", "-auto-approve", "-input=false"]);
    assert_ne!(deployment.stored(), first);
    deployment.assert_unlocked();
}

#[rstest]
fn a_local_state_migrates_to_an_empty_key(deployment: Deployment) {
    deployment.configure(LOCAL, "one");
    deployment.deploy();
    assert_eq!(deployment.stored(), "");
    deployment.configure(REMOTE, "one");
    deployment
        .run(&["init", "-input=false", "-migrate-state", "-force-copy"])
        .succeeds();
    deployment
        .run(&["plan", "-detailed-exitcode", "-input=false"])
        .succeeds();
    assert!(deployment.stored().contains("\"type\": \"terraform_data\""));
    deployment.assert_unlocked();
}

#[rstest]
fn a_forced_migration_does_not_overwrite_a_stranger(deployment: Deployment) {
    let stranger = state("00000000-0000-4000-8000-000000000000", 1).replace("[{}]", REMOTE_RESOURCE);
    assert_eq!(
        deployment.server.send("POST", "/state/web", &stranger).status,
        200
    );
    deployment.configure(LOCAL, "one");
    deployment.deploy();
    deployment.configure(REMOTE, "one");
    deployment
        .run(&["init", "-input=false", "-migrate-state", "-force-copy"])
        .fails_saying("HTTP error: 409");
    assert_eq!(deployment.stored(), stranger);
    deployment.assert_unlocked();
}

/// The resources of a state that the program can read.
const REMOTE_RESOURCE: &str = r#"[{"mode":"managed","type":"terraform_data","name":"other",
    "provider":"provider[\"terraform.io/builtin/terraform\"]",
    "instances":[{"schema_version":0,"attributes":{"id":"x","input":null,"output":null,"triggers_replace":null}}]}]"#;

#[rstest]
fn going_back_by_a_forced_push_is_refused(deployment: Deployment) {
    deployment.deploy();
    let old = deployment.folder.path().join("old.tfstate");
    fs::write(&old, deployment.stored()).unwrap();
    for content in ["two", "three"] {
        deployment.configure(REMOTE, content);
        deployment
            .run(&["apply", "-auto-approve", "-input=false"])
            .succeeds();
    }
    let newest = deployment.stored();
    deployment
        .run(&["state", "push", "-force", "old.tfstate"])
        .fails_saying("HTTP error: 409");
    assert_eq!(deployment.stored(), newest);
}
