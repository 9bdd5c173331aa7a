//! What is said to the shell on the other side.

use crate::exec::{Command, quote};

/// Reads one line, which is a script, and becomes it. `read` takes a byte at a time, so that the rest of standard
/// input is left to the command. The text of the script stays out of every command line.
pub(super) const RUN_FROM_STDIN: &str = r#"exec /bin/sh -c 'IFS= read -r s && eval "$(printf %b "$s")"'"#;

/// The variable that a command and its descendants carry.
const MARKER: &str = "PROVISOR_COMMAND";

/// The line that makes [`RUN_FROM_STDIN`] become the command: the shell is replaced, so that the server sees the
/// command's own exit code or signal.
pub(super) fn start(command: &Command, marker: &str) -> Vec<u8> {
    let folder = quote(&command.cwd);
    let mut script = format!("export {MARKER}={marker}\ncd -- {folder} || exit 126\n");
    for (name, value) in &command.env {
        script += &format!("export {name}={}\n", quote(value));
    }
    let words: Vec<String> = command.argv.iter().map(|word| quote(word)).collect();
    let input = if command.stdin.is_some() {
        ""
    } else {
        " </dev/null"
    };
    script += &format!("exec {}{input}", words.join(" "));
    one_line(&script)
}

/// The line that makes [`RUN_FROM_STDIN`] kill a command. It goes on until nobody is left.
pub(super) fn kill(marker: &str) -> Vec<u8> {
    one_line(&KILL.replace("MARKER=VALUE", &format!("{MARKER}={marker}")))
}

/// A process that leads a session (its number is the session's) and carries the marker is the command's first one, or
/// one that started a session itself: all who are in that session belong to it. `${l##*) }` is what follows the
/// name in `/proc/PID/stat`: state, parent, group, session.
const KILL: &str = r#"
sessions=" "
round=0
while [ "$round" -lt 1000 ]; do
    round=$((round + 1))
    victims=" "
    for file in $(grep -ls MARKER=VALUE /proc/[0-9]*/environ 2>/dev/null); do
        pid=${file#/proc/}
        victims="$victims${pid%/environ} "
    done
    table=
    for file in /proc/[0-9]*/stat; do
        { IFS= read -r l <"$file"; } 2>/dev/null || continue
        pid=${l%% *}
        set -- ${l##*) }
        case "$victims" in *" $pid "*)
            [ "$4" != "$pid" ] || sessions="$sessions$pid " ;;
        esac
        [ "$1" = Z ] || table="$table $pid:$4"
    done
    for entry in $table; do
        case "$sessions" in *" ${entry#*:} "*) victims="$victims${entry%:*} " ;; esac
    done
    [ "$victims" != " " ] || exit 0
    kill -9 $victims 2>/dev/null
done
exit 1
"#;

/// `printf %b` turns it back.
fn one_line(script: &str) -> Vec<u8> {
    let mut line = script.replace('\\', r"\\").replace('\n', r"\n");
    line.push('\n');
    line.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_is_one_line_and_replaces_the_shell() {
        let command = Command::new("printf")
            .args(["%s\n", "it's"])
            .env("A", "b\\c")
            .cwd("/tmp/x y");
        let expected = concat!(
            r"export PROVISOR_COMMAND=m\ncd -- '/tmp/x y' || exit 126\nexport A='b\\c'\n",
            r"exec 'printf' '%s\n' 'it'\\''s' </dev/null",
            "\n"
        );
        assert_eq!(String::from_utf8(start(&command, "m")).unwrap(), expected);
    }

    #[test]
    fn a_command_with_input_keeps_what_follows_the_script() {
        let script = start(&Command::new("cat").stdin("x"), "m");
        assert!(script.ends_with(b"exec 'cat'\n"));
    }
}
