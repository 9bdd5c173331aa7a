# systemd.services.<name> -> the text of a unit file.
services:
let
  value = v: if v == true then "true" else if v == false then "false" else toString v;
  # A list becomes one line a value, as NixOS writes it.
  setting = name: v: if builtins.isList v then builtins.concatStringsSep "" (map (setting name) v) else "${name}=${value v}\n";
  section = name: settings:
    "[${name}]\n" + builtins.concatStringsSep "" (map (key: setting key settings.${key}) (builtins.attrNames settings)) + "\n";
  words = builtins.concatStringsSep " ";
  orders = service: builtins.listToAttrs (builtins.filter (entry: entry.value != "") (map
    ({ key, option }: { name = key; value = words (service.${option} or [ ]); })
    [
      { key = "After"; option = "after"; }
      { key = "Before"; option = "before"; }
      { key = "Requires"; option = "requires"; }
      { key = "Wants"; option = "wants"; }
    ]));
  environment = service:
    let variables = service.environment or { };
    in if variables == { } then { }
    else { Environment = map (name: "\"${name}=${variables.${name}}\"") (builtins.attrNames variables); };
  unit = name: service:
    section "Unit" ({ Description = service.description or name; } // orders service // (service.unitConfig or { }))
    + section "Service" (environment service // (service.serviceConfig or { }))
    + (if service ? wantedBy then section "Install" { WantedBy = words service.wantedBy; } else "");
in
builtins.listToAttrs (map (name: { name = "${name}.service"; value = unit name services.${name}; }) (builtins.attrNames services))
