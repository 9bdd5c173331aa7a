//! How an SSH connection begins and how its channels end, with a `fake_ssh` server that does it in ways that a real
//! one does only sometimes.

use std::sync::Arc;

use provisor_harness::exec::{Execute, ExitStatus};
use provisor_harness::ssh::{KeyPair, Login, Ssh, SshError};
use russh::keys::PrivateKey;
use russh::server::{Auth, ChannelOpenHandle, Config, Handler, Msg, Session, VerifiedPublicKey, run_stream};
use russh::{Channel, ChannelId, Sig};

/// What the server says when it is to run a command.
#[derive(Clone, Copy, Debug)]
enum Say {
    Out(&'static str),
    Err(&'static str),
    Status(u32),
    Signal(Signalled),
    Eof,
    Close,
    HangUp,
}

/// One that SSH has a name for, and one that it has not.
#[derive(Clone, Copy, Debug)]
enum Signalled {
    Term,
    Bus,
}

struct FakeSsh {
    says: &'static [Say],
    accepts: bool,
}

impl Handler for FakeSsh {
    type Error = russh::Error;

    async fn auth_publickey(&mut self, _: &str, _: VerifiedPublicKey<'_>) -> Result<Auth, Self::Error> {
        Ok(if self.accepts {
            Auth::Accept
        } else {
            Auth::reject()
        })
    }

    async fn channel_open_session(
        &mut self,
        _: Channel<Msg>,
        reply: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), Self::Error> {
        reply.accept().await;
        Ok(())
    }

    async fn exec_request(
        &mut self,
        channel: ChannelId,
        _: &[u8],
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        for say in self.says {
            match *say {
                Say::Out(text) => session.data(channel, text.as_bytes().to_vec())?,
                Say::Err(text) => session.extended_data(channel, 1, text.as_bytes().to_vec())?,
                Say::Status(status) => session.exit_status_request(channel, status)?,
                Say::Signal(Signalled::Term) => {
                    session.exit_signal_request(channel, Sig::TERM, false, "", "")?
                }
                Say::Signal(Signalled::Bus) => {
                    let name = Sig::Custom("SIG@openssh.com".into());
                    session.exit_signal_request(channel, name, false, "", "")?;
                }
                Say::Eof => session.eof(channel)?,
                Say::Close => session.close(channel)?,
                Say::HangUp => return Err(russh::Error::Disconnect),
            }
        }
        Ok(())
    }
}

async fn connect(fake_ssh: FakeSsh) -> Result<Ssh, SshError> {
    let host = KeyPair::generate();
    connect_expecting(fake_ssh, &host, host.public()).await
}

async fn connect_expecting(fake_ssh: FakeSsh, host: &KeyPair, expected: &str) -> Result<Ssh, SshError> {
    let config = Config {
        keys: vec![PrivateKey::from_openssh(host.private()).unwrap()],
        ..Config::default()
    };
    let (client, server) = tokio::io::duplex(64 * 1024);
    tokio::spawn(async move {
        run_stream(Arc::new(config), server, fake_ssh)
            .await
            .unwrap()
            .await
    });
    let login = Login::new("root", KeyPair::generate().private(), expected).unwrap();
    Ssh::connect_over(client, &login).await
}

#[tokio::test]
async fn status_end_of_output_and_close_come_in_any_order() {
    use Say::{Close, Eof, Err, HangUp, Out, Signal, Status};
    let code = ExitStatus::Code;
    let cases: &[(&'static [Say], ExitStatus, &str, &str)] = &[
        (&[Out("o"), Err("e"), Eof, Status(3), Close], code(3), "o", "e"),
        (&[Out("o"), Status(3), Eof, Close], code(3), "o", ""),
        (&[Status(3), Out("o"), Eof, Close], code(3), "o", ""),
        (&[Status(0), Out("o"), Err("e"), Close], code(0), "o", "e"),
        (&[Out("o"), Status(0)], code(0), "o", ""),
        (&[Eof, Status(255), Close], code(255), "", ""),
        (
            &[Out("o"), Eof, Signal(Signalled::Term), Close],
            ExitStatus::Signal(15),
            "o",
            "",
        ),
        (
            &[Signal(Signalled::Bus), Eof, Close],
            ExitStatus::Signal(0),
            "",
            "",
        ),
        (&[Out("o"), Eof, Close], ExitStatus::Lost, "o", ""),
        (&[Out("o"), Close], ExitStatus::Lost, "o", ""),
        (&[Close], ExitStatus::Lost, "", ""),
        (&[HangUp], ExitStatus::Lost, "", ""),
    ];
    for &(says, status, stdout, stderr) in cases {
        let ssh = connect(FakeSsh { says, accepts: true }).await.unwrap();
        let output = ssh.run("anything").await.unwrap();
        assert_eq!(output.status, status, "{says:?}");
        assert_eq!(
            (output.stdout_text().as_str(), output.stderr_text().as_str()),
            (stdout, stderr),
            "{says:?}"
        );
    }
}

#[tokio::test]
async fn only_the_pinned_host_key_is_accepted() {
    let (host, pinned) = (KeyPair::generate(), KeyPair::generate());
    let fake_ssh = FakeSsh {
        says: &[],
        accepts: true,
    };
    let connected = connect_expecting(fake_ssh, &host, pinned.public()).await;
    assert!(
        matches!(connected, Err(SshError::HostKey)),
        "{:?}",
        connected.err()
    );
}

#[tokio::test]
async fn a_key_that_is_not_accepted_is_an_error_that_names_the_user() {
    let error = connect(FakeSsh {
        says: &[],
        accepts: false,
    })
    .await
    .err()
    .unwrap();
    assert!(
        error
            .to_string()
            .contains("does not accept the key for the user root"),
        "{error}"
    );
}

#[tokio::test]
async fn a_port_where_nobody_listens_is_an_error() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let keys = KeyPair::generate();
    let login = Login::new("root", keys.private(), keys.public()).unwrap();
    assert!(matches!(
        Ssh::connect(address, &login).await,
        Err(SshError::Unreachable(_))
    ));
}
