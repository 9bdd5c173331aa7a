//! What a guest costs the host in memory.

use std::fs;
use std::io;

/// The proportional set size of a process in MiB: its own memory, and its share of what it shares with others.
pub(crate) fn pss_mib(pid: u32) -> io::Result<f64> {
    let path = format!("/proc/{pid}/smaps_rollup");
    let rollup = fs::read_to_string(&path)?;
    let kib = pss_kib(&rollup).ok_or_else(|| io::Error::other(format!("{path} has no line `Pss:`")))?;
    Ok(kib as f64 / 1024.0)
}

fn pss_kib(rollup: &str) -> Option<u64> {
    rollup
        .lines()
        .find_map(|line| line.strip_prefix("Pss:")?.strip_suffix("kB")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_read_and_not_its_parts() {
        let rollup = "00400000-7ffd [rollup]\nRss:     2048 kB\nPss:               1536 kB\nPss_Anon:          99 kB\n";
        assert_eq!(pss_kib(rollup), Some(1536));
        assert_eq!(pss_kib("Rss: 1 kB"), None);
    }

    #[test]
    fn this_process_uses_some_memory() {
        assert!(pss_mib(std::process::id()).unwrap() > 0.0);
    }
}
