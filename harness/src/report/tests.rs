use super::*;

/// The folder of a test with two machines.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new(marker: Option<(&str, &str)>) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        for machine in ["app", "database"] {
            fs::create_dir_all(folder.path().join(machine)).unwrap();
        }
        folder.file("started", "");
        folder.file(
            "timeline.txt",
            "    0.001 lab          a_test of guests
    0.100 app          starts
    0.100 database     starts
    4.000 app          is ready after 3.90 s
    4.100 app          runs `ping database`
    4.200 app          runs `ping database`
    4.300 app          `ping database`: exit code 1
    4.600 app          `ping database`: exit code 0
    5.000 app          waits for unit ssh.service
    6.500 app          has unit ssh.service
    7.000 lab          stopped
",
        );
        folder.file("app/console", "Linux\r\nready\r\n");
        folder.file("app/journal", "[    2.0] systemd[1]: Started ssh.service.\r\n");
        folder.file("app/growth", "1.000 7 0\n3.000 14 30\n3.100 14 44\n");
        folder.file("database/console", "</script><b>&\n");
        if let Some((name, note)) = marker {
            folder.file(name, note);
        }
        folder
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn file(&self, name: &str, content: &str) {
        fs::write(self.path().join(name), content).unwrap();
    }
}

#[test]
fn every_line_stands_at_the_time_the_host_saw_it() {
    let folder = Folder::new(Some(("passed", "")));
    let report = Report::read(folder.path()).unwrap();
    let of_app: Vec<_> = report
        .entries
        .iter()
        .filter(|entry| entry.machine == "app" && entry.source != Source::Test)
        .map(|entry| (entry.at, entry.source.word(), entry.text.as_str()))
        .collect();
    assert_eq!(
        of_app,
        [
            (1.0, "console", "Linux"),
            (3.0, "console", "ready"),
            (3.1, "journal", "[    2.0] systemd[1]: Started ssh.service.")
        ]
    );
    let text = report.text();
    assert!(
        text.contains("    3.000 app          console ready\n    3.100 app          journal [    2.0]"),
        "{text}"
    );
}

#[test]
fn what_takes_time_has_a_beginning_and_an_end() {
    let report = Report::read(Folder::new(None).path()).unwrap();
    let spans: Vec<_> = report
        .spans
        .iter()
        .map(|span| {
            (
                span.machine.as_str(),
                span.kind.word(),
                span.what.as_str(),
                span.from,
                span.to,
            )
        })
        .collect();
    assert_eq!(
        spans,
        [
            ("app", "boot", "boot", 0.1, 4.0),
            ("database", "boot", "boot", 0.1, 7.0),
            ("app", "command", "ping database", 4.1, 4.3),
            ("app", "command", "ping database", 4.2, 4.6),
            ("app", "wait", "unit ssh.service", 5.0, 6.5),
        ]
    );
}

#[test]
fn the_markers_tell_how_far_a_test_came() {
    let cases = [
        (None, Ending::Unfinished),
        (Some(("passed", "")), Ending::Passed),
        (Some(("failed", "why")), Ending::Failed),
        (Some(("ended", "dropped")), Ending::Ended),
    ];
    for (marker, ending) in cases {
        let report = Report::read(Folder::new(marker).path()).unwrap();
        assert_eq!(report.ending, ending);
        assert_eq!(report.note, marker.map(|(_, note)| note).unwrap_or_default());
    }
    let both = Folder::new(Some(("passed", "")));
    both.file("failed", "later");
    assert_eq!(Ending::of(both.path()), Ending::Failed);
}

#[test]
fn no_text_of_a_guest_leaves_its_place_in_the_page() {
    let folder = Folder::new(None);
    let page = Report::read(folder.path()).unwrap().page();
    assert_eq!(
        page.matches("</script>").count(),
        2,
        "the data's and the program's"
    );
    assert!(page.contains(r"\u003c/script>\u003cb>&"), "{page}");
    assert!(
        !page.contains("http://") || page.matches("http://").count() == 1,
        "only SVG's own name"
    );
}

#[test]
fn both_forms_are_written_beside_what_they_are_made_from() {
    let folder = Folder::new(Some(("passed", "")));
    let report = Report::read(folder.path()).unwrap();
    report.write(folder.path()).unwrap();
    for file in ["everything.txt", "timeline.html"] {
        assert!(folder.path().join(file).metadata().unwrap().len() > 100, "{file}");
    }
    assert_eq!(
        Report::read(folder.path()).unwrap().entries,
        report.entries,
        "writing changes nothing"
    );
}

#[test]
fn the_tests_under_a_folder_are_those_that_started() {
    let base = tempfile::tempdir().unwrap();
    for test in ["guests/b", "guests/a", "network/c", "network/none"] {
        fs::create_dir_all(base.path().join(test)).unwrap();
    }
    for test in ["guests/b", "guests/a", "network/c"] {
        fs::write(base.path().join(test).join("started"), "").unwrap();
    }
    let found: Vec<_> = tests_under(base.path())
        .unwrap()
        .into_iter()
        .map(|path| path.strip_prefix(base.path()).unwrap().display().to_string())
        .collect();
    assert_eq!(found, ["guests/a", "guests/b", "network/c"]);
}
