//! A switch between cards that are sockets of the test.

use super::*;
use crate::net::Mac;

const EVERYONE: Mac = Mac([0xff; 6]);

struct Card {
    mac: Mac,
    socket: UnixDatagram,
    plug: Plug,
}

/// A switch with one card per name, in a folder that goes away with it.
fn switched<const N: usize>(names: [&str; N]) -> (tempfile::TempDir, Switch, [Card; N]) {
    let folder = tempfile::tempdir().unwrap();
    let switch = Switch::start(&folder.path().join("s")).unwrap();
    let cards = names.map(|name| {
        let plug = switch.plug(name, &folder.path().join(name));
        Card {
            mac: Mac::of(name, "mesh"),
            socket: UnixDatagram::bind(&plug.local).unwrap(),
            plug,
        }
    });
    (folder, switch, cards)
}

impl Card {
    async fn send(&self, to: Mac, payload: &[u8]) {
        let frame = [&to.0[..], &self.mac.0[..], &[8, 0], payload].concat();
        self.socket.send_to(&frame, &self.plug.remote).await.unwrap();
    }

    async fn payload(&self) -> Vec<u8> {
        let mut buffer = vec![0; LARGEST_FRAME];
        let length = self.socket.recv(&mut buffer).await.unwrap();
        buffer[14..length].to_vec()
    }

    fn has_nothing(&self) -> bool {
        let nothing = self.socket.try_recv(&mut [0; 16]);
        nothing.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }
}

#[tokio::test]
async fn a_broadcast_reaches_all_but_its_sender_and_an_answer_only_the_asker() {
    let (_folder, switch, [alice, bob, carol]) = switched(["alice", "bob", "carol"]);
    alice.send(EVERYONE, b"who is bob?").await;
    assert_eq!(bob.payload().await, b"who is bob?");
    assert_eq!(carol.payload().await, b"who is bob?");

    bob.send(alice.mac, b"me").await;
    assert_eq!(alice.payload().await, b"me");
    assert!(carol.has_nothing());
    assert!(bob.has_nothing());
    assert_eq!(
        switch.counters(),
        Counters {
            received: 2,
            delivered: 3,
            dropped: 0,
            lost: 0
        }
    );
}

#[tokio::test]
async fn a_frame_for_an_absent_guest_is_dropped_and_one_after_it_came_arrives() {
    let (folder, switch, [alice]) = switched(["alice"]);
    let late = switch.plug("late", &folder.path().join("late"));
    alice.send(EVERYONE, b"too early").await;
    alice.send(alice.mac, b"to itself").await;
    while switch.counters().dropped < 2 {
        tokio::task::yield_now().await;
    }

    let socket = UnixDatagram::bind(&late.local).unwrap();
    alice.send(EVERYONE, b"now").await;
    let late = Card {
        mac: Mac::of("late", "mesh"),
        socket,
        plug: late,
    };
    assert_eq!(late.payload().await, b"now");
}

#[tokio::test]
async fn a_guest_that_started_again_is_reached_at_its_new_socket() {
    let (_folder, _switch, [alice, mut bob]) = switched(["alice", "bob"]);
    alice.send(EVERYONE, b"before").await;
    assert_eq!(bob.payload().await, b"before");

    std::fs::remove_file(&bob.plug.local).unwrap();
    bob.socket = UnixDatagram::bind(&bob.plug.local).unwrap();
    alice.send(EVERYONE, b"after").await;
    assert_eq!(bob.payload().await, b"after");
}

#[tokio::test]
async fn a_guest_that_reads_nothing_holds_up_nobody() {
    let (_folder, switch, [alice, bob, _deaf]) = switched(["alice", "bob", "deaf"]);
    let frames = 4 * QUEUE;
    for _ in 0..frames {
        alice.send(EVERYONE, b"flood").await;
        assert_eq!(bob.payload().await, b"flood");
    }
    assert!(switch.counters().dropped > 0);
}

#[tokio::test]
async fn a_stranger_on_the_socket_is_heard_by_nobody() {
    let (folder, switch, [alice]) = switched(["alice"]);
    let stranger = UnixDatagram::bind(folder.path().join("stranger")).unwrap();
    stranger.send_to(&[0xff; 60], &alice.plug.remote).await.unwrap();
    while switch.counters().dropped == 0 {
        tokio::task::yield_now().await;
    }
    assert!(alice.has_nothing());
}

#[tokio::test]
async fn a_cut_takes_what_it_lies_on_and_nothing_else_until_it_is_healed() {
    let (_folder, switch, [alice, bob, carol]) = switched(["alice", "bob", "carol"]);
    let way = Way {
        from: switch.port("alice").unwrap(),
        to: switch.port("bob").unwrap(),
    };
    let cut = switch.impair(Links::OneWay(way), Effect::Cut, 0);
    alice.send(EVERYONE, b"one").await;
    assert_eq!(carol.payload().await, b"one");
    bob.send(EVERYONE, b"back").await;
    assert_eq!(alice.payload().await, b"back");
    assert_eq!(carol.payload().await, b"back");
    assert_eq!((switch.counters().lost, switch.touched(cut)), (1, Some(1)));

    assert_eq!(switch.heal(cut), Some(1));
    alice.send(EVERYONE, b"two").await;
    assert_eq!(bob.payload().await, b"two");
}

#[tokio::test(start_paused = true)]
async fn a_delayed_frame_holds_up_none_that_is_not() {
    let (_folder, switch, [alice, bob, carol]) = switched(["alice", "bob", "carol"]);
    let around_alice = Links::Around(switch.port("alice").unwrap());
    let (by, jitter) = (Duration::from_secs(60), Duration::ZERO);
    switch.impair(around_alice, Effect::Delay { by, jitter }, 0);
    let began = Instant::now();
    alice.send(EVERYONE, b"slow 1").await;
    alice.send(EVERYONE, b"slow 2").await;
    while switch.counters().received < 2 {
        tokio::task::yield_now().await;
    }
    carol.send(EVERYONE, b"fast").await;
    assert_eq!(bob.payload().await, b"fast");
    assert_eq!(bob.payload().await, b"slow 1");
    assert!(began.elapsed() >= by);
    assert_eq!(bob.payload().await, b"slow 2");
}

#[tokio::test]
async fn a_capture_has_every_frame_and_why_one_did_not_arrive() {
    let (folder, switch, [alice, bob]) = switched(["alice", "bob"]);
    let path = folder.path().join("mesh.pcapng");
    switch.capture(&path).unwrap();
    // A second wish goes on with the first file.
    assert_eq!(switch.capture(&folder.path().join("other")).unwrap(), path);
    alice.send(EVERYONE, b"arrives").await;
    assert_eq!(bob.payload().await, b"arrives");
    switch.impair(Links::Everywhere, Effect::Cut, 0);
    alice.send(EVERYONE, b"vanishes").await;
    while switch.counters().lost == 0 {
        tokio::task::yield_now().await;
    }
    // It is counted a moment before it is written.
    drop(switch.shared.board());

    let written = std::fs::read(&path).unwrap();
    let has = |text: &str| {
        written
            .windows(text.len())
            .any(|window| window == text.as_bytes())
    };
    for text in ["arrives", "vanishes", "lost on its way to bob: cut"] {
        assert!(has(text), "{text}");
    }
}
