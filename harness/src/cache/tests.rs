use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex, mpsc};

use super::*;

fn quiet(_: &str) {}

fn key(name: &str) -> Key {
    Key::of([("name", name.as_bytes())])
}

fn names_in(path: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(path)
        .unwrap()
        .map(|entry| name_of(&entry.unwrap().path()))
        .collect();
    names.sort();
    names
}

#[test]
fn the_root_is_the_first_of_three_variables_that_is_set_and_not_empty() {
    let root = |set: &[(&str, &str)]| {
        root_from(|name| {
            set.iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| PathBuf::from(value))
        })
    };
    let all = [("PROVISOR_CACHE", "/a"), ("XDG_CACHE_HOME", "/b"), ("HOME", "/c")];
    assert_eq!(root(&all), Some("/a".into()));
    assert_eq!(root(&all[1..]), Some("/b/provisor".into()));
    assert_eq!(root(&all[2..]), Some("/c/.cache/provisor".into()));
    assert_eq!(
        root(&[("PROVISOR_CACHE", ""), ("HOME", "/c")]),
        Some("/c/.cache/provisor".into())
    );
    assert_eq!(root(&[]), None);
}

#[test]
fn a_key_tells_apart_parts_that_read_the_same_when_joined() {
    let one = Key::of([("a", b"bc".as_slice())]);
    let two = Key::of([("ab", b"c".as_slice())]);
    assert_ne!(one, two);
    assert_eq!(one.as_str().len(), 32);
    assert_eq!(one, Key::of([("a", b"bc".as_slice())]));
}

#[test]
fn an_entry_is_built_once_and_then_found() {
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache::at(dir.path());
    let builds = AtomicUsize::new(0);
    for _ in 0..2 {
        let path = cache
            .entry("image", &key("one"), &quiet, |path| {
                builds.fetch_add(1, Ordering::SeqCst);
                fs::write(path.join("file"), "content").unwrap();
                Ok::<_, CacheError>(())
            })
            .unwrap();
        assert_eq!(fs::read_to_string(path.join("file")).unwrap(), "content");
    }
    assert_eq!(builds.into_inner(), 1);
}

#[test]
fn of_many_that_ask_at_once_one_builds_and_the_others_wait_and_say_so() {
    const ASKING: usize = 8;
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache::at(dir.path());
    let (builds, said, start) = (AtomicUsize::new(0), Mutex::new(Vec::new()), Barrier::new(ASKING));
    // The builder goes on only when the seven others have said that they wait.
    let (waits, all_wait) = mpsc::channel();
    let all_wait = Mutex::new(all_wait);
    std::thread::scope(|scope| {
        for _ in 0..ASKING {
            let waits = waits.clone();
            let (cache, builds, said, start, all_wait) = (&cache, &builds, &said, &start, &all_wait);
            scope.spawn(move || {
                let say = |line: &str| {
                    said.lock().unwrap().push(line.to_owned());
                    waits.send(()).unwrap();
                };
                start.wait();
                cache
                    .entry("image", &key("one"), &say, |path| {
                        builds.fetch_add(1, Ordering::SeqCst);
                        for _ in 1..ASKING {
                            all_wait.lock().unwrap().recv().unwrap();
                        }
                        fs::write(path.join("file"), "content").unwrap();
                        Ok::<_, CacheError>(())
                    })
                    .unwrap();
            });
        }
    });
    assert_eq!(builds.into_inner(), 1);
    let said = said.into_inner().unwrap();
    assert_eq!(
        said,
        vec!["waiting for another process that makes the image"; ASKING - 1]
    );
}

#[test]
fn a_failed_build_leaves_nothing_and_the_next_one_starts_afresh() {
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache::at(dir.path());
    let failed = cache.entry("image", &key("one"), &quiet, |path| {
        fs::write(path.join("half"), "half").unwrap();
        Err::<(), _>(CacheError::NoRoot)
    });
    assert!(matches!(failed, Err(CacheError::NoRoot)));
    assert_eq!(
        names_in(&dir.path().join("image")),
        [format!("{}.lock", key("one").as_str())]
    );
    let path = cache
        .entry("image", &key("one"), &quiet, |_| Ok::<_, CacheError>(()))
        .unwrap();
    assert!(names_in(&path).is_empty());
}

#[test]
fn what_a_killed_builder_left_is_swept_by_the_next_build_of_any_key_and_a_living_builders_folder_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache::at(dir.path());
    let shelf = dir.path().join("image");
    let left = |name: &str| shelf.join(format!("{}.x1{UNFINISHED}", key(name).as_str()));
    for name in ["one", "two", "living"] {
        fs::create_dir_all(left(name)).unwrap();
        fs::write(left(name).join("half"), "half").unwrap();
    }
    let living = open_lock(&lock_path(&shelf.join(key("living").as_str()))).unwrap();
    living.lock().unwrap();

    cache
        .entry("image", &key("one"), &quiet, |_| Ok::<_, CacheError>(()))
        .unwrap();

    assert!(!left("one").exists());
    assert!(!left("two").exists());
    assert!(left("living").join("half").exists());
}

#[test]
fn prune_removes_what_nobody_asked_for_lately_and_what_nobody_builds() {
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache::at(dir.path());
    for name in ["old", "new"] {
        cache
            .entry("image", &key(name), &quiet, |_| Ok::<_, CacheError>(()))
            .unwrap();
    }
    let old = dir.path().join("image").join(key("old").as_str());
    let lock = open_lock(&lock_path(&old)).unwrap();
    lock.set_times(FileTimes::new().set_modified(SystemTime::UNIX_EPOCH))
        .unwrap();

    let removed = cache.prune(Duration::from_secs(3600)).unwrap();

    assert_eq!(
        removed.iter().map(|entry| entry.key.as_str()).collect::<Vec<_>>(),
        [key("old").as_str()]
    );
    let left = cache.list().unwrap();
    assert_eq!(
        left.iter().map(|entry| entry.key.as_str()).collect::<Vec<_>>(),
        [key("new").as_str()]
    );
}

#[test]
fn prune_leaves_a_folder_that_no_entry_made() {
    let dir = tempfile::tempdir().unwrap();
    let stranger = dir.path().join("run/guest-1");
    fs::create_dir_all(&stranger).unwrap();
    fs::write(lock_path(&stranger), "").unwrap();
    assert_eq!(Cache::at(dir.path()).prune(Duration::ZERO).unwrap(), []);
    assert_eq!(names_in(&dir.path().join("run")), ["guest-1", "guest-1.lock"]);
}

#[test]
fn a_disk_that_is_too_small_is_refused_with_the_path_the_sizes_and_the_variable_to_set() {
    let dir = tempfile::tempdir().unwrap();
    let refusal = Cache::at(dir.path())
        .require_space(1 << 60)
        .unwrap_err()
        .to_string();
    assert!(refusal.contains(&dir.path().display().to_string()), "{refusal}");
    assert!(refusal.contains("1152921504 GB needed"), "{refusal}");
    assert!(refusal.contains("set PROVISOR_CACHE"), "{refusal}");
    Cache::at(dir.path()).require_space(1).unwrap();
}

#[test]
fn a_folder_with_a_mount_in_it_is_seen() {
    assert!(has_mounts(Path::new("/")));
    assert!(!has_mounts(tempfile::tempdir().unwrap().path()));
}
