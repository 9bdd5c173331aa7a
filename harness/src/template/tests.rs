use super::*;
use crate::agent::Interface;
use crate::qemu::Display;

fn spec(disks: Vec<Disk>) -> MachineSpec {
    MachineSpec {
        name: "app".to_owned(),
        memory_mib: 256,
        cpus: 1,
        accelerator: Accelerator::Tcg,
        kernel: "/cache/image/1/vmlinuz".into(),
        initrd: "/cache/initrd/1/initrd".into(),
        start: Start::Cold,
        disks,
        management: Mac::of("app", "management"),
        cards: vec![card("app", "mesh")],
        display: Display::None,
        hot_slots: Vec::new(),
    }
}

fn card(machine: &str, vlan: &str) -> Card {
    Card {
        mac: Mac::of(machine, vlan),
        plug: Plug {
            local: format!("/run/{machine}/{vlan}").into(),
            remote: format!("/run/{vlan}").into(),
        },
    }
}

fn disk(serial: &str, path: PathBuf, access: Access) -> Disk {
    Disk {
        serial: serial.to_owned(),
        path,
        access,
    }
}

fn key_of(spec: &MachineSpec) -> Key {
    key(spec, Path::new("/usr/bin/qemu"))
}

#[test]
fn machines_that_differ_in_what_is_set_after_a_restore_share_a_template() {
    let folder = tempfile::tempdir().unwrap();
    let share = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        spec(vec![disk("share0", path, Access::ReadOnly)])
    };
    let one = share("one", b"1234");
    let other = MachineSpec {
        name: "database".to_owned(),
        management: Mac::of("database", "management"),
        cards: vec![card("database", "storage")],
        ..share("two", b"5678")
    };
    assert_eq!(key_of(&one), key_of(&other));
}

#[test]
fn whatever_the_guest_can_tell_apart_is_another_template() {
    let folder = tempfile::tempdir().unwrap();
    let small = folder.path().join("small");
    std::fs::write(&small, b"1").unwrap();
    let base = spec(Vec::new());
    let others = [
        MachineSpec {
            memory_mib: 320,
            ..base.clone()
        },
        MachineSpec {
            cpus: 2,
            ..base.clone()
        },
        MachineSpec {
            accelerator: Accelerator::Kvm,
            ..base.clone()
        },
        MachineSpec {
            kernel: "/cache/image/2/vmlinuz".into(),
            ..base.clone()
        },
        MachineSpec {
            initrd: "/cache/initrd/2/initrd".into(),
            ..base.clone()
        },
        MachineSpec {
            cards: Vec::new(),
            ..base.clone()
        },
        spec(vec![disk(
            "share0",
            folder.path().join("absent"),
            Access::ReadOnly,
        )]),
        spec(vec![disk("share0", small, Access::ReadOnly)]),
    ];
    let keys: std::collections::BTreeSet<_> = others.iter().chain([&base]).map(key_of).collect();
    assert_eq!(keys.len(), others.len() + 1);
    assert_ne!(
        key(&base, Path::new("/usr/bin/qemu")),
        key(&base, Path::new("/opt/qemu"))
    );
}

#[test]
fn the_machine_that_is_saved_writes_to_its_own_disk_and_reads_the_image() {
    let machine = spec(vec![
        disk(ROOT_SERIAL, "/cache/image/1/root".into(), Access::ReadOnly),
        disk("own", "/cache/image/1/disk".into(), Access::CopyOnWrite),
        disk("share0", "/run/share0".into(), Access::ReadOnly),
    ]);
    let saved = template_of(&machine, Path::new("/t"), Path::new("/s"), Memory::InState);
    assert_eq!(
        saved.disks,
        [
            machine.disks[0].clone(),
            disk("own", "/t/disk".into(), Access::Write),
            disk("share0", "/t/blank2".into(), Access::ReadOnly),
        ]
    );
}

#[test]
fn a_restored_guest_gets_its_own_addresses_on_the_cards_of_the_template() {
    let own = [Mac::of("app", "management"), Mac::of("app", "mesh")];
    let interface = |mac: Mac| Interface {
        mac: mac.0,
        new_mac: None,
        addresses: Vec::new(),
        gateway: None,
        up: true,
    };
    let setup = || Setup {
        interfaces: own.map(interface).to_vec(),
        ..Setup::default()
    };
    let woken = wake_up(setup());
    let cards: Vec<_> = woken
        .interfaces
        .iter()
        .map(|card| (Mac(card.mac), card.new_mac.map(Mac)))
        .collect();
    assert_eq!(cards, [(card_mac(0), Some(own[0])), (card_mac(1), Some(own[1]))]);

    let (id, other) = (woken.machine_id.unwrap(), wake_up(setup()).machine_id.unwrap());
    assert!(
        id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "{id}"
    );
    assert_ne!(id, other);
}
