//! Faults as tables.

use super::*;

const ALICE: Port = Port(0);
const BOB: Port = Port(1);
const CAROL: Port = Port(2);
const AB: Way = way(ALICE, BOB);
const BA: Way = way(BOB, ALICE);
const AC: Way = way(ALICE, CAROL);
const BC: Way = way(BOB, CAROL);
const LENGTH: usize = 1000;

const fn way(from: Port, to: Port) -> Way {
    Way { from, to }
}

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

const fn at(milliseconds: u64) -> Fate {
    Fate::Deliver { at: ms(milliseconds) }
}

fn limit(bytes_per_second: u32) -> Effect {
    Effect::Limit {
        bytes_per_second: bytes_per_second.try_into().unwrap(),
    }
}

const fn delay(by: u64, jitter: u64) -> Effect {
    Effect::Delay {
        by: ms(by),
        jitter: ms(jitter),
    }
}

fn with(faults: &[(Links, Effect)]) -> Impairments {
    let mut impairments = Impairments::default();
    for (links, effect) in faults {
        impairments.add(*links, *effect, 1);
    }
    impairments
}

#[test]
fn a_fault_lies_on_the_links_it_names() {
    let cases = [
        (Links::Everywhere, [true; 4]),
        (Links::Around(ALICE), [true, true, true, false]),
        (Links::Around(CAROL), [false, false, true, true]),
        (Links::Between(ALICE, BOB), [true, true, false, false]),
        (Links::Between(BOB, ALICE), [true, true, false, false]),
        (Links::OneWay(AB), [true, false, false, false]),
    ];
    for (links, expected) in cases {
        assert_eq!([AB, BA, AC, BC].map(|way| links.hold(way)), expected, "{links:?}");
        let mut impairments = with(&[(links, Effect::Cut)]);
        let lost =
            [AB, BA, AC, BC].map(|way| impairments.fate(way, LENGTH, ms(0)) == Fate::Lost(Effect::Cut));
        assert_eq!(lost, expected, "{links:?}");
    }
}

#[test]
fn each_effect_has_its_fate_and_they_add_up() {
    use Links::Everywhere;
    let all = |percent| Effect::Lose { percent };
    let cases: &[(&str, &[Effect], Fate)] = &[
        ("none", &[], at(5)),
        ("cut", &[Effect::Cut], Fate::Lost(Effect::Cut)),
        ("loses all", &[all(100)], Fate::Lost(all(100))),
        ("loses none", &[all(0)], at(5)),
        ("delay", &[delay(200, 0)], at(205)),
        ("two delays", &[delay(200, 0), delay(30, 0)], at(235)),
        ("limit", &[limit(10_000)], at(105)),
        ("delay behind a limit", &[delay(200, 0), limit(10_000)], at(305)),
        (
            "cut behind a delay",
            &[delay(200, 0), Effect::Cut],
            Fate::Lost(Effect::Cut),
        ),
    ];
    for (name, effects, expected) in cases {
        let faults: Vec<_> = effects.iter().map(|effect| (Everywhere, *effect)).collect();
        assert_eq!(with(&faults).fate(AB, LENGTH, ms(5)), *expected, "{name}");
    }
}

#[test]
fn a_limited_link_is_a_line_that_each_way_has_for_itself() {
    // A frame takes 100 ms.
    let mut impairments = with(&[(Links::Everywhere, limit(10_000))]);
    let fates = [(AB, 0), (AB, 0), (BA, 0), (AB, 0), (AB, 0), (AB, 60), (AB, 1000)]
        .map(|(way, now)| impairments.fate(way, LENGTH, ms(now)));
    let lost = Fate::Lost(limit(10_000));
    assert_eq!(
        fates,
        [at(100), at(200), at(100), at(300), lost, at(400), at(1100)]
    );
}

#[test]
fn jitter_stays_in_its_bounds_and_keeps_the_order() {
    let mut impairments = with(&[(Links::Everywhere, delay(100, 20))]);
    let mut before = ms(0);
    let mut delays = Vec::new();
    for now in (0..1000).map(|frame| ms(frame * 50)) {
        let Fate::Deliver { at } = impairments.fate(AB, LENGTH, now) else {
            panic!("lost")
        };
        assert!(
            at >= before && (ms(80)..=ms(120)).contains(&(at - now)),
            "{now:?}: {at:?}"
        );
        before = at;
        delays.push(at - now);
    }
    let near = |wanted: Duration| delays.iter().any(|delay| delay.abs_diff(wanted) < ms(1));
    assert!(near(ms(80)) && near(ms(100)) && near(ms(120)));

    // Frames that follow closely would overtake each other.
    let close: Vec<_> = (0..100)
        .map(|_| match impairments.fate(BA, LENGTH, ms(0)) {
            Fate::Deliver { at } => at,
            Fate::Lost(effect) => panic!("{effect}"),
        })
        .collect();
    assert!(close.is_sorted() && close[0] >= ms(80), "{close:?}");
}

#[test]
fn a_jitter_longer_than_its_delay_never_delivers_before_the_frame_came() {
    let mut impairments = with(&[(Links::Everywhere, delay(0, 500))]);
    for now in 0..200 {
        let fate = impairments.fate(AB, LENGTH, ms(now));
        assert!(matches!(fate, Fate::Deliver { at } if at >= ms(now)), "{fate:?}");
    }
}

fn losses(seed: u64) -> Vec<bool> {
    let mut impairments = Impairments::default();
    impairments.add(Links::Everywhere, Effect::Lose { percent: 30 }, seed);
    (0..1000)
        .map(|now| matches!(impairments.fate(AB, LENGTH, ms(now)), Fate::Lost(_)))
        .collect()
}

#[test]
fn a_seed_decides_which_frames_are_lost_and_the_share_is_the_one_asked_for() {
    assert_eq!(losses(7), losses(7));
    assert_ne!(losses(7), losses(8));
    let lost = losses(7).iter().filter(|lost| **lost).count();
    assert!((250..350).contains(&lost), "{lost} of 1000");
}

#[test]
fn a_healed_fault_touches_nothing_more_and_tells_what_it_did() {
    let mut impairments = Impairments::default();
    let cut = impairments.add(Links::OneWay(AB), Effect::Cut, 1);
    let other = impairments.add(Links::OneWay(AC), delay(10, 0), 1);
    for _ in 0..3 {
        impairments.fate(AB, LENGTH, ms(0));
    }
    assert_eq!(impairments.touched(cut), Some(3));
    assert_eq!(impairments.remove(cut), Some(3));
    assert_eq!(impairments.remove(cut), None);
    assert_eq!(impairments.fate(AB, LENGTH, ms(0)), at(0));
    assert_eq!(impairments.fate(AC, LENGTH, ms(0)), at(10));
    assert_eq!(impairments.remove(other), Some(1));
}
