# services.nginx -> nginx.conf and its unit. TLS ends here.
{ virtualHosts, ... }:
let
  location = path: settings: "    location ${path} {\n"
    + builtins.concatStringsSep "" (map (key: "      ${key} ${settings.${key}};\n") (builtins.attrNames settings))
    + "    }\n";
  host = name:
    let h = virtualHosts.${name}; in
    "  server {\n    server_name ${name};\n"
    + (if h.onlySSL or false
    then "    listen 443 ssl;\n    ssl_certificate ${h.sslCertificate};\n    ssl_certificate_key ${h.sslCertificateKey};\n"
    else "    listen 80;\n")
    + (if h ? root then "    root ${h.root};\n" else "")
    + builtins.concatStringsSep "" (map (path: location path h.locations.${path}) (builtins.attrNames (h.locations or { })))
    + "  }\n";
in
{
  config = ''
    user www-data;
    worker_processes 1;
    pid /run/nginx.pid;
    error_log syslog:server=unix:/dev/log;
    events { worker_connections 64; }
    http {
      default_type text/plain;
      access_log off;
  '' + builtins.concatStringsSep "" (map host (builtins.attrNames virtualHosts)) + "}\n";
  unit = ''
    [Unit]
    Description=nginx
    After=network.target

    [Service]
    Type=forking
    PIDFile=/run/nginx.pid
    ExecStart=/usr/sbin/nginx
    ExecReload=/usr/sbin/nginx -s reload
    ExecStop=/usr/sbin/nginx -s quit

    [Install]
    WantedBy=multi-user.target
  '';
}
