//! The decision, over what was observed.

use std::time::Duration;

use super::observe::{Device, Ran, Runs};
use super::{AccelError, Accelerator, Choice};

/// KVM runs the probe in about the time that QEMU takes to start, as emulation does. It counts as slow when it takes
/// more than twice as long as emulation, and this much: noise of a busy host.
const SLACK: Duration = Duration::from_millis(500);

/// KVM where it is as fast as emulation, else emulation.
pub(super) fn choose(device: &Device, runs: &Runs) -> Result<Choice, AccelError> {
    let against_kvm = kvm_problem(device, runs);
    let against_tcg = problem(&runs.tcg);
    match (against_kvm, against_tcg) {
        (None, _) => Ok(Choice {
            accelerator: Accelerator::Kvm,
            reason: kvm_praise(runs),
        }),
        (Some(reason), None) => Ok(Choice {
            accelerator: Accelerator::Tcg,
            reason,
        }),
        (Some(kvm), Some(tcg)) => Err(AccelError::Neither { kvm, tcg }),
    }
}

/// The forced one, if it works. A KVM that is slow is refused as well: whoever forces it does so to be fast.
pub(super) fn forced(accelerator: Accelerator, device: &Device, runs: &Runs) -> Result<Choice, AccelError> {
    let (against, help) = match accelerator {
        Accelerator::Kvm => (kvm_problem(device, runs), kvm_help(device)),
        Accelerator::Tcg => (
            problem(&runs.tcg),
            "reinstall QEMU: apt-get install --yes qemu-system-x86".to_owned(),
        ),
    };
    match against {
        None => Ok(Choice {
            accelerator,
            reason: format!("PROVISOR_ACCEL={accelerator} asks for it"),
        }),
        Some(reason) => Err(AccelError::Forced {
            accelerator,
            reason,
            help,
        }),
    }
}

fn kvm_problem(device: &Device, runs: &Runs) -> Option<String> {
    match (device, &runs.kvm) {
        (Device::Absent, _) => Some("this host has no /dev/kvm".to_owned()),
        (Device::Denied { group }, _) => Some(format!(
            "/dev/kvm may not be opened by this user, who is not in the group {group}, or by this container"
        )),
        (Device::Busy, _) => {
            Some("/dev/kvm is busy: another hypervisor holds the processor's extensions".to_owned())
        }
        (Device::Broken(why), _) => Some(format!("/dev/kvm cannot be opened: {why}")),
        (Device::Open, None) => Some("/dev/kvm was not tried".to_owned()),
        (Device::Open, Some(ran)) => problem(ran).or_else(|| slowness(ran, &runs.tcg)),
    }
}

fn problem(ran: &Ran) -> Option<String> {
    match ran {
        Ran::Passed(_) => None,
        Ran::Hung(limit) => Some(format!(
            "a guest of one page did not end within {:.1} s",
            limit.as_secs_f64()
        )),
        Ran::Failed { status, said } => Some(format!(
            "a guest of one page failed ({status}), and QEMU said: {}",
            said.trim()
        )),
    }
}

fn slowness(kvm: &Ran, tcg: &Ran) -> Option<String> {
    let (Ran::Passed(kvm), Ran::Passed(tcg)) = (kvm, tcg) else {
        return None;
    };
    (*kvm > *tcg * 2 + SLACK).then(|| {
        let (kvm, tcg) = (kvm.as_secs_f64(), tcg.as_secs_f64());
        format!("KVM is slower here than emulation: a guest of one page took {kvm:.2} s, emulated {tcg:.2} s")
    })
}

fn kvm_praise(runs: &Runs) -> String {
    let time = match &runs.kvm {
        Some(Ran::Passed(time)) => format!(" in {:.2} s", time.as_secs_f64()),
        _ => String::new(),
    };
    format!("/dev/kvm ran a guest of one page{time}")
}

fn kvm_help(device: &Device) -> String {
    let fix = match device {
        Device::Absent => {
            "turn on virtualisation in the firmware, or nested virtualisation in the hypervisor".to_owned()
        }
        Device::Denied { group } => {
            format!("add the user to the group (usermod --append --groups {group} USER)")
        }
        Device::Busy => "stop the other hypervisor".to_owned(),
        Device::Broken(_) => "check that the module kvm_intel or kvm_amd is loaded".to_owned(),
        Device::Open => "check the nested virtualisation of the hypervisor under this host".to_owned(),
    };
    format!("{fix}, or unset PROVISOR_ACCEL to use emulation")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(ms: u64) -> Ran {
        Ran::Passed(Duration::from_millis(ms))
    }

    fn hung() -> Ran {
        Ran::Hung(Duration::from_secs(2))
    }

    fn failed() -> Ran {
        Ran::Failed {
            status: "exit status: 1".to_owned(),
            said: "Could not access KVM kernel module\n".to_owned(),
        }
    }

    fn denied() -> Device {
        Device::Denied {
            group: "kvm".to_owned(),
        }
    }

    fn open(kvm: Ran, tcg: Ran) -> (Device, Runs) {
        (Device::Open, Runs { kvm: Some(kvm), tcg })
    }

    fn shut(device: Device) -> (Device, Runs) {
        (
            device,
            Runs {
                kvm: None,
                tcg: passed(100),
            },
        )
    }

    #[test]
    fn kvm_is_chosen_only_when_it_ran_a_guest_and_was_not_slower_than_emulation() {
        use Accelerator::{Kvm, Tcg};
        for ((device, runs), expected, reason) in [
            (
                open(passed(60), passed(100)),
                Kvm,
                "/dev/kvm ran a guest of one page in 0.06 s",
            ),
            (open(passed(650), passed(100)), Kvm, "/dev/kvm ran a guest"),
            (open(passed(60), failed()), Kvm, "/dev/kvm ran a guest"),
            // Measured on a host whose KVM is emulated: passes a deadline of 2 s, 20 times slower than emulation.
            (
                open(passed(1830), passed(80)),
                Tcg,
                "slower here than emulation: a guest of one page took 1.83 s, emulated 0.08 s",
            ),
            (open(hung(), passed(100)), Tcg, "did not end within 2.0 s"),
            (
                open(failed(), passed(100)),
                Tcg,
                "QEMU said: Could not access KVM kernel module",
            ),
            (shut(Device::Absent), Tcg, "this host has no /dev/kvm"),
            (shut(denied()), Tcg, "not in the group kvm"),
            (shut(Device::Busy), Tcg, "another hypervisor"),
            (
                shut(Device::Broken("no such device".to_owned())),
                Tcg,
                "no such device",
            ),
        ] {
            let choice = choose(&device, &runs).unwrap();
            assert_eq!(choice.accelerator, expected, "{device:?} {runs:?}");
            assert!(
                choice.reason.contains(reason),
                "{:?} has no {reason:?}",
                choice.reason
            );
        }
    }

    #[test]
    fn when_neither_works_both_reasons_are_told() {
        let (device, runs) = open(hung(), failed());
        let error = choose(&device, &runs).unwrap_err().to_string();
        assert!(error.contains("KVM: a guest of one page did not end"), "{error}");
        assert!(
            error.contains("emulation: a guest of one page failed (exit status: 1)"),
            "{error}"
        );
    }

    #[test]
    fn a_forced_accelerator_is_used_when_it_works() {
        let (device, runs) = open(passed(60), passed(100));
        for accelerator in [Accelerator::Kvm, Accelerator::Tcg] {
            assert_eq!(
                forced(accelerator, &device, &runs).unwrap().accelerator,
                accelerator
            );
        }
    }

    #[test]
    fn a_forced_accelerator_that_does_not_work_is_an_error_that_says_why_and_what_to_do() {
        for ((device, runs), accelerator, why, help) in [
            (
                shut(Device::Absent),
                Accelerator::Kvm,
                "no /dev/kvm",
                "turn on virtualisation",
            ),
            (shut(denied()), Accelerator::Kvm, "group kvm", "--groups kvm USER"),
            (
                open(hung(), passed(100)),
                Accelerator::Kvm,
                "did not end",
                "nested virtualisation",
            ),
            (
                open(passed(1830), passed(80)),
                Accelerator::Kvm,
                "slower",
                "unset PROVISOR_ACCEL",
            ),
            (
                open(passed(60), failed()),
                Accelerator::Tcg,
                "failed (exit status: 1)",
                "reinstall QEMU",
            ),
        ] {
            let error = forced(accelerator, &device, &runs).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("PROVISOR_ACCEL={accelerator} forces")),
                "{error}"
            );
            assert!(error.contains(why) && error.contains(help), "{error}");
        }
    }
}
