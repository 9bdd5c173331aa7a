use super::super::{Bytes, Ending, Exec, Interface, Mount, Setup, SetupFile};
use super::*;

const FIRST: Nonce = [1; 16];
const SECOND: Nonce = [2; 16];

fn frames() -> Vec<Frame> {
    let interface = Interface {
        mac: [2, 0, 0, 0, 0, 1],
        new_mac: Some([2, 0, 0, 0, 0, 2]),
        addresses: vec![
            ("10.0.0.1".parse().unwrap(), 24),
            ("fd00::1".parse().unwrap(), 64),
        ],
        gateway: Some("10.0.0.2".parse().unwrap()),
        up: true,
    };
    let file = SetupFile {
        path: "/a".into(),
        content: Bytes(vec![0, 255]),
        mode: 0o600,
        uid: 1,
        gid: 2,
    };
    let mount = Mount {
        serial: "s".into(),
        target: "/m".into(),
        fstype: "ext4".into(),
        read_only: true,
    };
    let setup = Setup {
        entropy: Bytes(vec![9; 32]),
        clock: Some(1 << 60),
        machine_id: Some("0123456789abcdef0123456789abcdef".into()),
        hostname: Some("app".into()),
        hosts: vec![("10.0.0.1".parse().unwrap(), vec!["app".into(), "app.mesh".into()])],
        interfaces: vec![interface],
        mounts: vec![mount],
        files: vec![file],
        commands: vec![vec!["true".into(), String::new()]],
    };
    let exec = Exec {
        argv: vec!["sh".into(), "-c".into(), "é\n".into()],
        env: vec![("A".into(), "b=c".into())],
        cwd: "/".into(),
        stdin: true,
        deadline: u64::MAX,
    };
    let bytes = Bytes((0..=255).collect());
    vec![
        Frame::Welcome { boot_id: "b".into() },
        Frame::Setup(Box::new(setup)),
        Frame::Setup(Box::default()),
        Frame::Ready,
        Frame::SetupFailed {
            step: "clock".into(),
            error: "denied".into(),
        },
        Frame::Exec { id: 7, exec },
        Frame::Stdin {
            id: 7,
            bytes: bytes.clone(),
        },
        Frame::StdinEnd { id: 7 },
        Frame::Kill { id: u32::MAX },
        Frame::Stdout {
            id: 7,
            bytes: bytes.clone(),
        },
        Frame::Stderr { id: 7, bytes },
        Frame::Credit { id: 7, bytes: 3 },
        Frame::Exit {
            id: 7,
            ending: Ending::Code(255),
        },
        Frame::Exit {
            id: 7,
            ending: Ending::Signal(9),
        },
        Frame::Exit {
            id: 7,
            ending: Ending::Deadline,
        },
    ]
}

fn session(nonce: &Nonce) -> Vec<u8> {
    let mut bytes = preamble(nonce);
    frames().iter().for_each(|frame| encode(frame, nonce, &mut bytes));
    bytes
}

fn decode(decoder: &mut Decoder, bytes: &[u8], step: usize) -> Vec<Decoded> {
    let mut decoded = Vec::new();
    bytes
        .chunks(step)
        .for_each(|chunk| decoder.push(chunk, &mut decoded));
    decoded
}

fn opened_with_frames(nonce: Nonce) -> Vec<Decoded> {
    let opened = Decoded::Opened {
        version: VERSION,
        nonce,
    };
    [opened]
        .into_iter()
        .chain(frames().into_iter().map(Decoded::Frame))
        .collect()
}

#[test]
fn every_frame_is_read_back_however_the_stream_is_cut() {
    let bytes = session(&FIRST);
    for step in [1, 2, 3, 7, 40, 41, bytes.len()] {
        assert_eq!(
            decode(&mut Decoder::for_any_session(), &bytes, step),
            opened_with_frames(FIRST),
            "{step}"
        );
    }
}

#[test]
fn a_preamble_opens_a_new_session_wherever_the_old_stream_broke_off() {
    let old = session(&FIRST);
    for cut in 0..old.len() {
        for step in [1, 13, 40] {
            let mut decoder = Decoder::for_any_session();
            let before = decode(&mut decoder, &old[..cut], 512);
            assert!(before.len() <= frames().len(), "cut at {cut}");
            let mut decoded = decode(&mut decoder, &preamble(&SECOND), step);
            // A frame completed by the preamble's bytes has the wrong seal: it is never seen.
            decoded.retain(|item| *item != Decoded::OutOfStep);
            assert_eq!(
                decoded,
                [Decoded::Opened {
                    version: VERSION,
                    nonce: SECOND
                }],
                "cut at {cut}"
            );
        }
    }
}

#[test]
fn a_host_passes_over_what_was_meant_for_an_earlier_one() {
    let mut bytes = session(&FIRST)[3..].to_vec();
    bytes.extend(session(&FIRST));
    bytes.truncate(bytes.len() - 5);
    bytes.extend(session(&SECOND));
    let decoded = decode(&mut Decoder::for_session(SECOND), &bytes, 64);
    assert_eq!(decoded, opened_with_frames(SECOND));
}

#[test]
fn the_magic_words_in_a_payload_open_nothing() {
    let mut payload = preamble(&SECOND);
    payload[20] ^= 1;
    let frame = Frame::Stdin {
        id: 1,
        bytes: Bytes(payload),
    };
    let mut bytes = preamble(&FIRST);
    encode(&frame, &FIRST, &mut bytes);
    let decoded = decode(&mut Decoder::for_any_session(), &bytes, 1);
    assert_eq!(decoded[1..], [Decoded::Frame(frame)]);
}

#[test]
fn nonsense_is_out_of_step_and_a_preamble_behind_it_is_found() {
    let mut bytes = preamble(&FIRST);
    bytes.extend([0xff; 100]);
    let mut decoder = Decoder::for_any_session();
    assert_eq!(decode(&mut decoder, &bytes, 50)[1..], [Decoded::OutOfStep]);
    assert_eq!(
        decode(&mut decoder, &session(&SECOND), 9),
        opened_with_frames(SECOND)
    );
}

#[test]
fn another_version_is_told() {
    let mut bytes = preamble(&FIRST);
    bytes.truncate(PREAMBLE - 8);
    bytes[14] = 99;
    let check = checksum(&bytes);
    bytes.extend(check.to_le_bytes());
    let decoded = decode(&mut Decoder::for_any_session(), &bytes, 8);
    assert_eq!(
        decoded,
        [Decoded::Opened {
            version: 99,
            nonce: FIRST
        }]
    );
}
