//! The budget among real processes: this very program, started once more for each and told what to do.

#![allow(clippy::unwrap_used, reason = "what a test needs may fail as the test does")]

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, Command, Stdio};

use provisor_harness::artifacts::TestName;
use provisor_harness::budget::{Budget, BudgetError, Claimant, Lease, Pool, Size, Waiting, Wish};
use tempfile::TempDir;
use tokio::sync::mpsc;

const FOLDER: &str = "PROVISOR_TEST_BUDGET";
const TOTAL: u64 = 4096;

fn memory(folder: &Path) -> Pool {
    let size = Size {
        memory_mib: TOTAL,
        cpus: 1,
    };
    Budget::new(folder, size).memory
}

fn claimant(test: &str) -> Claimant {
    Claimant::of(&TestName {
        binary: "budget".to_owned(),
        test: test.to_owned(),
    })
}

async fn take(
    folder: &Path,
    test: &str,
    amount: u64,
    on_wait: impl FnMut(Waiting),
) -> Result<Vec<Lease>, BudgetError> {
    let wish = Wish {
        name: "app".to_owned(),
        amount,
    };
    memory(folder).take(&claimant(test), &[wish], on_wait).await
}

/// A process that does as it is told: `take AMOUNT`, `give`, `churn AMOUNT TIMES`.
struct Other {
    process: Child,
    orders: ChildStdin,
    words: BufReader<ChildStderr>,
}

impl Other {
    /// Starts the test of this name once more, which must begin with [`obeyed`].
    fn start(test: &str, folder: &TempDir) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test])
            .env(FOLDER, folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            orders: process.stdin.take().unwrap(),
            words: BufReader::new(process.stderr.take().unwrap()),
            process,
        }
    }

    fn tell(&mut self, order: &str) {
        writeln!(self.orders, "{order}").unwrap();
    }

    /// The next word: `waits`, `has it`, or an error.
    fn hear(&mut self) -> String {
        let mut line = String::new();
        self.words.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Whether this is the process of an [`Other`], and all is done that it was told.
async fn obeyed() -> bool {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return false;
    };
    let folder = Path::new(&folder);
    // Not `println!`: the test harness would keep it for itself.
    let say = |word: &str| io::stderr().write_all(format!("{word}\n").as_bytes()).unwrap();
    let mut held = Vec::new();
    for order in io::stdin().lines() {
        let order = order.unwrap();
        let words: Vec<_> = order.split(' ').collect();
        let number = |index: usize| words[index].parse::<u64>().unwrap();
        match words[0] {
            "take" => {
                let mut waits = false;
                let on_wait = |_| {
                    if !std::mem::replace(&mut waits, true) {
                        say("waits");
                    }
                };
                match take(folder, "other", number(1), on_wait).await {
                    Ok(leases) => {
                        held.extend(leases);
                        say("has it");
                    }
                    Err(error) => say(&error.to_string()),
                }
            }
            "give" => held.clear(),
            "churn" => {
                for _ in 0..number(2) {
                    churn(folder, number(1)).await;
                    say("again");
                }
            }
            _ => panic!("what is {order}?"),
        }
    }
    true
}

/// Takes some, notes it, has a program run meanwhile, notes that it is over, and gives it back.
async fn churn(folder: &Path, amount: u64) {
    let leases = take(folder, "other", amount, |_| {}).await.unwrap();
    let mut log = File::options()
        .create(true)
        .append(true)
        .open(folder.join("log"))
        .unwrap();
    log.write_all(format!("{amount}\n").as_bytes()).unwrap();
    assert!(Command::new("true").status().unwrap().success());
    log.write_all(format!("-{amount}\n").as_bytes()).unwrap();
    drop(leases);
}

/// Takes some in a task, as `test`. The channel tells each time that it waits on.
fn take_apart(
    folder: &TempDir,
    test: &'static str,
    amount: u64,
) -> (
    tokio::task::JoinHandle<Vec<Lease>>,
    mpsc::UnboundedReceiver<Waiting>,
) {
    let (sender, waits) = mpsc::unbounded_channel();
    let path = folder.path().to_owned();
    let taking = tokio::spawn(async move {
        let on_wait = move |waiting| sender.send(waiting).unwrap_or_default();
        take(&path, test, amount, on_wait).await.unwrap()
    });
    (taking, waits)
}

#[tokio::test]
async fn the_share_of_a_killed_holder_is_free_at_once() {
    if obeyed().await {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut holder = Other::start("the_share_of_a_killed_holder_is_free_at_once", &folder);
    holder.tell("take 4096");
    assert_eq!(holder.hear(), "has it");
    let (waiting, mut waits) = take_apart(&folder, "mine", 4096);
    let seen = waits.recv().await.unwrap();
    assert_eq!((seen.wanted, seen.free, seen.total), (4096, 0, 4096));
    let who = format!("4096 by `app` of budget other (process {})", holder.process.id());
    assert_eq!(seen.holders, [who]);

    holder.kill();
    drop(waiting.await.unwrap());
    let free = take(folder.path(), "mine", 4096, |_| panic!("nobody holds any"));
    free.await.unwrap();
}

#[tokio::test]
async fn sixteen_processes_never_hold_more_than_there_is() {
    if obeyed().await {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut others: Vec<_> = (0..16)
        .map(|_| Other::start("sixteen_processes_never_hold_more_than_there_is", &folder))
        .collect();
    for (other, amount) in others.iter_mut().zip((484..).step_by(97)) {
        other.tell(&format!("churn {amount} 8"));
    }
    for other in &mut others {
        (0..8).for_each(|_| assert_eq!(other.hear(), "again"));
    }
    let log = fs::read_to_string(folder.path().join("log")).unwrap();
    assert_eq!(log.lines().count(), 16 * 8 * 2);
    let mut sum = 0;
    for line in log.lines() {
        sum += line.parse::<i64>().unwrap();
        assert!(sum <= TOTAL as i64, "{sum} MiB are held:\n{log}");
    }
    assert_eq!(sum, 0);
}

#[tokio::test]
async fn a_small_request_waits_behind_a_large_one_even_if_it_would_fit() {
    if obeyed().await {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let kept = take(folder.path(), "kept", 2048, |_| {}).await.unwrap();
    let given_back = take(folder.path(), "given back", 2048, |_| {}).await.unwrap();
    let (large, mut waits) = take_apart(&folder, "large", TOTAL);
    waits.recv().await.unwrap();
    drop(given_back);
    assert_eq!(waits.recv().await.unwrap().free, 2048);

    let mut small = Other::start(
        "a_small_request_waits_behind_a_large_one_even_if_it_would_fit",
        &folder,
    );
    small.tell("take 1024");
    assert_eq!(small.hear(), "waits");
    drop(kept);
    drop(large.await.unwrap());
    assert_eq!(small.hear(), "has it");
}

#[tokio::test]
async fn a_large_request_is_served_although_small_ones_keep_coming() {
    if obeyed().await {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut small: Vec<_> = (0..6)
        .map(|_| {
            Other::start(
                "a_large_request_is_served_although_small_ones_keep_coming",
                &folder,
            )
        })
        .collect();
    for other in &mut small {
        other.tell("churn 1024 1000000");
    }
    for other in &mut small {
        assert_eq!(other.hear(), "again");
    }
    take(folder.path(), "large", TOTAL, |_| {}).await.unwrap();
}

#[tokio::test]
async fn one_that_is_killed_while_it_waits_does_not_stop_the_queue() {
    if obeyed().await {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let held = take(folder.path(), "mine", TOTAL, |_| {}).await.unwrap();
    let mut before = Other::start(
        "one_that_is_killed_while_it_waits_does_not_stop_the_queue",
        &folder,
    );
    before.tell("take 4096");
    assert_eq!(before.hear(), "waits");
    let (after, mut waits) = take_apart(&folder, "after", 4096);
    waits.recv().await.unwrap();
    before.kill();
    drop(held);
    after.await.unwrap();
}

#[tokio::test]
async fn one_that_gives_up_waiting_does_not_stop_the_queue() {
    let folder = tempfile::tempdir().unwrap();
    let held = take(folder.path(), "mine", TOTAL, |_| {}).await.unwrap();
    let (before, mut waits) = take_apart(&folder, "before", 4096);
    waits.recv().await.unwrap();
    let (after, mut waits) = take_apart(&folder, "after", 4096);
    waits.recv().await.unwrap();
    before.abort();
    assert!(before.await.unwrap_err().is_cancelled());
    drop(held);
    after.await.unwrap();
}

#[tokio::test]
async fn two_that_want_more_than_half_come_one_after_the_other() {
    if obeyed().await {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let start = || Other::start("two_that_want_more_than_half_come_one_after_the_other", &folder);
    let (mut one, mut two) = (start(), start());
    one.tell("take 3000");
    assert_eq!(one.hear(), "has it");
    two.tell("take 3000");
    assert_eq!(two.hear(), "waits");
    one.tell("give");
    assert_eq!(two.hear(), "has it");
}

#[tokio::test]
async fn of_two_that_hold_some_and_wait_for_each_other_one_is_refused_and_one_served() {
    if obeyed().await {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let start = || {
        Other::start(
            "of_two_that_hold_some_and_wait_for_each_other_one_is_refused_and_one_served",
            &folder,
        )
    };
    let (mut one, mut two) = (start(), start());
    for other in [&mut one, &mut two] {
        other.tell("take 2000");
        assert_eq!(other.hear(), "has it");
    }
    one.tell("take 2000");
    assert_eq!(one.hear(), "waits");
    two.tell("take 2000");
    let refused = two.hear();
    assert!(
        refused.starts_with(
            "2000 MiB of memory are needed, 96 of 4096 are free, and all tests that hold some wait for more"
        ),
        "{refused}"
    );
    two.tell("give");
    assert_eq!(one.hear(), "has it");
}

#[tokio::test]
async fn what_never_fits_is_refused_with_what_there_is_and_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let _held = take(folder.path(), "mine", 1000, |_| {}).await.unwrap();
    let refused = |test| take(folder.path(), test, 4000, |_| {});
    let error = refused("mine").await.unwrap_err().to_string();
    assert!(
        error.starts_with("4000 MiB of memory are needed beside the 1000 MiB that this test holds, and tests on this machine may use 4096"),
        "{error}"
    );
    let error = take(folder.path(), "other", 5000, |_| {})
        .await
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("5000 MiB of memory are needed, and"), "{error}");
    assert!(error.contains("set PROVISOR_MEMORY to more MiB"), "{error}");
}

#[tokio::test]
async fn nothing_is_left_but_the_lock_when_all_is_given_back() {
    let folder = tempfile::tempdir().unwrap();
    let wish = |name: &str| Wish {
        name: name.to_owned(),
        amount: 2048,
    };
    let pool = memory(folder.path());
    let leases = pool
        .take(&claimant("mine"), &[wish("a"), wish("b")], |_| {})
        .await
        .unwrap();
    let files = |kind: &str| {
        fs::read_dir(folder.path().join("budget/memory").join(kind))
            .unwrap()
            .count()
    };
    assert_eq!((files("held"), files("queue")), (2, 0));
    drop(leases);
    assert_eq!((files("held"), files("queue")), (0, 0));
}
