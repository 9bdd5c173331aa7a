//! A fleet bootstraps itself in real guests: a deployer with no backend, a backend host, an application host.
//!
//! The graph is of these tests' own groups (`fleets/bootstrap/`), run by a program with their own setup (`program/`).

use anyhow::{Result, ensure};
use provisor_harness::exec::{Command, ExitStatus};
use provisor_harness::{Lab, lab};
use provisor_vmtests::bootstrap::{self, DOMAIN, Hosts, Login, STATE_HOME, TOFU, traces};
use provisor_vmtests::{leaks, programs, tls};
use rstest::rstest;

/// The fleet's CA, as `provisor ca` prints it, on the guest that is the client.
const CA: &str = "/root/ca.pem";

#[rstest]
#[tokio::test]
async fn a_fleet_bootstraps_the_backend_of_its_own_state(lab: Lab) -> Result<()> {
    let hosts = start(&lab).await?;

    // One run on a fresh fleet: from local state to the backend that it deployed.
    let first = hosts.report(&["tf", "--bootstrap"]).await?;
    ensure!(first.status == ExitStatus::Code(0), "{:#}", first.json);
    assert_eq!(
        first.phases(),
        [
            "resolve",
            "grants",
            "build",
            "observe",
            "local-cycle",
            "wait-for-backend",
            "migrate",
            "steady-cycle"
        ]
    );
    assert_eq!(first.verdicts(), [("app", "deployed"), ("backend", "deployed")]);
    let marker = hosts
        .deployer
        .run(format!("cat {STATE_HOME}/*/marker.json"))
        .check_ok()
        .await?
        .stdout_text();
    assert!(marker.contains("\"migrated\""), "{marker}");

    the_backend_holds_the_state(&hosts).await?;
    tls_ends_at_the_application(&hosts).await?;
    another_run_changes_nothing(&hosts).await?;
    Ok(lab.stop().await?)
}

/// Asked over HTTP, and by the program that will read it next.
async fn the_backend_holds_the_state(hosts: &Hosts) -> Result<()> {
    let answer = hosts.ask_backend(Login::Mine).await?;
    assert_eq!(answer.status, 200);
    let state: serde_json::Value = serde_json::from_str(&answer.body)?;
    assert_eq!(state["version"], 4);
    let managed = |resource: &&serde_json::Value| resource["type"] == "terraform_data";
    assert_eq!(
        state["resources"]
            .as_array()
            .map(|all| all.iter().filter(managed).count()),
        Some(2)
    );

    assert_eq!(hosts.ask_backend(Login::None).await?.status, 401);
    assert_eq!(hosts.ask_backend(Login::Wrong).await?.status, 401);

    let pull = Command::shell(format!(
        "mkdir -p /root/elsewhere && cd /root/elsewhere && cat > main.tf &&
         {TOFU} init -input=false >&2 && {TOFU} state pull"
    ));
    let pull = hosts
        .as_operator(pull)
        .env("TF_HTTP_ADDRESS", hosts.state_address()?)
        .stdin("terraform {\n  backend \"http\" {}\n}\n");
    let pulled: serde_json::Value =
        serde_json::from_slice(&hosts.deployer.run(pull).check_ok().await?.stdout)?;
    assert_eq!(pulled, state);
    Ok(())
}

/// The chain verifies against our CA alone, for the right name, and the key pair is the one the `ssl` resource delivered.
async fn tls_ends_at_the_application(hosts: &Hosts) -> Result<()> {
    let client = &hosts.backend;
    let ca = hosts
        .deployer
        .run(hosts.provisor(&["ca"]))
        .check_ok()
        .await?
        .stdout;
    client.put(CA, ca, 0o644).await?;

    let ours = tls::connect(client, &hosts.app, CA).await?;
    ensure!(ours.verified(), "{}", ours.text());
    let file = hosts
        .app
        .get("/var/lib/provisor/grants/website/main/certificate.pem")
        .await?;
    assert_eq!(
        tls::fingerprint(client, ours.chain()).await?,
        tls::fingerprint(client, file).await?
    );

    let other_name = tls::connect_for(client, &hosts.app, CA, "other.example.test").await?;
    ensure!(
        !other_name.verified(),
        "a certificate for {DOMAIN} was taken for another name"
    );

    let second_ca = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=second \
                     -keyout /root/second.key -out /root/second.pem";
    client.run(second_ca).check_ok().await?;
    let strangers = tls::connect(client, &hosts.app, "/root/second.pem").await?;
    ensure!(
        !strangers.verified(),
        "a CA that signed nothing here was believed"
    );
    Ok(())
}

/// Steady path, nothing deployed, and a plan that shows no changes.
async fn another_run_changes_nothing(hosts: &Hosts) -> Result<()> {
    let before = (traces(&hosts.backend).await?, traces(&hosts.app).await?);
    assert_eq!((before.0.activations(), before.1.activations()), (1, 1));

    let second = hosts.report(&["tf", "apply"]).await?;
    ensure!(second.status == ExitStatus::Code(0), "{:#}", second.json);
    assert_eq!(
        second.phases(),
        ["resolve", "grants", "build", "observe", "steady-cycle"]
    );
    assert_eq!(
        second.verdicts(),
        [("app", "unchanged"), ("backend", "unchanged")]
    );

    let plan = hosts.report(&["tf", "plan"]).await?;
    ensure!(
        plan.status == ExitStatus::Code(0),
        "the plan shows changes: {:#}",
        plan.json
    );
    assert_eq!(plan.json["changes"]["any"], false);

    assert_eq!((traces(&hosts.backend).await?, traces(&hosts.app).await?), before);
    Ok(())
}

#[rstest]
#[tokio::test]
async fn no_secret_of_a_bootstrap_leaks_and_a_planted_leak_is_found(lab: Lab) -> Result<()> {
    let hosts = start(&lab).await?;
    for host in hosts.all() {
        leaks::record_command_lines(host).await?;
    }
    let first = hosts.report(&["tf", "--bootstrap"]).await?;
    ensure!(first.status == ExitStatus::Code(0), "{:#}", first.json);
    let canaries = hosts.canaries().await?;
    assert_eq!(leaks::search_all(&hosts, lab.artifacts(), &canaries).await?, []);

    // The same search after a fleet whose file holds the password: into the plan, the store, the closure, the host.
    let careless = "\n[resources.\"careless\".nixos-module.module.environment.etc.\"motd.d/careless\"]\ntext = \"@password@\"\n";
    let careless = hosts.plant(careless);
    let append = Command::shell("cat >> /root/fleet/components/website.toml").stdin(careless);
    hosts.deployer.run(append).check_ok().await?;
    let second = hosts.report(&["tf", "apply"]).await?;
    ensure!(second.status == ExitStatus::Code(0), "{:#}", second.json);
    let found = leaks::search_all(&hosts, lab.artifacts(), &canaries).await?;
    for machine in ["deployer", "app"] {
        let in_store = |leak: &leaks::Leak| leak.machine == machine && leak.path.starts_with("/nix/store/");
        assert!(
            found.iter().any(in_store),
            "not found in the store of {machine}: {found:#?}"
        );
    }

    // And after one on a command line that was over at once.
    hosts.app.run(hosts.plant(": @password@")).check_ok().await?;
    let found = leaks::search_all(&hosts, lab.artifacts(), &canaries).await?;
    let on_command_line = |leak: &leaks::Leak| leak.machine == "app" && leak.path.ends_with("/command-lines");
    assert!(found.iter().any(on_command_line), "{found:#?}");
    Ok(lab.stop().await?)
}

async fn start(lab: &Lab) -> Result<Hosts> {
    let timeline = lab.timeline().clone();
    let programs =
        tokio::task::spawn_blocking(move || programs::build(&|line| timeline.note("programs", line)))
            .await??;
    bootstrap::start(lab, programs).await
}
