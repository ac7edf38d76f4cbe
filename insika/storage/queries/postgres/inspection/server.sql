-- Of other roles' connections one may see which database they are for, and no more.
SELECT current_setting('server_version_num')::integer, current_setting('server_version'),
       current_setting('server_encoding'),
       NOT pg_is_in_recovery() AND current_setting('default_transaction_read_only') = 'off',
       json_build_object(
         'fsync', current_setting('fsync'),
         'full_page_writes', current_setting('full_page_writes'),
         'synchronous_commit', current_setting('synchronous_commit'),
         'synchronous_standby_names', current_setting('synchronous_standby_names')),
       (SELECT count(*) FROM pg_stat_activity WHERE datid IS NOT NULL),
       least(
         current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer
           - coalesce(current_setting('reserved_connections', true), '0')::integer,
         (SELECT nullif(rolconnlimit, -1) FROM pg_roles WHERE rolname = current_user),
         (SELECT nullif(datconnlimit, -1) FROM pg_database WHERE datname = current_database())),
       (SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'insika renewal')
