//! Much output and much input, through the two ways into a real guest.

use anyhow::Result;
use provisor_harness::exec::Stream;
use provisor_harness::{Command, Execute, Lab, Transport, lab};
use rstest::rstest;

const OUT: usize = 256 << 20;
const IN: usize = 64 << 20;

#[rstest]
#[tokio::test]
async fn a_quarter_of_a_gibibyte_comes_out_while_much_goes_in(lab: Lab) -> Result<()> {
    let app = lab.machine("app").start().await?;
    app.wait_for_open_port(22).await?;
    let ssh = app.ssh().await?;
    arrives_whole(&app).await?;
    lab.timeline().note("app", "has sent all by its agent");
    arrives_whole(&ssh).await?;
    lab.timeline().note("app", "has sent all by SSH");
    Ok(lab.stop().await?)
}

async fn arrives_whole(way: &impl Transport) -> Result<()> {
    let text = format!(
        "exec 3<&0; yes abcdefg | head -c {IN} | cmp - /dev/fd/3 >&2 & yes 0123456 | head -c {OUT}; wait $!"
    );
    let command = Command::shell(text).stdin(b"abcdefg\n".repeat(IN / 8));
    let (mut length, mut right) = (0, true);
    let run = way.run(command).keep_last(16).on_output(|stream, bytes| {
        if stream == Stream::Stdout {
            right &= repeats(b"0123456\n", length, bytes);
            length += bytes.len();
        }
    });
    let output = run.check_ok().await?;
    assert_eq!(output.stdout, b"0123456\n0123456\n");
    assert_eq!((length, right), (OUT, true));
    Ok(())
}

/// Whether `bytes` are what stands at `offset` in `pattern` over and over.
fn repeats(pattern: &[u8], offset: usize, bytes: &[u8]) -> bool {
    let begin = offset % pattern.len();
    let whole = pattern.repeat(bytes.len() / pattern.len() + 2);
    whole[begin..].starts_with(bytes)
}
