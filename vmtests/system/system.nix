# A node's system for the VM tests: `{ node }` -> a derivation with `bin/switch-to-configuration`.
#
# It gives the NixOS options that Provisor's policies emit their effect on a Debian guest, with the real services.
# It needs no nixpkgs. It is a fixture: an option that it does not know is an error, never ignored.
{ node }:
let
  config = import ./merge.nix node.modules;
  options = import ./options.nix;
  checked = options.check config;
  storePaths = map builtins.storePath (node.store_paths or [ ] ++ checked.extraDependencies);

  units = import ./units.nix checked.services;
  nginx = import ./nginx.nix checked.nginx;
  postgresql = import ./postgresql.nix checked.postgresql;

  when = condition: set: if condition then set else { };
  allUnits = units
    // when checked.nginx.enable { "nginx.service" = nginx.unit; }
    // when checked.postgresql.enable { "postgresql.service" = postgresql.unit; };
  hosts = builtins.concatStringsSep "" (map
    (address: "${address} ${builtins.concatStringsSep " " checked.hosts.${address}}
")
    (builtins.attrNames checked.hosts));
  etc = checked.etc
    // when checked.nginx.enable { "nginx/nginx.conf" = nginx.config; }
    // when checked.postgresql.enable postgresql.etc
    // when (checked.hosts != { }) { hosts = "127.0.0.1 localhost
" + hosts; };

  toFiles = prefix: files: map (path: {
    inherit path;
    file = builtins.toFile (builtins.replaceStrings [ "/" "@" "." ] [ "-" "-" "-" ] "${prefix}-${path}") files.${path};
  }) (builtins.attrNames files);
  lines = files: builtins.concatStringsSep "\n" (map ({ path, file }: "${path} ${file}") files);
in
derivation {
  name = "system-${node.name}";
  system = builtins.currentSystem;
  builder = "/bin/sh";
  args = [ "-e" ./build.sh ];
  PATH = "/usr/bin:/bin";
  switch = ./switch-to-configuration.sh;
  units = lines (toFiles "unit" allUnits);
  etc = lines (toFiles "etc" etc);
  inherit storePaths;
}
