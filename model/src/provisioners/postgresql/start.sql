-- The consumers of `@component@`. Written by Provisor; what is changed here is lost.

-- Passwords stay out of the server's log, whatever it logs otherwise.
SET log_statement = 'none';
SET log_min_error_statement = 'panic';
SET log_min_duration_statement = -1;
SET password_encryption = 'scram-sha-256';

-- Who is no consumer any more cannot log in. Databases stay.
SELECT format('ALTER ROLE %I NOLOGIN PASSWORD NULL', rolname) FROM pg_roles
  WHERE shobj_description(oid, 'pg_authid') = 'provisor: @component@'
    AND rolname <> ALL (ARRAY[@wanted@]::text[]) \gexec
DO $$ BEGIN
  PERFORM pg_terminate_backend(pid) FROM pg_stat_activity JOIN pg_roles ON rolname = usename
    WHERE shobj_description(pg_roles.oid, 'pg_authid') = 'provisor: @component@' AND NOT rolcanlogin;
END $$;
