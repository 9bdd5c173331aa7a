//! The system calls that the standard library does not offer: the only unsafe code of the whole harness.
//!
//! Each function checks its result and hands out owned values, so that its callers need no unsafe code.

use std::ffi::{CString, c_char, c_int, c_long, c_uint, c_ulong, c_void};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

unsafe extern "C" {
    fn clock_settime(clock: c_int, time: *const Timespec) -> c_int;
    fn epoll_create1(flags: c_int) -> c_int;
    fn epoll_ctl(epoll: c_int, operation: c_int, fd: c_int, event: *mut EpollEvent) -> c_int;
    fn epoll_wait(epoll: c_int, events: *mut EpollEvent, capacity: c_int, timeout: c_int) -> c_int;
    fn fcntl(fd: c_int, command: c_int, ...) -> c_int;
    fn getppid() -> c_int;
    fn ioctl(fd: c_int, request: c_ulong, ...) -> c_int;
    fn kill(pid: c_int, signal: c_int) -> c_int;
    fn mount(
        source: *const c_char,
        target: *const c_char,
        fstype: *const c_char,
        flags: c_ulong,
        data: *const c_void,
    ) -> c_int;
    fn prctl(option: c_int, ...) -> c_int;
    fn setsid() -> c_int;
    fn sethostname(name: *const c_char, length: usize) -> c_int;
    fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int;
    fn syscall(number: c_long, ...) -> c_long;
    fn waitpid(pid: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn write(fd: c_int, bytes: *const c_void, length: usize) -> isize;
}

#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

/// As the kernel declares it: packed on x86-64 only.
#[derive(Clone, Copy)]
#[cfg_attr(target_arch = "x86_64", repr(C, packed))]
#[cfg_attr(not(target_arch = "x86_64"), repr(C))]
struct EpollEvent {
    events: u32,
    token: u64,
}

pub(crate) const SIGKILL: i32 = 9;
/// For `OpenOptions::custom_flags`.
pub(crate) const O_NONBLOCK: i32 = 0o4000;

fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

fn owned(result: c_int) -> io::Result<OwnedFd> {
    // SAFETY: the system call has just made this descriptor, and nobody else knows it.
    check(result).map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })
}

/// What a descriptor is watched for.
#[derive(Clone, Copy)]
pub(crate) enum Interest {
    Read,
    Write,
    /// Both, told at each change only. A serial port without a host is "hung up" all the time: told by level it
    /// would never let the agent sleep.
    Changes,
}

/// Waits for many descriptors at once.
pub(crate) struct Epoll(OwnedFd);

impl Epoll {
    pub(crate) fn new() -> io::Result<Self> {
        const EPOLL_CLOEXEC: c_int = 0o2_000_000;
        // SAFETY: takes no pointer.
        owned(unsafe { epoll_create1(EPOLL_CLOEXEC) }).map(Self)
    }

    /// Starts watching; `token` comes back from [`Epoll::wait`].
    pub(crate) fn add(&self, fd: BorrowedFd<'_>, interest: Interest, token: u64) -> io::Result<()> {
        const EPOLL_CTL_ADD: c_int = 1;
        let events = match interest {
            Interest::Read => 1,
            Interest::Write => 4,
            Interest::Changes => 1 | 4 | (1 << 31),
        };
        let mut event = EpollEvent { events, token };
        // SAFETY: the event lives through the call, and the kernel copies it.
        check(unsafe { epoll_ctl(self.0.as_raw_fd(), EPOLL_CTL_ADD, fd.as_raw_fd(), &mut event) }).map(drop)
    }

    /// Stops watching.
    pub(crate) fn remove(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        const EPOLL_CTL_DEL: c_int = 2;
        let mut event = EpollEvent { events: 0, token: 0 };
        // SAFETY: as in `add`; old kernels want a pointer here although they do not read it.
        check(unsafe { epoll_ctl(self.0.as_raw_fd(), EPOLL_CTL_DEL, fd.as_raw_fd(), &mut event) }).map(drop)
    }

    /// The tokens of what is ready, at the latest after `timeout`; without one it waits for ever.
    pub(crate) fn wait(&self, timeout: Option<Duration>) -> io::Result<Vec<u64>> {
        // Rounded up: a wait that ends just before a deadline would turn in circles until it comes.
        let milliseconds = timeout.map_or(-1, |timeout| {
            timeout
                .as_micros()
                .div_ceil(1000)
                .try_into()
                .unwrap_or(c_int::MAX)
        });
        let mut events = [EpollEvent { events: 0, token: 0 }; 32];
        // SAFETY: the kernel writes at most as many events as the array has.
        let ready = check(unsafe {
            epoll_wait(
                self.0.as_raw_fd(),
                events.as_mut_ptr(),
                events.len() as c_int,
                milliseconds,
            )
        });
        match ready {
            Ok(ready) => Ok(events[..ready as usize].iter().map(|event| event.token).collect()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

/// Makes reads and writes return at once.
pub(crate) fn set_nonblocking(fd: BorrowedFd<'_>) -> io::Result<()> {
    const F_GETFL: c_int = 3;
    const F_SETFL: c_int = 4;
    // SAFETY: both commands take and give integers only.
    unsafe {
        let flags = check(fcntl(fd.as_raw_fd(), F_GETFL))?;
        check(fcntl(fd.as_raw_fd(), F_SETFL, flags | O_NONBLOCK)).map(drop)
    }
}

/// How many bytes a pipe holds now.
pub(crate) fn readable_bytes(fd: BorrowedFd<'_>) -> io::Result<usize> {
    const FIONREAD: c_ulong = 0x541b;
    let mut bytes: c_int = 0;
    // SAFETY: the kernel writes one int.
    check(unsafe { ioctl(fd.as_raw_fd(), FIONREAD, &mut bytes) })?;
    Ok(bytes as usize)
}

/// A descriptor that becomes readable when the process ends.
pub(crate) fn pidfd(pid: u32) -> io::Result<OwnedFd> {
    const SYS_PIDFD_OPEN: c_long = 434;
    // SAFETY: takes integers only; the kernel sets close-on-exec itself.
    owned(unsafe { syscall(SYS_PIDFD_OPEN, pid as c_int, 0) } as c_int)
}

/// Sends a signal to a process, or to the process group of a negative number. One that is gone is no error.
pub(crate) fn signal(pid: i32, signal: i32) {
    // SAFETY: takes integers only.
    unsafe { kill(pid, signal) };
}

/// Whatever descriptors besides the three streams this process was started with, its children do not get them.
pub(crate) fn keep_inherited_descriptors() {
    const SYS_CLOSE_RANGE: c_long = 436;
    const CLOSE_RANGE_CLOEXEC: c_uint = 4;
    // SAFETY: takes integers only and closes nothing here. A kernel before 5.11 refuses, and then all is as it was.
    unsafe { syscall(SYS_CLOSE_RANGE, 3 as c_uint, c_uint::MAX, CLOSE_RANGE_CLOEXEC) };
}

/// Reaps every child that has ended, whoever started it.
pub(crate) fn reap_all() {
    const WNOHANG: c_int = 1;
    // SAFETY: a null status pointer is allowed.
    while unsafe { waitpid(-1, std::ptr::null_mut(), WNOHANG) } > 0 {}
}

/// The new process leads a session of its own, and is in the cgroup of `procs` from its first instruction.
pub(crate) fn in_own_session(command: &mut Command, procs: Option<File>) {
    // SAFETY: between fork and exec only system calls are made; nothing allocates or takes a lock.
    unsafe {
        command.pre_exec(move || {
            check(setsid())?;
            if let Some(procs) = &procs
                && write(procs.as_raw_fd(), c"0".as_ptr().cast(), 1) != 1
            {
                return Err(io::Error::last_os_error());
            }
            Ok(())
        });
    }
}

/// The new process is killed when its parent ends, whatever ends the parent.
pub(crate) fn dies_with_parent(command: &mut Command) {
    const PR_SET_PDEATHSIG: c_int = 1;
    const ESRCH: i32 = 3;
    let parent = std::process::id() as c_int;
    // SAFETY: between fork and exec only system calls are made.
    unsafe {
        command.pre_exec(move || {
            check(prctl(PR_SET_PDEATHSIG, SIGKILL as c_ulong, 0, 0, 0))?;
            // The parent may have ended before the line above.
            if getppid() == parent {
                Ok(())
            } else {
                Err(io::Error::from_raw_os_error(ESRCH))
            }
        });
    }
}

/// Orphaned descendants become children of this process, so that they can be found.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    const PR_SET_CHILD_SUBREAPER: c_int = 36;
    // SAFETY: takes integers only.
    check(unsafe { prctl(PR_SET_CHILD_SUBREAPER, 1 as c_ulong, 0, 0, 0) }).map(drop)
}

/// Sets the wall clock.
pub(crate) fn set_clock(since_1970: Duration) -> io::Result<()> {
    const CLOCK_REALTIME: c_int = 0;
    let time = Timespec {
        seconds: since_1970.as_secs() as i64,
        nanoseconds: i64::from(since_1970.subsec_nanos()),
    };
    // SAFETY: the structure lives through the call.
    check(unsafe { clock_settime(CLOCK_REALTIME, &time) }).map(drop)
}

/// Mixes bytes into the kernel's generator, counts them as entropy, and makes it reseed at once.
pub(crate) fn add_entropy(random: &File, bytes: &[u8]) -> io::Result<()> {
    const RNDADDENTROPY: c_ulong = 0x4008_5203;
    const RNDRESEEDCRNG: c_ulong = 0x5207;
    let mut request = ((bytes.len() * 8) as c_int).to_ne_bytes().to_vec();
    request.extend((bytes.len() as c_int).to_ne_bytes());
    request.extend(bytes);
    // SAFETY: the buffer is a rand_pool_info (bits, bytes, data); the kernel reads as many bytes as it says.
    unsafe {
        check(ioctl(random.as_raw_fd(), RNDADDENTROPY, request.as_ptr()))?;
        check(ioctl(random.as_raw_fd(), RNDRESEEDCRNG)).map(drop)
    }
}

/// Sets the host name.
pub(crate) fn set_hostname(name: &str) -> io::Result<()> {
    // SAFETY: the kernel reads `length` bytes.
    check(unsafe { sethostname(name.as_ptr().cast(), name.len()) }).map(drop)
}

/// Whether a mount can be written to.
#[derive(Clone, Copy)]
pub(crate) enum Access {
    ReadOnly,
    ReadWrite,
}

/// Mounts a file system.
pub(crate) fn mount_at(source: &str, target: &str, fstype: &str, access: Access) -> io::Result<()> {
    const MS_RDONLY: c_ulong = 1;
    let flags = match access {
        Access::ReadOnly => MS_RDONLY,
        Access::ReadWrite => 0,
    };
    let [source, target, fstype] = [
        CString::new(source)?,
        CString::new(target)?,
        CString::new(fstype)?,
    ];
    // SAFETY: the three strings live through the call; no data is passed.
    check(unsafe {
        mount(
            source.as_ptr(),
            target.as_ptr(),
            fstype.as_ptr(),
            flags,
            std::ptr::null(),
        )
    })
    .map(drop)
}

/// A socket to the kernel's routing tables. Plain reads and writes work on it.
pub(crate) fn route_socket() -> io::Result<File> {
    const AF_NETLINK: c_int = 16;
    const SOCK_RAW_CLOEXEC: c_int = 3 | 0o2_000_000;
    const NETLINK_ROUTE: c_uint = 0;
    // SAFETY: takes integers only.
    owned(unsafe { socket(AF_NETLINK, SOCK_RAW_CLOEXEC, NETLINK_ROUTE as c_int) }).map(File::from)
}
