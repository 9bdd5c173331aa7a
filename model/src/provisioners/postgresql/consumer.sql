
-- @consumer@
SELECT 'CREATE ROLE "@role@" NOLOGIN' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '@role@') \gexec
COMMENT ON ROLE "@role@" IS 'provisor: @component@';
SELECT 'CREATE DATABASE "@role@" OWNER "@role@"'
  WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = '@role@') \gexec
ALTER DATABASE "@role@" OWNER TO "@role@";
REVOKE CONNECT, TEMPORARY ON DATABASE "@role@" FROM PUBLIC;
\set password `cat "$CREDENTIALS_DIRECTORY/@role@"`
ALTER ROLE "@role@" LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS PASSWORD :'password';
\unset password
