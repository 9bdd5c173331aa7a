# Lays the system out: units/, etc/, store-paths, bin/switch-to-configuration.
mkdir -p "$out/bin" "$out/units" "$out/etc"
place() { # place FOLDER, with lines `PATH FILE` on stdin
  while read -r path file; do
    [ -n "$path" ] || continue
    mkdir -p "$(dirname "$1/$path")"
    cp "$file" "$1/$path"
  done
}
printf '%s\n' "$units" | place "$out/units"
printf '%s\n' "$etc" | place "$out/etc"
printf '%s\n' $storePaths > "$out/store-paths"
sed "s|@out@|$out|g" "$switch" > "$out/bin/switch-to-configuration"
chmod 755 "$out/bin/switch-to-configuration"
