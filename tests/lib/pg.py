"""A private PostgreSQL for tests: own data, a socket in a 0700 folder, no TCP, default durability.

    with PrivatePostgres() as pg:                      # roles and an empty database `muster`
        pg.psql("SELECT 1")
    with PrivatePostgres(migrate=["build/musterd", "migrate"]) as pg:
        subprocess.run([...], env={**os.environ, **pg.env()})

The first start makes a template (about 3 s), later ones copy it (about 0.5 s). Started by root the server
runs as the user postgres, since PostgreSQL refuses root. It ends with the process that started it.
"""
import atexit
import datetime
import fcntl
import hashlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BIN = Path("/usr/lib/postgresql/15/bin")
ROLES = ("app", "ingest", "loop", "migrate")
READY_SECONDS = 120
STOP_SECONDS = 60

SETTINGS = {
    "listen_addresses": "''",
    "shared_buffers": "64MB",
    "max_connections": "100",
    "log_min_duration_statement": "-1",
    "timezone": "'UTC'",
}



def clean_environment():
    """Without what whoever runs the tests set for them: musterd refuses a key that it does not know."""
    return {key: value for key, value in os.environ.items() if not key.startswith("MUSTER_")}


class PostgresError(Exception):
    """PostgreSQL or one of its tools refused; the text has its output."""


def _server_user():
    """(user, uid, gid) that the server runs as."""
    if os.geteuid() != 0:
        return None, os.geteuid(), os.getegid()
    entry = pwd.getpwnam("postgres")
    return "postgres", entry.pw_uid, entry.pw_gid


def _tool(command, **options):
    user, _, gid = _server_user()
    identity = {"user": user, "group": gid, "extra_groups": []} if user else {}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", **identity, **options)
    if done.returncode:
        raise PostgresError(f"{' '.join(map(str, command))}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def _files_digest(*paths):
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


class PrivatePostgres:
    """One server. `settings` are lines of postgresql.conf; `migrate` is a command that migrates the database."""

    def __init__(self, migrate=None, fsync=True, settings=None):
        self.migrate = migrate
        self.settings = {**SETTINGS, "fsync": "on" if fsync else "off", **(settings or {})}
        self.folder = None
        self.process = None

    # ------------------------------------------------------------ life
    def start(self):
        if self.folder is None:
            self.folder = self._new_folder(Path(tempfile.mkdtemp(prefix="muster-pg-")))
            atexit.register(self.stop)
            self._copy_template()
        self._configure()
        self._launch()
        return self

    def stop(self):
        """Ends the server and removes its data."""
        self._end(signal.SIGINT)
        atexit.unregister(self.stop)
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None

    def fast_stop(self):
        """As `pg_ctl stop -m fast`: clients are told, everything is written. start() goes on with the data."""
        self._end(signal.SIGINT)

    def immediate_stop(self):
        """As a crash: nothing is written any more, recovery runs at the next start()."""
        self._end(signal.SIGQUIT)

    def restart(self):
        self.fast_stop()
        self._launch()

    def pause(self):
        """The server hangs: all its processes stand still until resume()."""
        self.process.send_signal(signal.SIGSTOP)
        self._wait_stopped()  # from here on it starts no process that would be missed
        self._signal_children(signal.SIGSTOP)

    def resume(self):
        self._signal_children(signal.SIGCONT)
        self.process.send_signal(signal.SIGCONT)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    # ------------------------------------------------------------ use
    @property
    def data(self):
        return self.folder / "data"

    @property
    def log(self):
        path = self.folder / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def conninfo(self, role="postgres", database="muster"):
        """`role`: app, ingest, loop, migrate, backup, or a full role name."""
        user = f"muster_{role}" if role in (*ROLES, "backup", "owner") else role
        return f"host={self.folder} dbname={database} user={user}"

    def env(self):
        """musterd's configuration for this database."""
        return {f"MUSTER_DATABASE_{role.upper()}": self.conninfo(role) for role in ROLES}

    def psql(self, sql, role="postgres", database="muster"):
        """Runs SQL and gives its rows as text, columns separated by |. Raises PostgresError."""
        done = subprocess.run([BIN / "psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-f", "-",
                               "-d", self.conninfo(role, database)],
                              input=sql, capture_output=True, text=True, check=False)
        if done.returncode:
            raise PostgresError(done.stderr.strip())
        return done.stdout.strip()

    def connect(self, role="postgres", database="muster", **options):
        """A psycopg connection."""
        import psycopg  # only where it is used
        return psycopg.connect(self.conninfo(role, database), **options)

    # ------------------------------------------------------------ inside
    def _new_folder(self, folder):
        _, uid, gid = _server_user()
        os.chmod(folder, 0o700)
        os.chown(folder, uid, gid)
        return folder

    def _configure(self):
        settings = dict(self.settings, unix_socket_directories=f"'{self.folder}'")
        lines = "".join(f"{key} = {value}\n" for key, value in settings.items())
        (self.data / "muster.conf").write_text(lines)
        os.chmod(self.data / "muster.conf", 0o644)

    def _launch(self):
        user, _, gid = _server_user()
        identity = {"user": user, "group": gid, "extra_groups": []} if user else {}
        with open(self.folder / "log", "ab") as log:
            # Not by preexec_fn: between fork and exec no Python may run where there are threads.
            self.process = subprocess.Popen(["setpriv", "--pdeathsig", "QUIT", BIN / "postgres", "-D", self.data], stdout=log,
                                            stderr=log, stdin=subprocess.DEVNULL, cwd="/", **identity)
        deadline = time.monotonic() + READY_SECONDS
        while not self._is_ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise PostgresError(f"PostgreSQL did not start:\n{self.log[-3000:]}")
            time.sleep(0.01)

    def _is_ready(self):
        """The eighth line of postmaster.pid says so; the first names the process."""
        try:
            lines = (self.data / "postmaster.pid").read_text().split("\n")
        except FileNotFoundError:
            return False
        return len(lines) > 7 and lines[0] == str(self.process.pid) and lines[7].strip() == "ready"

    def _end(self, how):
        if self.process is None:
            return
        if self.process.poll() is None:
            self.resume()
            self.process.send_signal(how)
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.send_signal(signal.SIGQUIT)
                self.process.wait(STOP_SECONDS)
        self.process = None

    def _wait_stopped(self):
        deadline = time.monotonic() + STOP_SECONDS
        while self.process.poll() is None and Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "T":
            if time.monotonic() > deadline:
                raise PostgresError("PostgreSQL does not stand still")
            time.sleep(0.005)

    def _signal_children(self, how):
        try:
            children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        except FileNotFoundError:  # it has ended
            return
        for pid in children:
            try:
                os.kill(int(pid), how)
            except ProcessLookupError:
                pass

    # ------------------------------------------------------------ templates
    def _copy_template(self):
        """Takes a data folder over: initdb, roles, the database, and the migrations where asked for."""
        sources = [ROOT / "deploy" / "postgresql" / "roles.sql", Path(__file__)]
        name = "empty"
        if self.migrate:
            # With the program that has them built in: one of before its newest migration makes another database.
            sources += [*sorted((ROOT / "migrations").glob("[0-9]*.sql")), ROOT / self.migrate[0]]
            # Partitions are made ahead from today.
            name = "migrated-" + datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%d")
        cache = Path(tempfile.gettempdir()) / f"muster-pg-templates-{os.geteuid()}"
        cache.mkdir(mode=0o711, exist_ok=True)
        if cache.stat().st_uid != os.geteuid():
            raise PostgresError(f"{cache} belongs to somebody else; remove it")
        path = cache / f"{name}-{_files_digest(*sources)}"
        with open(cache / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                self._drop_old_templates(cache)
                self._make_template(path)
            # Under the lock: nobody throws it away meanwhile.
            os.utime(path)
            _tool(["cp", "-a", str(path), str(self.data)])

    @staticmethod
    def _drop_old_templates(cache):
        for old in cache.iterdir():
            if old.is_dir() and time.time() - old.stat().st_mtime > 86400:
                shutil.rmtree(old, ignore_errors=True)

    def _make_template(self, path):
        maker = PrivatePostgres(fsync=False)
        maker.folder = maker._new_folder(Path(tempfile.mkdtemp(prefix="muster-pg-")))
        try:
            _tool([BIN / "initdb", "-D", maker.data, "-U", "postgres", "-A", "trust", "-E", "UTF8",
                   "--locale=C.UTF-8", "--data-checksums", "--wal-segsize=1", "--no-sync"])
            with open(maker.data / "postgresql.conf", "a") as conf:
                conf.write("include_if_exists = 'muster.conf'\n")
            maker._configure()
            maker._launch()
            maker.psql("CREATE DATABASE muster", database="postgres")
            maker.psql((ROOT / "deploy" / "postgresql" / "roles.sql").read_text())
            maker.psql("GRANT CREATE ON DATABASE muster TO muster_owner")
            if self.migrate:
                self._run_migrate(maker)
            maker.fast_stop()
            (maker.data / "muster.conf").unlink()
            os.rename(maker.data, path)
        finally:
            maker._end(signal.SIGQUIT)
            shutil.rmtree(maker.folder, ignore_errors=True)

    def _run_migrate(self, maker):
        done = subprocess.run(self.migrate, cwd=ROOT, env={**clean_environment(), **maker.env()}, capture_output=True,
                              text=True, check=False)
        if done.returncode:
            raise PostgresError(f"{self.migrate}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
