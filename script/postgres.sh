# Sourced by script/server: a private PostgreSQL 15 under the data folder, by socket only, with default durability.
# Started by root it runs as the system user postgres, since PostgreSQL refuses root; otherwise as the caller.
# shellcheck shell=bash

pg_bin=/usr/lib/postgresql/15/bin
pg_user=$(id -un)
[ "$(id -u)" -eq 0 ] && pg_user=postgres

pg_as() { # runs a command as PostgreSQL's user
    if [ "$(id -un)" = "$pg_user" ]; then "$@"; else runuser -u "$pg_user" -- "$@"; fi
}

postgres_start() { # data folder
    pg_data=$1/postgres
    pg_socket=$1/run
    # A socket's path may have 107 bytes; PostgreSQL and a conninfo want it without blanks.
    if [ ${#pg_socket} -gt 85 ] || [[ $pg_socket =~ [^A-Za-z0-9/._-] ]]; then
        pg_socket=/tmp/muster-$(id -u)-$(printf %s "$1" | sha256sum | cut -c1-12)
    fi
    mkdir -p "$pg_data" "$pg_socket"
    chmod 0700 "$pg_data" "$pg_socket"
    [ "$(id -u)" -eq 0 ] && chown "$pg_user" "$pg_data" "$pg_socket"
    if ! pg_as test -x "$pg_data" || ! pg_as test -w "$pg_data"; then
        echo "script/server: the user $pg_user cannot reach $pg_data, and PostgreSQL cannot run as root." >&2
        echo "Choose a folder that it can reach: script/server --data /var/lib/muster" >&2
        exit 1
    fi
    if [ ! -s "$pg_data/PG_VERSION" ]; then
        # Made aside and moved into place when complete, so that a start that is cut off spoils nothing.
        local fresh=$pg_data.new
        rm -rf "$fresh"
        mkdir -m 0700 "$fresh"
        [ "$(id -u)" -eq 0 ] && chown "$pg_user" "$fresh"
        pg_as "$pg_bin/initdb" -D "$fresh" -A peer -E UTF8 --locale=C.UTF-8 --data-checksums >"$1/postgres-init.log" 2>&1 || {
            echo "script/server: initdb failed; see $1/postgres-init.log" >&2
            exit 1
        }
        cat >"$fresh/pg_hba.conf" <<'HBA'
local all all peer map=muster
HBA
        {
            echo "muster $pg_user $pg_user"
            for role in muster_migrate muster_app muster_ingest muster_loop muster_backup; do
                echo "muster $(id -un) $role"
            done
        } >"$fresh/pg_ident.conf"
        cat >>"$fresh/postgresql.conf" <<'CONF'
listen_addresses = ''
shared_buffers = 256MB
max_connections = 60
max_wal_size = 2GB
CONF
        mv -T "$fresh" "$pg_data"
    fi
    # Left by a start that was killed.
    if pg_as "$pg_bin/pg_ctl" -D "$pg_data" status >/dev/null 2>&1; then
        pg_as "$pg_bin/pg_ctl" -D "$pg_data" -m fast -w stop >/dev/null
    fi
    if ! pg_as "$pg_bin/pg_ctl" -D "$pg_data" -o "-k $pg_socket" -l "$pg_data/server.log" -w -t 60 start >/dev/null 9>&-; then
        echo "script/server: PostgreSQL did not start; the last lines of $pg_data/server.log:" >&2
        tail -n 10 "$pg_data/server.log" >&2
        exit 1
    fi
    pg_started=1
    if ! pg_psql -d postgres -Atc "SELECT 1 FROM pg_database WHERE datname = 'muster'" | grep -q 1; then
        pg_psql -d postgres -c "CREATE DATABASE muster"
    fi
    pg_psql -d muster -f - <deploy/postgresql/roles.sql
    pg_psql -d muster -c "GRANT CREATE ON DATABASE muster TO muster_owner"
}

pg_psql() { PGOPTIONS='-c client_min_messages=warning' pg_as psql -X -q -v ON_ERROR_STOP=1 -h "$pg_socket" -U "$pg_user" "$@"; }

postgres_conninfo() { echo "host=$pg_socket dbname=muster user=$1"; }

postgres_stop() {
    [ "${pg_started:-0}" -eq 1 ] || return 0
    pg_as "$pg_bin/pg_ctl" -D "$pg_data" -m fast -w stop >/dev/null
}
