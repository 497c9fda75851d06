"""What the catalogue says about tenancy, and how the runtime roles behave."""
import re
import sys
from pathlib import Path

import psycopg
import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "lib"))
from pg import PrivatePostgres  # noqa: E402
from probe import PROBE  # noqa: E402

RUNTIME = ("muster_app", "muster_ingest", "muster_loop")
# Tables without an org: people, the installation, the orgs themselves, migrations.
WITHOUT_ORG = {"installation", "person", "sign_in_link", "device_code", "secret_master", "org", "schema_migration"}
# Policies that look across orgs, each with its reason: the writers' batches, and due work of all orgs.
ACROSS_ORGS = {
    "muster_ingest": {"node_latest", "node_stream", "incident", "org_head", "event", "node", "check_override", "custom_check"},
    "muster_loop": {"org_head", "repair", "command", "session", "agent_token", "join_token", "idempotency", "command_key_due", "issuer", "issuer_key_set", "node_settings", "webhook",
                    "repair_guard"},
}
# Functions that run as their owner, each with its callers. A trigger function has none.
SECURITY_DEFINER = {
    "audit_chain": set(),
    "auth_lookup": {"muster_app"},
    "join_lookup": {"muster_app"},
    "node_key_lookup": {"muster_app"},
    "person_orgs": {"muster_app"},
    "platform_orgs": {"muster_app"},
    "sessions_end": {"muster_app"},
    "session_end": {"muster_app"},
    "person_sessions": {"muster_app"},
    "logins_end": {"muster_app"},
    "issuer_org": {"muster_app"},
    "login_attempt_take": {"muster_app"},
    "sign_in_options": {"muster_app"},
    "partitions_make": {"muster_loop"},
    "partition_drop": {"muster_loop"},
    "statistics_refresh": {"muster_loop"},
}
ORG_A = "0192aaaa-0000-7000-8000-00000000000a"
ORG_B = "0192bbbb-0000-7000-8000-00000000000b"


@pytest.fixture(scope="module")
def pg():
    with PrivatePostgres(migrate=[str(PROBE), "migrate"], fsync=False) as server:
        server.psql(f"""
            SET search_path = muster;
            INSERT INTO org (id, name) VALUES ('{ORG_A}', 'a'), ('{ORG_B}', 'b');
            INSERT INTO org_head (org_id) VALUES ('{ORG_A}'), ('{ORG_B}');
            INSERT INTO audit_head (org_id) VALUES ('{ORG_A}'), ('{ORG_B}');
            INSERT INTO project (org_id, id, name) SELECT o.id, o.id, 'p' FROM org o;
            INSERT INTO cluster (org_id, id, project_id, name) SELECT o.id, o.id, o.id, 'c' FROM org o;
            INSERT INTO event (org_id, seq, type) SELECT o.id, 1, 'note.added' FROM org o;
            INSERT INTO audit (org_id, body) SELECT o.id, '{{}}' FROM org o;
        """)
        yield server


@pytest.fixture(scope="module")
def catalogue(pg):
    with pg.connect(autocommit=True, row_factory=psycopg.rows.dict_row) as connection:
        connection.execute("SET search_path = muster, pg_catalog")
        yield lambda sql, *values: connection.execute(sql, values or None).fetchall()


def refused(pg, role, sql):
    """The error that a runtime role gets, or None."""
    with pg.connect(role) as connection:
        try:
            connection.execute(sql)
        except psycopg.Error as error:
            return str(error)
    return None


# ---------------------------------------------------------------- T1: row security
def test_T1_every_table_with_an_org_has_row_security_enabled_and_forced(catalogue):
    rows = catalogue("""
        SELECT c.relname, c.relrowsecurity AND c.relforcerowsecurity AS safe FROM pg_class c
         WHERE c.relnamespace = 'muster'::regnamespace AND c.relkind IN ('r', 'p')
           AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'org_id' AND NOT a.attisdropped)""")
    assert len(rows) > 60, "tables and their partitions"
    assert [row["relname"] for row in rows if not row["safe"]] == []


def test_T1_tables_without_an_org_are_listed(catalogue):
    rows = catalogue("""
        SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'muster'::regnamespace AND c.relkind IN ('r', 'p')
           AND NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'org_id')""")
    assert {row["relname"] for row in rows} == WITHOUT_ORG


def policies(catalogue):
    return catalogue("""
        SELECT c.relname, p.polname, p.polcmd, p.polpermissive, pg_get_expr(p.polqual, c.oid) AS qual,
               pg_get_expr(p.polwithcheck, c.oid) AS with_check, r.rolname AS role
          FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid
          LEFT JOIN pg_roles r ON r.oid = ANY (p.polroles)
         WHERE c.relnamespace = 'muster'::regnamespace""")


def test_T1_every_table_with_an_org_has_a_tenant_policy_for_all_with_check(catalogue):
    tenant = {row["relname"]: row for row in policies(catalogue) if row["polname"] == "tenant" and row["role"] == "muster_app"}
    tables = catalogue("""
        SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'muster'::regnamespace AND c.relkind IN ('r', 'p')
           AND NOT c.relispartition AND c.relrowsecurity""")
    for table in (row["relname"] for row in tables):
        column = "id" if table == "org" else "org_id"
        wanted = f"({column} = (NULLIF(current_setting('muster.org'::text, true), ''::text))::uuid)"
        assert tenant[table]["polcmd"] in ("*", b"*"), table
        assert (tenant[table]["qual"], tenant[table]["with_check"]) == (wanted, wanted), table


def test_T1_the_owner_reaches_every_row_in_a_data_migration(catalogue):
    """Forced row security holds for the owner too: a table without this policy would silently keep its old rows."""
    owner = {row["relname"] for row in policies(catalogue)
             if row["role"] == "muster_owner" and (row["qual"], row["with_check"]) == ("true", "true")}
    tables = catalogue("""
        SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'muster'::regnamespace AND c.relkind IN ('r', 'p')
           AND NOT c.relispartition AND c.relrowsecurity""")
    assert {row["relname"] for row in tables} - owner == set()


def test_T1_policies_across_orgs_are_the_listed_ones(catalogue):
    found = {}
    for row in policies(catalogue):
        assert row["role"] in (*RUNTIME, "muster_owner"), f"{row['relname']}.{row['polname']} is for everybody"
        if not row["polpermissive"]:
            continue  # one that only takes away
        if "muster.org" not in (row["qual"] or "") and row["role"] != "muster_owner":
            found.setdefault(row["role"], set()).add(row["relname"])
            if row["role"] == "muster_loop":
                assert row["polcmd"] in ("r", b"r"), "the loops look across orgs and change inside one"
    assert found == ACROSS_ORGS


def test_T1_runtime_roles_have_no_power_and_own_nothing(catalogue):
    rows = catalogue("""
        SELECT r.rolname FROM pg_roles r WHERE r.rolname = ANY (%s)
           AND (r.rolsuper OR r.rolbypassrls OR r.rolcreaterole OR r.rolcreatedb OR r.rolreplication
                OR EXISTS (SELECT FROM pg_auth_members m WHERE m.member = r.oid)
                OR EXISTS (SELECT FROM pg_shdepend d WHERE d.refobjid = r.oid AND d.deptype = 'o'))""", list(RUNTIME))
    assert rows == []
    rows = catalogue("""
        SELECT r.rolname, has_schema_privilege(r.oid, 'muster', 'CREATE') AS schema,
               has_database_privilege(r.oid, current_database(), 'CREATE') AS database
          FROM pg_roles r WHERE r.rolname = ANY (%s)""", list(RUNTIME))
    assert len(rows) == 3 and not any(row["schema"] or row["database"] for row in rows)


def test_T1_nobody_at_runtime_may_truncate_reference_or_trigger(catalogue):
    rows = catalogue("""
        SELECT c.relname, r.rolname, p.privilege FROM pg_class c, pg_roles r, unnest(ARRAY['TRUNCATE', 'REFERENCES', 'TRIGGER']) p(privilege)
         WHERE c.relnamespace = 'muster'::regnamespace AND c.relkind IN ('r', 'p') AND r.rolname = ANY (%s)
           AND has_table_privilege(r.oid, c.oid, p.privilege)""", list(RUNTIME))
    assert rows == []


def test_T1_nothing_is_granted_to_everybody(catalogue):
    rows = catalogue("""
        SELECT c.relname FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a
         WHERE c.relnamespace = 'muster'::regnamespace AND a.grantee = 0""")
    assert rows == []
    assert catalogue("SELECT defaclrole FROM pg_default_acl") == []


def test_T1_no_runtime_role_reads_a_partition_directly(pg, catalogue):
    """A partition has no policy of its own that lets rows through, and no grant: every one is tried."""
    partitions = catalogue("""
        SELECT c.oid::regclass::text AS name, c.relacl IS NULL AS bare FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
          JOIN pg_class p ON p.oid = i.inhparent
         WHERE p.relnamespace = 'muster'::regnamespace AND p.relkind = 'p'""")
    assert len(partitions) > 50
    assert [row["name"] for row in partitions if not row["bare"]] == []
    for role in ("app", "ingest", "loop"):
        with pg.connect(role, autocommit=True) as connection:
            for row in partitions:
                for sql in (f"SELECT 1 FROM {row['name']}", f"DELETE FROM {row['name']}"):
                    with pytest.raises(psycopg.errors.InsufficientPrivilege):
                        connection.execute(sql)


def test_T1_no_migration_grants_on_all_tables():
    for path in sorted((ROOT / "migrations").glob("[0-9]*.sql")):
        text = re.sub(r"--[^\n]*", "", path.read_text())
        assert not re.search(r"ON\s+ALL\s+(TABLES|FUNCTIONS|ROUTINES)|DEFAULT\s+PRIVILEGES", text, re.I), path


def test_T1_the_app_role_sees_and_changes_its_org_only(pg):
    with pg.connect("app") as connection:
        assert connection.execute("SELECT count(*) FROM event").fetchone() == (0,), "no org, no rows"
        connection.execute("SELECT set_config('muster.org', %s, true)", [ORG_A])
        assert connection.execute("SELECT DISTINCT org_id::text FROM event").fetchall() == [(ORG_A,)]
        assert connection.execute("SELECT id::text FROM org").fetchall() == [(ORG_A,)]
        assert connection.execute("UPDATE project SET title = 'x' WHERE org_id = %s", [ORG_B]).rowcount == 0
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("INSERT INTO project (org_id, id, name) VALUES (%s, gen_random_uuid(), 'new')", [ORG_B])
        connection.rollback()
        connection.execute("SELECT set_config('muster.org', %s, true)", [ORG_A])
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("UPDATE project SET org_id = %s", [ORG_B])


def test_T1_the_ingest_role_reads_no_metrics_people_or_audit(pg):
    for sql in ("SELECT name FROM node", "SELECT gpu_util FROM node_latest", "SELECT name FROM person", "SELECT body FROM audit",
                "DELETE FROM incident", "INSERT INTO audit (org_id, body) VALUES (gen_random_uuid(), '')",
                "SELECT data FROM event"):
        assert "permission denied" in (refused(pg, "ingest", sql) or ""), sql


def test_audit_rows_and_the_chain_cannot_be_touched(pg):
    for role in ("app", "loop"):
        for sql in ("UPDATE audit SET body = ''", "DELETE FROM audit", "UPDATE audit_head SET seq = 0",
                    "INSERT INTO audit (org_id, body, seq) VALUES (gen_random_uuid(), '', 1)"):
            assert "permission denied" in (refused(pg, role, sql) or ""), (role, sql)
    for sql in ("UPDATE muster.audit SET body = ''", "DELETE FROM muster.audit", "TRUNCATE muster.audit"):
        assert "audit rows are never changed" in (refused(pg, "postgres", sql) or ""), sql


# ---------------------------------------------------------------- T3: keys
def test_T3_every_key_of_a_table_with_an_org_begins_with_it(catalogue):
    rows = catalogue("""
        SELECT i.indexrelid::regclass::text AS name FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
          JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'org_id'
         WHERE c.relnamespace = 'muster'::regnamespace AND i.indisunique AND i.indkey[0] <> a.attnum""")
    assert rows == []


def test_T3_every_reference_between_tables_with_an_org_carries_it(catalogue):
    rows = catalogue("""
        SELECT k.conname FROM pg_constraint k
          JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attname = 'org_id'
          JOIN pg_attribute b ON b.attrelid = k.confrelid AND b.attname = 'org_id'
         WHERE k.contype = 'f' AND k.connamespace = 'muster'::regnamespace
           AND NOT (k.conkey[1] = a.attnum AND k.confkey[1] = b.attnum)""")
    assert rows == []


def test_T3_a_reference_to_another_orgs_thing_is_refused(pg):
    error = refused(pg, "postgres", f"INSERT INTO muster.cluster (org_id, id, project_id, name) VALUES ('{ORG_A}', gen_random_uuid(), '{ORG_B}', 'x')")
    assert "violates foreign key constraint" in error


def test_T3_the_same_id_and_name_in_two_orgs_do_not_collide(pg):
    """No key tells one org what another has."""
    for org in (ORG_A, ORG_B):
        pg.psql(f"BEGIN; SET LOCAL muster.org = '{org}'; INSERT INTO project (org_id, id, name) "
                f"VALUES ('{org}', '0192cccc-0000-7000-8000-000000000001', 'same'); COMMIT", role="app")


# ---------------------------------------------------------------- T5: what runs with others' rights
def test_T5_functions_that_run_as_their_owner_are_the_listed_few(catalogue):
    rows = catalogue("""
        SELECT p.proname, p.proconfig, p.prorettype = 'trigger'::regtype AS is_trigger,
               array(SELECT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END
                       FROM aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a WHERE a.grantee <> p.proowner) AS callers
          FROM pg_proc p WHERE p.pronamespace = 'muster'::regnamespace AND p.prosecdef""")
    assert {row["proname"] for row in rows} == set(SECURITY_DEFINER)
    for row in rows:
        assert "search_path=muster, pg_temp" in row["proconfig"], row["proname"]
        if not row["is_trigger"]:
            assert set(row["callers"]) == SECURITY_DEFINER[row["proname"]], row["proname"]


def test_T5_views_obey_the_rights_of_who_reads_them(catalogue):
    rows = catalogue("""
        SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'muster'::regnamespace AND c.relkind IN ('v', 'm')
           AND NOT coalesce('security_invoker=true' = ANY (c.reloptions), false)""")
    assert rows == []


def test_T5_runtime_roles_reach_neither_files_nor_programs(pg):
    for role in ("app", "ingest", "loop"):
        for sql in ("COPY org FROM '/etc/passwd'", "COPY (SELECT 1) TO PROGRAM 'true'", "SELECT pg_read_file('/etc/passwd')",
                    "SELECT lo_import('/etc/passwd')", "CREATE EXTENSION dblink", "ALTER ROLE muster_app SUPERUSER",
                    "SET ROLE muster_owner", "SET session_replication_role = replica"):
            assert refused(pg, role, sql), (role, sql)


# ---------------------------------------------------------------- partitions
def test_partitions_are_made_ahead_and_again_makes_none(pg, catalogue):
    rows = catalogue("""
        SELECT p.relname, count(*) AS n FROM pg_inherits i JOIN pg_class p ON p.oid = i.inhparent
         WHERE p.relnamespace = 'muster'::regnamespace AND p.relkind = 'p' GROUP BY p.relname""")
    assert {row["n"] for row in rows} == {16}, "yesterday to 14 days ahead"
    today = lambda: pg.psql("SELECT (now() AT TIME ZONE 'UTC')::date")
    while True:  # once more where midnight came in between
        day = today()
        pg.psql("SELECT partitions_make(14)", role="loop")
        made = [pg.psql(f"SELECT partitions_make({days})", role="loop") for days in (14, 15)]
        if today() == day:
            break
    assert made == ["0", str(len(rows))]
    assert "permission denied" in refused(pg, "app", "SELECT partitions_make(14)")
