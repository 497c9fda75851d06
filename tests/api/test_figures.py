"""Summaries, history and housekeeping of the background loops."""
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from fake_agent import Agent, Beat  # noqa: E402
from server import Musterd  # noqa: E402
from waiting import wait_for as until  # noqa: E402


@pytest.fixture(scope="module")
def house():
    with Musterd(interval_seconds=2, loop_period_ms=100, rollup_interval_ms=200, history_interval_seconds=2) as running:
        yield running


def rollup(server, columns):
    return server.sql(f"SELECT {columns} FROM cluster_rollup WHERE cluster_id = '{server.cluster_id}'")


def test_a_summary_adds_up_what_the_nodes_say_and_leaves_out_what_is_old(house):
    agents = [Agent(house, gpus=gpus) for gpus in (8, 4, 16)]
    with Beat(*agents):
        columns = ("nodes, healthy, gpus, gpus_read, round(gpu_busy_ratio::numeric, 3), gpu_mem_used_mib, gpu_mem_total_mib, power_w,"
                   " round(cpu_ratio::numeric, 3), mem_used_mib, net_mbps, fabric_mbps IS NULL")
        until(lambda: rollup(house, columns) == "3|3|28|28|0.900|2800|5600|14000|0.300|3000|6|t", said=lambda: rollup(house, columns))
    # Nobody reports any more: no reading is better than an old one.
    until(lambda: rollup(house, "gpus_read, gpu_busy_ratio IS NULL, unknown, gpus") == "0|t|3|28")


def test_the_version_of_summaries_moves_only_with_them(house):
    head = lambda: house.sql(f"SELECT rollup_version FROM org_head WHERE org_id = '{house.org_id}'")
    until(lambda: rollup(house, "unknown = nodes AND seen_20s = 0") == "t")
    time.sleep(0.5)
    before = head()
    time.sleep(1)
    assert head() == before


def test_history_is_one_row_a_step_by_slot_with_gaps_for_the_silent(house):
    heard, silent = Agent(house), Agent(house)
    slots = {agent: int(house.sql(f"SELECT slot FROM node WHERE id = '{agent.node_id}'")) for agent in (heard, silent)}
    with Beat(heard):
        sample = (f"SELECT gpu_util[{slots[heard] + 1}], gpu_mem_permille[{slots[heard] + 1}], cpu_permille[{slots[heard] + 1}],"
                  f" net_mbps[{slots[heard] + 1}], gpu_util[{slots[silent] + 1}] IS NULL FROM cluster_history"
                  f" WHERE cluster_id = '{house.cluster_id}' ORDER BY at DESC LIMIT 1")
        until(lambda: house.sql(sample) == "90|500|300|2|t")
        time.sleep(4)
    doubles = house.sql("SELECT count(*) FROM (SELECT cluster_id, at, chunk FROM cluster_history GROUP BY 1, 2, 3 HAVING count(*) > 1) d")
    odd = house.sql("SELECT count(*) FROM cluster_history WHERE extract(epoch FROM at)::bigint % 2 <> 0")
    assert (doubles, odd) == ("0", "0")


def test_the_first_look_makes_partitions_and_throws_away_what_is_old(house):
    house.terminate()
    house.sql(f"INSERT INTO idempotency (org_id, key, fingerprint, status, created_at) VALUES ('{house.org_id}', 'old', '\\x00', 200,"
              f" now() - interval '25 hours'), ('{house.org_id}', 'new', '\\x00', 200, now() - interval '23 hours');"
              "DELETE FROM state_anchor")
    house.start()
    until(lambda: house.sql("SELECT count(*) FROM idempotency WHERE key = 'old'") == "0")
    assert house.sql("SELECT count(*) FROM idempotency WHERE key = 'new'") == "1"
    until(lambda: house.sql(f"SELECT cardinality(states) > 0 FROM state_anchor WHERE cluster_id = '{house.cluster_id}'") == "t")
    until(lambda: all(loop["ok"] for loop in house.api("GET", "/readyz").json()["background"]))
    ready = house.api("GET", "/readyz").json()
    assert ready["partitions_days"] >= 14
    assert {loop["name"] for loop in ready["background"]} == {"derive_nodes", "close_incidents", "propose_repairs", "run_repairs",
                                                             "roll_up", "maintain", "sign_audit", "approve_repairs",
                                                             "refresh_logins", "schedulers", "machines", "resolve_settings", "webhooks", "hooks", "ironic"}


def test_loops_go_on_after_the_database_was_away(house):
    house.pg.restart()
    until(lambda: house.api("GET", "/readyz").status_code == 200)
    agent = Agent(house)
    with Beat(agent):
        until(lambda: house.sql(f"SELECT state FROM node WHERE id = '{agent.node_id}'") == "healthy")
    metrics = house.client.get(house.url("/metrics")).text
    assert 'muster_background_runs_total{loop="derive_nodes"}' in metrics
