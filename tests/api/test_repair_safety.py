"""What a repair must never do: the last of a role, a job that began meanwhile, a herd, a database that is away (promises R8, R13, R15, O1)."""
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from fake_agent import Agent, Beat, join_token, reboots  # noqa: E402
from test_policies import ALONE, codes_are, read, write_policy  # noqa: E402
from test_repairs import approve, commands_of, fresh_key, make_server, new_node, node_is, proposed, repair_in  # noqa: E402
from waiting import wait_for  # noqa: E402


@pytest.fixture(scope="module")
def house():
    running = make_server()
    # each test breaks nodes of its own cluster: together they must not open the breaker of the org
    answer = running.api("POST", "/api/v1/policies", {"breaker_floor": 1000, "breaker_percent": 100}, headers=fresh_key())
    assert answer.status_code == 201, answer.text
    yield running
    running.stop()


def change(house, agent, **fields):
    """Nodes change by themselves all the time: what is stale is read anew."""
    path = f"/api/v1/nodes/{agent.node_id}"

    def done():
        version = house.api("GET", path).json()["version"]
        answer = house.api("PATCH", path, fields, headers={"If-Match": f'"{version}"'})
        assert answer.status_code in (200, 412), answer.text
        return answer.json() if answer.status_code == 200 else None
    return wait_for(done)


def neighbours(house, count):
    """Nodes of one cluster of their own."""
    first = new_node(house)
    token = join_token(house, uses=max(1, count - 1), cluster_id=first.cluster_id)
    return [first] + [Agent(house, token=token) for _ in range(count - 1)]


# ---------------------------------------------------------------- roles
def test_R8_the_last_healthy_node_of_a_role_is_left_to_a_person(house):
    agents = neighbours(house, 3)
    login, other, _ = agents
    write_policy(house, login, automatic=["gpu_lost"], **ALONE)
    assert change(house, login, role="login")["role"] == "login"
    login.answer = reboots
    with Beat(*agents):
        for agent in agents:
            node_is(house, agent, "healthy")
        login.xid79()
        repair = repair_in(house, login, "proposed")
        assert codes_are(house, repair, "last_of_role") == {"last_of_role"}
        assert read(house, repair)["state"] == "proposed" and read(house, repair)["can_approve"] is True
        assert commands_of(house, repair) == 0
        change(house, other, role="login")  # now there is another one
        assert repair_in(house, login, "succeeded", "failed", "unknown")["state"] == "succeeded"


def test_a_role_is_a_short_text_that_can_be_taken_away(house):
    agent = new_node(house)
    path = f"/api/v1/nodes/{agent.node_id}"
    version = house.api("GET", path).json()["version"]
    assert house.api("PATCH", path, {"role": "x" * 64}, headers={"If-Match": f'"{version}"'}).status_code == 422
    assert house.api("GET", path).json()["role"] == ""
    assert change(house, agent, role="controller", rack="r1", leaf="l1", pdu="p1", file_server="nfs-1")["role"] == "controller"
    assert change(house, agent, role="")["role"] == ""


# ---------------------------------------------------------------- jobs
class Slurm:
    """Its four programs, saying what files say: for states that a real one shows for moments only."""

    PROGRAMS = {
        "sinfo": '[ -e closed ] && flags=\'["DRAIN"]\' || flags="[]"\n'
                 'printf \'{"nodes":[{"name":"%s","state":"%s","state_flags":%s,"reason":"%s"}]}\' "$(cat name)" "$(cat state)" "$flags" '
                 '"$(cat reason)"\n',
        "squeue": "cat jobs\n",
        "scontrol": 'case "$3" in state=drain) echo "${4#reason=}" >reason; : >closed;; state=resume) rm closed; : >reason;; esac\n',
        "scancel": "exit 1\n",
    }

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        for name, text in self.PROGRAMS.items():
            (folder / name).write_text(f"#!/bin/sh\ncd '{folder}' || exit 1\n{text}")
            (folder / name).chmod(0o755)
        self.put("reason", "")
        self.put("name", "nobody")
        self.empties()

    def put(self, name, text):
        """As a whole: a program that reads meanwhile sees one or the other."""
        (self.folder / f"{name}.part").write_text(text)
        (self.folder / f"{name}.part").rename(self.folder / name)

    def empties(self):
        self.put("jobs", '{"jobs": []}')
        self.put("state", "idle")

    def runs(self, state="allocated", job=True):
        self.put("state", state)
        if job:
            name = (self.folder / "name").read_text()
            self.put("jobs", json.dumps({"jobs": [{"job_id": 41, "user_name": "ada", "name": "train", "job_state": "RUNNING",
                                                   "job_resources": {"allocated_nodes": [{"nodename": name}]}}]}))


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    return Slurm(tmp_path_factory.mktemp("slurm") / "bin")


@pytest.fixture(scope="module")
def slurm_house(slurm, tmp_path_factory):
    path = tmp_path_factory.mktemp("executors") / "executors.json"
    path.write_text(json.dumps({"schedulers": [{"org": "main", "cluster": "local", "kind": "slurm", "bin_dir": str(slurm.folder)}]}))
    running = make_server(executors_file=str(path), scheduler_period_ms=200, settle_seconds=0, boot_grace_seconds=0)
    running.sql(f"UPDATE cluster SET healthy_delay_seconds = 1, rejoin_within_seconds = 120 WHERE id = '{running.cluster_id}'")
    yield running
    running.stop()


def scheduler_says(house, agent, condition):
    wait_for(lambda: house.sql(f"SELECT {condition} FROM node_scheduler WHERE node_id = '{agent.node_id}'") == "t", said=condition)


def test_R15_a_node_that_is_closed_and_has_work_is_not_drained(slurm_house, slurm):
    house, agent = slurm_house, Agent(slurm_house)
    slurm.put("name", agent.name)
    slurm.empties()
    agent.answer = reboots
    with Beat(agent):
        repair = proposed(house, agent)
        slurm.runs("mixed", job=False)  # what squeue does not list is there all the same
        scheduler_says(house, agent, "state = 'allocated'")
        answer = approve(house, repair)
        assert answer.status_code == 200, answer.text
        scheduler_says(house, agent, "closed")
        for state in ("allocated", "completing", "mixed"):
            slurm.runs(state, job=False)
            since = house.sql("SELECT max(read_at) FROM cluster_scheduler")
            wait_for(lambda: house.sql(f"SELECT read_at > '{since}' AND read_at > now() - interval '1 minute' FROM cluster_scheduler") == "t")
            assert read(house, repair)["state"] in ("cordoning", "draining"), state
        assert commands_of(house, repair) == 0
        slurm.empties()
        assert repair_in(house, agent, "succeeded", "failed", "unknown", "cancelled")["state"] == "succeeded"
    assert len(agent.acted) == 1
    wait_for(lambda: not (slurm.folder / "closed").exists(), said="the node is given back")


def test_R15_a_job_that_begins_between_the_check_and_the_act_is_not_interrupted(slurm_house, slurm):
    house, agent = slurm_house, Agent(slurm_house)
    slurm.put("name", agent.name)
    slurm.empties()
    repair = proposed(house, agent)
    house.sql(f"UPDATE node_latest SET seen_at = now() + interval '1 minute' WHERE node_id = '{agent.node_id}'")
    assert approve(house, repair).status_code == 200
    # Checked, and ordered; the agent has not asked yet. Somebody opens the node again, and a job begins.
    wait_for(lambda: commands_of(house, repair) == 1)
    slurm.runs()
    scheduler_says(house, agent, "job_ids = '41'")
    assert agent.report().get("commands") in (None, []), "the order is not handed out"
    wait_for(lambda: read(house, repair)["state"] == "cancelled", said=lambda: read(house, repair))
    assert "began to run" in read(house, repair)["reason"]
    assert house.sql(f"SELECT state FROM command WHERE repair_id = '{repair['id']}'") == "expired"
    agent.report()
    assert agent.commands == {} and agent.acted == []
    slurm.empties()


# ---------------------------------------------------------------- the stop
def test_R13_while_the_database_is_away_no_order_leaves(house):
    agent = new_node(house)
    repair = proposed(house, agent)
    house.sql(f"UPDATE node_latest SET seen_at = now() + interval '1 minute' WHERE node_id = '{agent.node_id}'")
    assert approve(house, repair).status_code == 200
    wait_for(lambda: commands_of(house, repair) == 1)  # ordered, and not fetched
    house.pg.immediate_stop()
    try:
        for _ in range(3):
            with pytest.raises(RuntimeError, match=": 503 "):
                agent.report()
    finally:
        house.pg.start()
    assert agent.commands == {} and agent.deliveries == 0
    agent.answer = reboots
    with Beat(agent):
        assert repair_in(house, agent, "succeeded", "failed", "unknown")["state"] == "succeeded"
    assert len(agent.acted) == 1


def test_R13_a_stop_waits_for_the_report_that_takes_an_order_along_and_no_later_one_finds_any(house):
    """The order's row is held by a report at this moment: the stop is acknowledged after it, so it began before."""
    agent = new_node(house)
    repair = proposed(house, agent)
    house.sql(f"UPDATE node_latest SET seen_at = now() + interval '1 minute' WHERE node_id = '{agent.node_id}'")
    assert approve(house, repair).status_code == 200
    wait_for(lambda: commands_of(house, repair) == 1)
    with house.pg.connect() as report, ThreadPoolExecutor(1) as pool:
        report.execute("SET search_path = muster")
        report.execute("SELECT 1 FROM command WHERE repair_id = %s FOR NO KEY UPDATE", [repair["id"]])
        path = f"/api/v1/nodes/{agent.node_id}/stop-repairs"
        answer = pool.submit(house.api, "POST", path, {"comment": "now"}, headers=fresh_key())
        pid = report.execute("SELECT pg_backend_pid()").fetchone()[0]
        wait_for(lambda: house.sql(f"SELECT count(*) > 0 FROM pg_stat_activity WHERE {pid} = ANY (pg_blocking_pids(pid))") == "t")
        assert not answer.done()
        report.execute("UPDATE command SET state = 'sent', sent_at = now() WHERE repair_id = %s", [repair["id"]])
        report.commit()
        assert answer.result().status_code == 200
    assert house.sql(f"SELECT state FROM command WHERE repair_id = '{repair['id']}'") == "sent", "what began before goes on"
    assert agent.report().get("commands") in (None, []) and agent.commands == {}
    house.api("POST", f"/api/v1/nodes/{agent.node_id}/allow-repairs", {}, headers=fresh_key()).raise_for_status()


# ---------------------------------------------------------------- the breaker of the installation
@pytest.fixture(scope="module")
def wide_house():
    """Two organizations."""
    running = make_server()
    running.other = running.add_org("other")
    yield running
    running.stop()


def test_R9_the_breaker_of_the_installation_counts_all_and_only_a_platform_admin_closes_it(wide_house):
    house, other = wide_house, wide_house.other
    # neither the clusters' nor the organizations' own breakers open, and nothing starts before the installation's does
    calm = {"breaker_floor": 1000, "breaker_percent": 100, "mode": "automatic", "unhealthy_stop_percent": 100, "concurrency_percent": 100,
            "same_kind_min": 1000, "windows": ["mon 00:00-00:01", "tue 00:00-00:01"]}
    ours = house.api("POST", "/api/v1/policies", calm, headers=fresh_key())
    assert ours.status_code == 201, ours.text
    house.api("POST", "/api/v1/policies", calm, token=other.token, headers=fresh_key()).raise_for_status()
    here, there = join_token(house, uses=3), join_token(house, uses=3, cluster_id=other.cluster_id, org_id=other.id)
    agents = [Agent(house, token=here) for _ in range(3)] + [Agent(house, token=there) for _ in range(3)]
    guard = lambda token=None: house.api("GET", "/api/v1/guard", token=token).json()  # noqa: E731
    with Beat(*agents):
        for agent in agents:
            node_is(house, agent, "healthy")
        for agent in (*agents[:2], *agents[3:5]):
            agent.xid79()
        wait_for(lambda: guard()["platform"]["opened_at"])
        assert guard()["breaker_open"] is True and guard(other.token)["platform"]["opened_at"] and not guard()["items"][0]["opened_at"]
        repair = repair_in(house, agents[0], "proposed")
        codes_are(house, repair, "breaker")
        assert any("everywhere" in reason["detail"] for reason in read(house, repair)["why_not"])
        told = "SELECT count(*) FROM event WHERE type = 'breaker.opened' AND data ->> 'reach' = 'platform' AND org_id = '{}'"
        for org in (house.org_id, other.id):
            wait_for(lambda: house.sql(told.format(org)) == "1")
        path, body = "/api/v1/platform/breaker/reset", {"comment": "the driver was rolled back"}
        assert house.api("POST", path, body, token=house.token("admin"), headers=fresh_key()).status_code == 403
        assert house.api("POST", path, {}, headers=fresh_key()).status_code == 422, "a comment is asked for"
        closed = house.api("POST", path, body, headers=fresh_key())
        assert closed.status_code == 200 and closed.json()["opened_at"] is None and closed.json()["reset_comment"] == body["comment"], closed.text
        assert house.api("POST", path, body, headers=fresh_key()).status_code == 409
        changed = house.api("PATCH", f"/api/v1/policies/{ours.json()['id']}", {"windows": []}, headers={"If-Match": '"1"'})
        assert changed.status_code == 200, changed.text
        codes_are(house, repair, "waited")
        assert "breaker" not in {reason["code"] for reason in read(house, repair)["why_not"]}
    assert read(house, repair)["state"] == "proposed" and commands_of(house, repair) == 0
    assert house.sql("SELECT breaker_opened_at IS NULL FROM installation") == "t", "what was counted before does not open it again"
