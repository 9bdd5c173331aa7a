# The options this fixture knows. Each level is closed: a name that is not listed is an error.
let
  only = path: names: set:
    let unknown = builtins.filter (name: !(builtins.elem name names)) (builtins.attrNames set);
    in if unknown == [ ] then set
    else throw "the option `${builtins.concatStringsSep "." (path ++ [ (builtins.head unknown) ])}' does not exist in the VM tests' system.nix";
  eachOnly = path: names: builtins.mapAttrs (name: only (path ++ [ name ]) names);
in
{
  check = config:
    let
      top = only [ ] [ "environment" "networking" "services" "system" "systemd" ] config;
      environment = only [ "environment" ] [ "etc" ] (top.environment or { });
      networking = only [ "networking" ] [ "hosts" ] (top.networking or { });
      services = only [ "services" ] [ "nginx" "postgresql" ] (top.services or { });
      system = only [ "system" ] [ "extraDependencies" ] (top.system or { });
      systemd = only [ "systemd" ] [ "services" ] (top.systemd or { });
      nginx = only [ "services" "nginx" ] [ "enable" "virtualHosts" ] (services.nginx or { });
      postgresql = only [ "services" "postgresql" ]
        [ "authentication" "enable" "enableTCPIP" "ensureDatabases" "ensureUsers" "settings" ]
        (services.postgresql or { });
    in
    {
      etc = builtins.mapAttrs (_: file: file.text) (eachOnly [ "environment" "etc" ] [ "text" ] (environment.etc or { }));
      hosts = networking.hosts or { };
      extraDependencies = system.extraDependencies or [ ];
      services = eachOnly [ "systemd" "services" ]
        [ "after" "before" "description" "environment" "requires" "serviceConfig" "unitConfig" "wantedBy" "wants" ]
        (systemd.services or { });
      nginx = {
        enable = nginx.enable or false;
        virtualHosts = eachOnly [ "services" "nginx" "virtualHosts" ]
          [ "locations" "onlySSL" "root" "sslCertificate" "sslCertificateKey" ]
          (nginx.virtualHosts or { });
      };
      postgresql = {
        enable = postgresql.enable or false;
        enableTCPIP = postgresql.enableTCPIP or false;
        authentication = postgresql.authentication or "";
        ensureDatabases = postgresql.ensureDatabases or [ ];
        ensureUsers = map (only [ "services" "postgresql" "ensureUsers" ] [ "ensureDBOwnership" "name" ])
          (postgresql.ensureUsers or [ ]);
        settings = postgresql.settings or { };
      };
    };
}
