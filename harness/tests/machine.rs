//! What is done to real machines: from outside, to their disks, to their clocks, and their end.

use std::time::{Duration, SystemTime};

use anyhow::Result;
use provisor_harness::cache::Cache;
use provisor_harness::image::Image;
use provisor_harness::machine::{Brought, Skew};
use provisor_harness::ssh::{KeyPair, Login};
use provisor_harness::{Command, ExitStatus, ImageSpec, Lab, Machine, lab};
use rstest::rstest;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

#[rstest]
#[tokio::test]
async fn disks_come_before_and_while_it_runs_and_one_can_be_full(lab: Lab) -> Result<()> {
    let app = lab.machine("app").disk("data", 64).hot_disks(2).start().await?;
    app.wait_for_file("/dev/disk/by-id/virtio-data").await?;
    let (hot, second) = (app.add_disk("hot", 32).await?, app.add_disk("second", 16).await?);
    let sizes = format!(
        "blockdev --getsize64 /dev/disk/by-id/virtio-data {} {}",
        hot.display(),
        second.display()
    );
    let sizes = app.run(sizes).check_ok().await?.stdout_text();
    assert_eq!(sizes, "67108864\n33554432\n16777216");
    let third = app.add_disk("third", 16).await.unwrap_err();
    assert!(third.to_string().contains("QEMU refused `device_add`"), "{third}");

    let write = "dd if=/dev/zero of=/var/lib/file bs=4096 count=1";
    let full = app.fill_disk("/var/lib").await?;
    let refused = app.run(write).check_err().await?.stderr_text();
    assert!(refused.contains("No space left on device"), "{refused}");
    full.free().await?;
    app.run(write).check_ok().await?;
    Ok(lab.stop().await?)
}

#[rstest]
#[tokio::test]
async fn a_machine_is_paused_reset_set_to_another_time_and_shut_down(lab: Lab) -> Result<()> {
    let app = lab.machine("app").start().await?;
    app.pause().await?;
    let asked = tokio::time::timeout(Duration::from_secs(1), app.run("true"));
    assert!(asked.await.is_err(), "a paused guest does not answer");
    app.resume().await?;
    app.run("true").check_ok().await?;

    let hour = Duration::from_secs(3600);
    app.skew_clock(Skew::Ahead(hour)).await?;
    assert!(off(&app).await? > 3500.0);
    app.skew_clock(Skew::Behind(hour)).await?;
    assert!(off(&app).await? < -3500.0);
    app.restore_clock().await?;
    assert!(off(&app).await?.abs() < 60.0);

    app.wait_for_open_port(22).await?;
    app.run("/usr/sbin/sshd -p 2222").check_ok().await?;
    app.wait_for_open_port(2222).await?;
    let mut stream = TcpStream::connect(app.forward(2222).await?).await?;
    let mut banner = [0; 8];
    stream.read_exact(&mut banner).await?;
    assert_eq!(&banner, b"SSH-2.0-");

    let before = app.get("/proc/sys/kernel/random/boot_id").await?;
    app.run("echo kept >/var/lib/kept; sync").check_ok().await?;
    app.reset().await?;
    assert_ne!(app.get("/proc/sys/kernel/random/boot_id").await?, before);
    assert_eq!(app.get("/var/lib/kept").await?, b"kept\n");

    app.shutdown().await?;
    assert!(app.death().seen().is_some());
    Ok(lab.stop().await?)
}

#[rstest]
#[tokio::test]
async fn its_display_can_be_seen_its_keys_pressed_and_its_kernel_crashed(lab: Lab) -> Result<()> {
    let app = lab.machine("app").display().start().await?;
    // Whatever has the terminal gives it up.
    app.run("systemctl stop getty@tty1.service").await?;
    let typed = app.run("stty -F /dev/tty1 sane; touch /run/reads; head -n 1 </dev/tty1");
    let typing = async {
        app.wait_for_file("/run/reads").await?;
        app.type_text("It's 100%, \"typed\"\n").await?;
        anyhow::Ok(())
    };
    let (typed, done) = tokio::join!(typed.check_ok(), typing);
    done?;
    assert_eq!(typed?.stdout_text(), "It's 100%, \"typed\"");

    let before = std::fs::read(app.screenshot().await?)?;
    app.run("printf 'a line on the screen\\n' >/dev/tty1")
        .check_ok()
        .await?;
    let after = std::fs::read(app.screenshot().await?)?;
    assert!(after.starts_with(b"\x89PNG") && before != after);

    let no_key = app.type_text("é").await.unwrap_err();
    assert!(
        no_key.to_string().contains("no key of a US keyboard types 'é'"),
        "{no_key}"
    );
    let unknown = app.press("hyper-q").await.unwrap_err();
    assert!(unknown.to_string().contains("hyper"), "{unknown}");

    app.crash().await?;
    assert!(app.run("true").await.unwrap_err().to_string().contains("panic"));
    Ok(lab.stop().await?)
}

/// In the place of the agent: it gives the guest what a distribution's own network set-up and cloud-init would.
const FAKE_AGENT: &[u8] = br"#!/bin/sh
ip link set eth0 up
ip address add 10.0.2.15/24 dev eth0
key=$(sed -n 's/.* fake.key=\([^ ]*\).*/\1/p' /proc/cmdline)
mkdir -p /root/.ssh
echo ssh-ed25519 $key >/root/.ssh/authorized_keys
exec sleep infinity
";

#[rstest]
#[tokio::test]
async fn a_guest_that_others_built_is_driven_by_ssh_alone(lab: Lab) -> Result<()> {
    let image = tokio::task::spawn_blocking(|| {
        let image = Image::obtain(&Cache::open()?, &ImageSpec::debian(), &|_| ())?;
        anyhow::Ok((image.kernel(), image.initrd(FAKE_AGENT)?, image.root()))
    });
    let (kernel, initrd, root) = image.await??;
    let key = KeyPair::generate();
    let public = key
        .public()
        .split_once(' ')
        .map(|(_, public)| public)
        .unwrap_or_default();
    let brought = Brought::kernel(kernel)
        .initrd(initrd)
        .append(&format!(
            "net.ifnames=0 norandmaps no_timer_check fake.key={public}"
        ))
        .disk_with_serial("provisor-root", root);
    let login = Login::whatever_host_key("root", key.private())?;
    let theirs = lab
        .brought("theirs", brought, login)
        .memory_mib(256)
        .start()
        .await?;

    let output = theirs.run("echo out; echo err >&2; exit 3").await?;
    assert_eq!(
        (output.stdout_text(), output.status),
        ("out".to_owned(), ExitStatus::Code(3))
    );
    theirs.put("/root/file", "content", 0o600).await?;
    assert_eq!(theirs.get("/root/file").await?, b"content");
    theirs.wait_for_unit("ssh.service").await?;
    let error = theirs
        .skew_clock(Skew::Ahead(Duration::from_secs(1)))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("it has no agent, only SSH"), "{error}");

    let before = theirs.get("/proc/sys/kernel/random/boot_id").await?;
    theirs.reset().await?;
    assert_ne!(theirs.get("/proc/sys/kernel/random/boot_id").await?, before);
    Ok(lab.stop().await?)
}

#[rstest]
#[tokio::test]
async fn a_command_on_a_terminal_asks_and_is_answered(lab: Lab) -> Result<()> {
    let app = lab.machine("app").start().await?;
    let ask = r#"test -t 0 && read -p 'your name? ' name && echo "hello, $name" && exit 7"#;
    let mut terminal = app.terminal(Command::new("bash").args(["-c", ask])).await?;
    terminal.expect("your name? ").await?;
    terminal.send("alice\n");
    assert!(
        terminal.expect("hello, alice").await?.starts_with("alice"),
        "a terminal echoes"
    );
    let ended = terminal.expect("never").await.unwrap_err();
    assert!(ended.to_string().contains("it has ended; it wrote"), "{ended}");
    assert_eq!(terminal.finish().await?, ExitStatus::Code(7));
    Ok(lab.stop().await?)
}

/// How many seconds the guest's clock is ahead of the host's.
async fn off(machine: &Machine) -> Result<f64> {
    let guest = machine.clock().await?;
    Ok(match guest.duration_since(SystemTime::now()) {
        Ok(ahead) => ahead.as_secs_f64(),
        Err(behind) => -behind.duration().as_secs_f64(),
    })
}
