# services.postgresql -> a cluster below /var/lib, its two configuration files and its unit, as NixOS lays it out.
{ enableTCPIP, authentication, ensureDatabases, ensureUsers, settings, ... }:
let
  value = v: if v == true then "on" else if v == false then "off" else "'${toString v}'";
  all = { port = 5432; unix_socket_directories = "/run/postgresql"; hba_file = "/etc/postgresql/pg_hba.conf";
    listen_addresses = if enableTCPIP then "*" else "localhost"; } // settings;
  lines = builtins.concatStringsSep "\n";
  # Names are safe in SQL: the model refuses others.
  database = name:
    "SELECT 'CREATE DATABASE \"${name}\"' WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = '${name}')\\gexec";
  user = { name, ensureDBOwnership ? false }: [
    "SELECT 'CREATE ROLE \"${name}\" LOGIN' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '${name}')\\gexec"
  ] ++ (if ensureDBOwnership then [ "ALTER DATABASE \"${name}\" OWNER TO \"${name}\";" ] else [ ]);
in
{
  etc = {
    "postgresql/postgresql.conf" = lines (map (name: "${name} = ${value all.${name}}") (builtins.attrNames all)) + "\n";
    # What NixOS puts behind what is set: the database's own user by the socket, nobody else.
    "postgresql/pg_hba.conf" = authentication + "\nlocal all postgres peer\n";
    "postgresql/ensure.sql" = lines (map database ensureDatabases ++ builtins.concatLists (map user ensureUsers)) + "\n";
  };
  unit = ''
    [Unit]
    Description=PostgreSQL
    After=network.target

    [Service]
    Type=notify
    User=postgres
    StateDirectory=postgresql/data
    StateDirectoryMode=0700
    RuntimeDirectory=postgresql
    Environment=PGDATA=/var/lib/postgresql/data PGHOST=/run/postgresql
    ExecStartPre=/bin/sh -c 'test -s $PGDATA/PG_VERSION || /usr/lib/postgresql/15/bin/initdb --auth-local=peer --auth-host=reject --no-instructions'
    ExecStart=/usr/lib/postgresql/15/bin/postgres -c config_file=/etc/postgresql/postgresql.conf
    ExecStartPost=/usr/bin/psql -X -q -v ON_ERROR_STOP=1 -d postgres -f /etc/postgresql/ensure.sql
    ExecReload=/bin/kill -HUP $MAINPID
    KillSignal=SIGINT
    TimeoutStartSec=180

    [Install]
    WantedBy=multi-user.target
  '';
}
