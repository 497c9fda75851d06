"""Figures and reports over repairs, from a past that is written as the loops write it."""

from datetime import datetime, timedelta, timezone

NOW = datetime.now(timezone.utc).replace(microsecond=0)
# What the loops write about these nodes meanwhile is not part of it.
SPAN = f"since={(NOW - timedelta(hours=24)).isoformat().replace('+00:00', 'Z')}&until={(NOW - timedelta(hours=1)).isoformat().replace('+00:00', 'Z')}"


def ago(hours):
    return f"'{(NOW - timedelta(hours=hours)).isoformat()}'"


def past(world):
    """A cluster whose node was unhealthy for two hours, under repair for one, and is healthy since; one repair ended well."""
    cluster = world.cluster(gpus_per_node=8)
    node = world.node(cluster)
    for state, hours in (("healthy", 24), ("unhealthy", 10), ("repairing", 8), ("healthy", 7)):
        world.sql("INSERT INTO node_transition (org_id, cluster_id, node_id, at, state) VALUES"
                  f" ('{world.org.id}', '{cluster}', '{node}', {ago(hours)}, '{state}')")
    incident = world.incident(node, summary="GPU <b>lost</b> | *79*")
    world.sql(f"UPDATE incident SET first_at = {ago(10)}, check_id = 'gpu_lost', code = '79', closed_at = {ago(7)},"
              f" close_reason = 'Repaired', evidence = '[{{\"text\": \"NVRM: Xid 79\"}}]' WHERE id = '{incident}'")
    repair = world.repair(node)
    world.sql(f"UPDATE repair SET state = 'succeeded', incident_id = '{incident}', incident_ids = '{{{incident}}}', created_at = {ago(10)},"
              f" decided_at = {ago(9)}, ended_at = {ago(7)}, automatic = true WHERE id = '{repair['id']}'")
    return cluster, node, repair


def test_statistics_say_how_long_how_right_and_what_was_lost(world):
    cluster, node, _ = past(world)
    answer = world.api("GET", f"clusters/{cluster}/repair-statistics?{SPAN}")
    assert answer.status_code == 200, answer.text
    body = answer.json()
    action, = body["by_action"]
    assert (action["action"], action["repairs"], action["succeeded"], action["automatic"]) == ("reboot", 1, 1, 1)
    assert action["mean_to_repair_seconds"] == action["median_to_repair_seconds"] == 3 * 3600
    assert action["mean_to_decide_seconds"] == 3600 and action["mean_to_carry_out_seconds"] == 2 * 3600
    assert body["by_rule"] == [{"check_id": "gpu_lost", "code": "79", "repairs": 1, "right": 1, "right_ratio": 1}]
    assert abs(body["lost_node_hours"] - 3) < 0.01 and abs(body["lost_gpu_hours"] - 24) < 0.1
    assert [item["node_id"] for item in body["lost_most"]] == [node]


def test_a_span_without_anything_has_no_figures(world):
    cluster, _, _ = past(world)
    body = world.api("GET", f"clusters/{cluster}/repair-statistics?since=2020-01-01T00:00:00Z&until=2020-02-01T00:00:00Z").json()
    assert body["by_action"] == [] and body["lost_gpu_hours"] == 0 and body["incidents"] == 0


def test_a_report_tells_the_span_and_carries_no_markup_of_others(world):
    cluster, _, repair = past(world)
    answer = world.api("GET", f"clusters/{cluster}/incident-report?{SPAN}")
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/markdown"), answer.text
    assert "GPU \\<b\\>lost\\</b\\> \\| \\*79\\*" in answer.text
    assert f"repair {repair['no']} (reboot)" in answer.text and "    NVRM: Xid 79" in answer.text and "closed: Repaired" in answer.text
    empty = world.api("GET", f"clusters/{world.cluster()}/incident-report")
    assert empty.status_code == 200 and "Nothing happened." in empty.text
