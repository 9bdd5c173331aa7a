# Which of the store paths on stdin the host does not have, whole and registered.
missing=$(xargs nix-store --check-validity --print-invalid) || exit
[ -z "$missing" ] || echo "$missing" | sed 's/^/missing=/'
