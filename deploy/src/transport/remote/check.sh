# The system's own check before anything is changed. Argument: system.
"$1/bin/switch-to-configuration" check 1>&2
