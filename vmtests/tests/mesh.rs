//! Who answers whom, in real guests: three applications on two nodes use one PostgreSQL on a third over a private network,
//! a pin moves one of them to a fourth, and a proxy there serves their routes.

use anyhow::{Result, ensure};
use provisor_harness::exec::{Command, ExitStatus};
use provisor_harness::{Lab, lab};
use provisor_vmtests::bootstrap::{Report, address, traces};
use provisor_vmtests::mesh::{self, Application, Hosts, sql_on};
use provisor_vmtests::programs;
use rstest::rstest;

#[rstest]
#[tokio::test]
async fn consumers_have_a_role_each_and_a_pin_moves_one_to_another_server(lab: Lab) -> Result<()> {
    let hosts = start(&lab).await?;
    let first = hosts.report(&["tf", "--bootstrap"]).await?;
    well(&first)?;
    let all = ["first", "one", "second", "two"];
    assert_eq!(first.verdicts(), all.map(|node| (node, "deployed")));

    each_application_opens_its_own_database_and_no_other(&hosts).await?;
    the_proxy_serves_the_routes_that_others_contribute(&hosts).await?;
    a_node_outside_the_network_is_refused_before_anything_is_touched(&hosts).await?;
    a_pin_moves_one_application_to_the_second_server(&hosts).await?;
    a_rotation_reaches_both_ends(&hosts).await?;
    Ok(lab.stop().await?)
}

async fn each_application_opens_its_own_database_and_no_other(hosts: &Hosts) -> Result<()> {
    for application in hosts.applications() {
        let role = application.role();
        let fill = format!("CREATE TABLE of_mine AS SELECT '{}' AS value", application.name);
        application.sql(&role, &fill).await?.check_ok()?;
        assert_eq!(ask(&application, "SELECT current_user").await?, role);
    }
    for application in hosts.applications() {
        assert_eq!(
            ask(&application, "SELECT value FROM of_mine").await?,
            application.name
        );
        for other in hosts.applications() {
            if other.name != application.name {
                let answer = application
                    .sql(&other.role(), "SELECT value FROM of_mine")
                    .await?;
                ensure!(answer.status == ExitStatus::Code(2), "{answer}");
            }
        }
        let answer = application.sql("postgres", "SELECT 1").await?;
        ensure!(answer.status == ExitStatus::Code(2), "{answer}");
    }
    // Not by the server's list of addresses alone: a role may not, wherever it comes from.
    let may_open = "SELECT count(*) FROM pg_roles, pg_database WHERE rolname ~ '_(one|two)$' AND datname ~ '_(one|two)$' \
                    AND has_database_privilege(rolname, datname, 'CONNECT')";
    assert_eq!(sql_on(&hosts.first, may_open).await?, "3", "each its own");
    Ok(())
}

async fn the_proxy_serves_the_routes_that_others_contribute(hosts: &Hosts) -> Result<()> {
    hosts.second.wait_for_open_port(8000).await?;
    let proxy = format!("http://{}:8000/", address(&hosts.second)?);
    for application in hosts.applications() {
        let host = format!("Host: {}.example.test", application.name);
        let curl =
            Command::new("curl").args(["--silent", "--show-error", "--include", "--header", &host, &proxy]);
        let answer = hosts.deployer.run(curl).check_ok().await?.stdout_text();
        ensure!(
            answer.ends_with(&format!("this is {}", application.name)),
            "{answer}"
        );
        let from = format!("Contributed-By: {}/{}", application.node.name(), application.name);
        ensure!(answer.contains(&from), "{answer}");
    }
    Ok(())
}

async fn a_node_outside_the_network_is_refused_before_anything_is_touched(hosts: &Hosts) -> Result<()> {
    let before = all_traces(hosts).await?;
    let outside = "[groups.alice.nodes.outside]\naddress = \"10.90.0.99\"\ncomponents = [\"chat\"]\n\n[groups.alice.nodes.two]";
    let fleet = hosts
        .edit("fleet.toml", "[groups.alice.nodes.two]", outside)
        .await?;
    let pin = "[outside]\npostgresql = { node = \"first\", component = \"postgresql\" }\n\n[two]";
    let pins = hosts.edit("pins.toml", "[two]", pin).await?;

    let refused = hosts.report(&["tf", "apply"]).await?;
    assert_eq!(refused.status, ExitStatus::Code(3), "{:#}", refused.json);
    let said = refused.json.to_string();
    ensure!(
        said.contains("no-shared-network") && said.contains("outside"),
        "{said}"
    );
    assert_eq!(all_traces(hosts).await?, before);

    hosts.write("fleet.toml", &fleet).await?;
    hosts.write("pins.toml", &pins).await
}

async fn a_pin_moves_one_application_to_the_second_server(hosts: &Hosts) -> Result<()> {
    let [notes, wiki, chat] = hosts.applications();
    let old = chat.password().await?;
    let pin = ["pin", "two", "postgresql", "second", "postgresql"];
    hosts.provisor(&pin).await?.check_ok()?;
    let moved = hosts.report(&["tf", "apply"]).await?;
    well(&moved)?;
    assert_eq!(
        moved.verdicts(),
        [
            ("first", "deployed"),
            ("one", "unchanged"),
            ("second", "deployed"),
            ("two", "deployed")
        ]
    );

    // A new login at the new server, with a database of its own, which is empty.
    ensure!(chat.password().await? != old, "the password is the old one");
    assert_eq!(ask(&chat, "SELECT current_user").await?, chat.role());
    assert_eq!(
        ask(
            &chat,
            "SELECT count(*) FROM pg_tables WHERE tablename = 'of_mine'"
        )
        .await?,
        "0"
    );
    assert_eq!(
        sql_on(&hosts.second, "SELECT count(*) FROM pg_roles WHERE rolcanlogin").await?,
        "2"
    );

    // The old role is locked, and its data is still there.
    let locked = format!(
        "SELECT rolcanlogin, rolpassword IS NULL FROM pg_authid WHERE rolname = '{}'",
        chat.role()
    );
    assert_eq!(sql_on(&hosts.first, &locked).await?, "f|t");
    let databases = format!(
        "SELECT count(*) FROM pg_database WHERE datname = '{}'",
        chat.role()
    );
    assert_eq!(sql_on(&hosts.first, &databases).await?, "1");

    for stays in [notes, wiki] {
        assert_eq!(ask(&stays, "SELECT value FROM of_mine").await?, stays.name);
    }
    Ok(())
}

async fn a_rotation_reaches_both_ends(hosts: &Hosts) -> Result<()> {
    let [notes, wiki, _] = hosts.applications();
    let (old, of_wiki) = (notes.password().await?, wiki.password().await?);
    let rotated = hosts
        .report(&["tf", "--rotate", &notes.grant(&hosts.first), "apply"])
        .await?;
    well(&rotated)?;
    assert_eq!(
        rotated.verdicts(),
        [
            ("first", "deployed"),
            ("one", "deployed"),
            ("second", "unchanged"),
            ("two", "unchanged")
        ]
    );
    ensure!(notes.password().await? != old, "the password is the old one");
    ensure!(
        wiki.password().await? == of_wiki,
        "another's password was rotated"
    );
    for application in [notes, wiki] {
        assert_eq!(
            ask(&application, "SELECT value FROM of_mine").await?,
            application.name
        );
    }
    Ok(())
}

/// What a query in the application's own database answers.
async fn ask(application: &Application<'_>, sql: &str) -> Result<String> {
    let answer = application.sql(&application.role(), sql).await?.check_ok()?;
    Ok(answer.stdout_text().trim().to_owned())
}

async fn all_traces(hosts: &Hosts) -> Result<Vec<provisor_vmtests::bootstrap::HostTraces>> {
    let mut all = Vec::new();
    for host in hosts.targets() {
        all.push(traces(host).await?);
    }
    Ok(all)
}

fn well(report: &Report) -> Result<()> {
    ensure!(report.status == ExitStatus::Code(0), "{:#}", report.json);
    Ok(())
}

async fn start(lab: &Lab) -> Result<Hosts> {
    let timeline = lab.timeline().clone();
    let programs =
        tokio::task::spawn_blocking(move || programs::build(&|line| timeline.note("programs", line)))
            .await??;
    mesh::start(lab, programs).await
}
