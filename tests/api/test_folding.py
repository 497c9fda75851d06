"""What belongs together: incidents of one cause, parts that fail again, causes that many nodes share, and when nothing is proposed."""

from datetime import datetime, timezone

import pytest
from agent import Agent, clear, fault, join_token, stream, wait_for
from server import Musterd
from world import World

PCI, OTHER = "0000:1b:00", "0000:3b:00"
LONG = 60


def gpu_parts(*serials):
    return {"devices": [{"type": "gpu", "index": i, "serial": serial, "pci": pci, "model": "H100", "firmware": "", "memory_mib": 200}
                        for i, (serial, pci) in enumerate(zip(serials, (PCI, OTHER)))]}


def join(world, cluster, **fields):
    agent = Agent(world.server, world.name("f")).enroll(join_token(world.server, cluster_id=cluster, org_id=world.org.id))
    agent.serials = fields.pop("serials", [world.name("s"), world.name("s")])
    agent.report_ok(inventory=gpu_parts(*agent.serials))
    # Silent only where a test says so, not by a slow machine.
    world.sql(f"UPDATE node SET interval_seconds = 3600 WHERE id = '{agent.node_id}'")
    agent.sent = [0, 0, 0]
    if fields:
        node = world.api("GET", f"nodes/{agent.node_id}")
        while world.api("PATCH", f"nodes/{agent.node_id}", fields, headers={"If-Match": node.headers["etag"]}).status_code == 412:
            node = world.api("GET", f"nodes/{agent.node_id}")
    return agent


def tell(agent, *events, at=None):
    """Faults, each (check, code, device, kernel sequence, fields)."""
    streams = {}
    for check, code, device, kernel, fields in events:
        severity = fields.get("severity", "critical")
        number = {"critical": 0, "warning": 1, "info": 2}[severity]
        agent.sent[number] += 1
        event = fault(agent.sent[number], check, code=code, device=device, summary=f"{check} {code}", clears="person",
                      **{"node_fault": severity == "critical", "action": "reboot", "severity": severity, **fields})
        streams.setdefault(number, []).append({**event, **({"kmsg_seq": kernel} if kernel else {}), **({"at": at} if at else {})})
    agent.report_ok(streams=[stream(number, *mine) for number, mine in sorted(streams.items())])


def open_of(world, agent, **query):
    text = "&".join(f"{key}={value}" for key, value in query.items())
    items = world.api("GET", f"incidents?node_id={agent.node_id}&state=open&limit=200&{text}").json()["items"]
    return {one["check_id"]: one for one in items}


def rooted(world, agent, root, *members):
    """Waits until these follow from that; gives all by check."""
    def look():
        found = open_of(world, agent)
        if root in found and all(m in found and found[m]["root_id"] == found[root]["id"] for m in members):
            return found
        return None
    return wait_for(look, LONG)


@pytest.fixture(scope="module")
def cluster(world):
    return world.cluster()


# ------------------------------------------------------------ one cause
def test_kernel_dcgm_and_slurm_tell_of_one_cause(world, cluster):
    agent = join(world, cluster)
    tell(agent, ("slurm_node_state", "gres_low", "", 0, {"severity": "warning", "node_fault": False, "action": "none"}),
         ("gpu_recovery_action", "1", "0", 0, {"action": "reset_gpu"}), ("gpu_count", "7/8", "", 0, {}),
         ("gpu_lost", "79", PCI, 100, {}))
    found = rooted(world, agent, "gpu_lost", "slurm_node_state", "gpu_recovery_action", "gpu_count")
    assert found["gpu_lost"]["root_id"] is None
    assert {m["check_id"] for m in found["gpu_lost"]["members"]} == {"slurm_node_state", "gpu_recovery_action", "gpu_count"}
    assert list(open_of(world, agent, roots="true")) == ["gpu_lost"], "one incident for one cause"


def test_the_fabric_manager_follows_from_the_switch(world, cluster):
    agent = join(world, cluster)
    tell(agent, ("fabric_manager", "down", "", 0, {"action": "remove"}), ("nvswitch_sxid", "20034", "0000:a1:00", 50, {}),
         ("gpu_nvlink", "74", PCI, 52, {}))
    found = rooted(world, agent, "nvswitch_sxid", "fabric_manager", "gpu_nvlink")
    assert found["nvswitch_sxid"]["root_id"] is None


def test_the_root_is_the_first_by_the_kernels_sequence(world, cluster):
    agent = join(world, cluster)
    tell(agent, ("gpu_xid", "62", PCI, 900, {}), ("gpu_gsp", "119", PCI, 800, {}))
    found = rooted(world, agent, "gpu_gsp", "gpu_xid")
    assert found["gpu_gsp"]["root_id"] is None


def test_faults_of_two_parts_are_two_causes(world, cluster):
    agent = join(world, cluster)
    tell(agent, ("gpu_ecc", "48", PCI, 10, {}), ("gpu_lost", "79", OTHER, 20, {}), ("gpu_gsp", "119", OTHER, 21, {}))
    found = rooted(world, agent, "gpu_lost", "gpu_gsp")
    assert found["gpu_ecc"]["root_id"] is None and found["gpu_ecc"]["members"] == []


def test_what_came_long_before_does_not_follow(world, cluster):
    agent = join(world, cluster)
    tell(agent, ("gpu_xid", "31", PCI, 5, {"severity": "info"}))
    incident = open_of(world, agent)["gpu_xid"]
    world.sql(f"UPDATE incident SET first_at = first_at - interval '2 hours' WHERE id = '{incident['id']}'")
    tell(agent, ("gpu_lost", "79", PCI, 100, {}), ("gpu_gsp", "119", PCI, 101, {}))
    found = rooted(world, agent, "gpu_lost", "gpu_gsp")
    assert found["gpu_xid"]["root_id"] is None


def test_when_the_root_ends_what_stays_stands_alone(world, cluster):
    agent = join(world, cluster)
    tell(agent, ("gpu_lost", "79", PCI, 100, {}), ("gpu_gsp", "119", PCI, 101, {}))
    found = rooted(world, agent, "gpu_lost", "gpu_gsp")
    assert world.api("POST", f"incidents/{found['gpu_lost']['id']}/close", {"reason": "Replaced"}).status_code == 200
    wait_for(lambda: open_of(world, agent)["gpu_gsp"]["root_id"] is None, LONG)


def test_the_drivers_own_word_overrides_the_action(world, cluster):
    agent = join(world, cluster)
    tell(agent, ("gpu_gsp", "119", PCI, 100, {"action": "reset_gpu"}), ("gpu_recovery_action", "154", PCI, 101, {"action": "reboot"}))
    found = rooted(world, agent, "gpu_gsp", "gpu_recovery_action")
    assert found["gpu_gsp"]["action"] == "reboot" and found["gpu_gsp"]["action_reason"] == "The driver itself asks for this."
    repair = wait_for(lambda: next(iter(world.api("GET", f"repairs?node_id={agent.node_id}").json()["items"]), None), LONG)
    assert repair["action"] == "reboot" and repair["incident_id"] == found["gpu_gsp"]["id"]


def test_the_drivers_word_does_not_keep_a_worn_part(world, cluster):
    agent = join(world, cluster)
    tell(agent, ("gpu_row_remap", "failure", PCI, 100, {"action": "remove"}), ("gpu_recovery_action", "154", PCI, 101, {"action": "reset_gpu"}))
    found = wait_for(lambda: (f := open_of(world, agent)) and any(i["root_id"] for i in f.values()) and f, LONG)
    assert found["gpu_row_remap"]["action"] == "remove"


# ------------------------------------------------------------ the part's memory
def test_the_third_fault_of_a_part_in_thirty_days_is_a_persons_wherever_it_is(world, cluster):
    serial = world.name("worn")
    for turn in range(2):
        agent = join(world, cluster, serials=[serial, world.name("s")])
        tell(agent, ("gpu_ecc", "48", PCI, 10, {"action": "reset_gpu"}))
        found = wait_for(lambda: (i := open_of(world, agent)["gpu_ecc"]) and i["serial"] == serial and i, LONG)  # noqa: B023
        assert (found["repeats"], found["action"]) == (turn + 1, "reset_gpu")
        world.api("POST", f"incidents/{found['id']}/close", {"reason": "x"})
    agent = join(world, cluster, serials=[serial, world.name("s")])
    tell(agent, ("gpu_ecc", "48", PCI, 10, {"action": "reset_gpu"}))
    found = wait_for(lambda: (i := open_of(world, agent)["gpu_ecc"]) and i["repeats"] == 3 and i, LONG)
    assert found["action"] == "remove" and "3 times in 30 days" in found["action_reason"]


def test_a_part_that_replaced_it_starts_clean(world, cluster):
    agent = join(world, cluster)
    for kernel in (10, 20):
        tell(agent, ("gpu_ecc", "48", PCI, kernel, {"action": "reset_gpu"}))
        found = wait_for(lambda: (i := open_of(world, agent)["gpu_ecc"]) and i["serial"] == agent.serials[0] and i, LONG)
        world.api("POST", f"incidents/{found['id']}/close", {"reason": "x"})
    agent.serials = [world.name("fresh"), agent.serials[1]]
    agent.report_ok(inventory=gpu_parts(*agent.serials))
    tell(agent, ("gpu_ecc", "48", PCI, 30, {"action": "reset_gpu"}))
    found = wait_for(lambda: (i := open_of(world, agent)["gpu_ecc"]) and i["serial"] == agent.serials[0] and i, LONG)
    assert (found["repeats"], found["action"]) == (1, "reset_gpu")


# ------------------------------------------------------------ a cause that many share
def common_of(world, cluster, code):
    items = world.api("GET", f"incidents?cluster_id={cluster}&check_id=common_cause&limit=200").json()["items"]
    return next((one for one in items if one["code"] == code), None)


def fail_together(world, cluster, field, value, event, count=3):
    agents = [join(world, cluster, **({field: value} if field else {})) for _ in range(count)]
    at = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    for agent in agents:
        tell(agent, event, at=at)
    return agents


@pytest.mark.parametrize("field, kind, event", [
    ("rack", "rack", ("gpu_thermal", "hw_thermal", PCI, 0, {"action": "failover"})),
    ("pdu", "PDU", ("gpu_power_brake", "hw_power_brake", PCI, 0, {"action": "failover"})),
    ("leaf", "leaf", ("ib_link", "down/polling", "mlx5_0/1", 0, {"action": "failover"})),
    ("file_server", "file server", ("nfs", "not_responding", "10.9.9.9", 0, {"severity": "warning", "action": "none"})),
])
def test_three_nodes_of_one_place_in_a_minute_are_one_incident(world, field, kind, event):
    cluster, place = world.cluster(), world.name("place")
    agents = fail_together(world, cluster, field, place, event)
    common = wait_for(lambda: (c := common_of(world, cluster, f"{kind} {place}")) and len(c["members"]) == 3 and c, LONG)
    assert common["node_id"] is None and common["count"] == 3 and common["state"] == "open"
    assert {m["node_id"] for m in common["members"]} == {a.node_id for a in agents}
    for agent in agents:
        assert open_of(world, agent)[event[0]]["common_id"] == common["id"]


def test_a_common_cause_holds_proposals_and_lets_go_when_a_person_closes_it(world):
    cluster, rack = world.cluster(), world.name("rack")
    agents = fail_together(world, cluster, "rack", rack, ("gpu_lost", "79", PCI, 0, {}))
    common = wait_for(lambda: (c := common_of(world, cluster, f"rack {rack}")) and len(c["members"]) == 3 and c, LONG)
    # What was proposed before the third node told of its fault ends by itself.
    for agent in agents:
        wait_for(lambda: all(r["state"] == "resolved" for r in repairs_of(world, agent)), LONG)  # noqa: B023
    assert world.api("POST", f"incidents/{common['id']}/close", {"reason": "The breaker is in again"}).status_code == 200
    for agent in agents:
        wait_for(lambda: any(r["state"] == "proposed" for r in repairs_of(world, agent)), LONG)  # noqa: B023
    assert [c["state"] for c in [common_of(world, cluster, f"rack {rack}")]] == ["closed"], "it is not opened again for the same faults"


def test_a_common_cause_ends_when_nothing_of_it_is_open(world):
    cluster, rack = world.cluster(), world.name("rack")
    agents = fail_together(world, cluster, "rack", rack, ("gpu_thermal", "hw_thermal", PCI, 0, {}))
    wait_for(lambda: (c := common_of(world, cluster, f"rack {rack}")) and len(c["members"]) == 3, LONG)
    for agent in agents:
        agent.sent[0] += 1
        agent.report_ok(streams=[stream(0, clear(agent.sent[0], "gpu_thermal", code="hw_thermal", device=PCI))])
    common = wait_for(lambda: (c := common_of(world, cluster, f"rack {rack}")) and c["state"] == "closed" and c, LONG)
    assert common["closed_by"] == "muster"


def test_two_nodes_of_a_rack_or_three_of_different_ones_are_no_common_cause(world):
    cluster, rack = world.cluster(), world.name("rack")
    agents = fail_together(world, cluster, "rack", rack, ("gpu_thermal", "hw_thermal", PCI, 0, {}), count=2)
    agents += fail_together(world, cluster, "rack", world.name("rack"), ("gpu_thermal", "hw_thermal", PCI, 0, {}), count=1)
    for agent in agents:
        wait_for(lambda: world.api("GET", f"repairs?node_id={agent.node_id}").json()["items"], LONG)  # noqa: B023
    assert world.api("GET", f"incidents?cluster_id={cluster}&check_id=common_cause").json()["items"] == []


def test_a_leaf_switch_is_not_blamed_for_faults_of_gpus(world):
    cluster = world.cluster()
    agents = fail_together(world, cluster, "leaf", world.name("leaf"), ("gpu_ecc", "48", PCI, 7, {}))
    for agent in agents:
        wait_for(lambda: world.api("GET", f"repairs?node_id={agent.node_id}").json()["items"], LONG)  # noqa: B023
    assert world.api("GET", f"incidents?cluster_id={cluster}&check_id=common_cause").json()["items"] == []


def test_nodes_are_found_by_pdu_and_file_server(world, cluster):
    pdu, server = world.name("pdu"), world.name("nfs")
    agent = join(world, cluster, pdu=pdu, file_server=server)
    for query in (f"pdu={pdu}", f"file_server={server}", f"pdu={pdu}&file_server={server}"):
        for sort in ("name", "-name", "state"):
            items = world.api("GET", f"clusters/{cluster}/nodes?{query}&sort={sort}").json()["items"]
            assert [one["id"] for one in items] == [agent.node_id], query
    node = world.api("GET", f"nodes/{agent.node_id}").json()
    assert (node["pdu"], node["file_server"]) == (pdu, server)


# ------------------------------------------------------------ not yet
@pytest.fixture(scope="module")
def patient():
    """A server that lets things settle, and nodes boot, for longer than the tests take."""
    with Musterd(settle_seconds=3600, boot_grace_seconds=3600) as running:
        yield World(running)


def repairs_of(world, agent):
    return world.api("GET", f"repairs?node_id={agent.node_id}").json()["items"]


def test_what_often_ends_by_itself_is_proposed_after_it_settled(patient):
    cluster = patient.cluster()
    agents = [join(patient, cluster) for _ in range(6)]
    kinds = [("ib_link", "down", "mlx5_0/1"), ("fs_readonly", "", "/data"), ("gpu_power_brake", "hw_power_brake", PCI),
             ("slurm_node_state", "not_responding", ""), ("nvswitch_sxid", "20034", "0000:a1:00")]
    for agent, (check, code, device) in zip(agents, kinds):
        patient.sql(f"UPDATE node SET booted_at = now() - interval '1 day' WHERE id = '{agent.node_id}'")
        tell(agent, (check, code, device, 0, {}))
    tell(agents[5], ("gpu_lost", "79", PCI, 9, {}))
    wait_for(lambda: repairs_of(patient, agents[5]), LONG)  # the loop has seen all of them
    assert [repairs_of(patient, agent) for agent in agents[:5]] == [[]] * 5
    for agent in agents[:5]:
        wait_for(lambda: patient.api("GET", f"nodes/{agent.node_id}").json()["state"] == "unhealthy", LONG)  # noqa: B023
    patient.sql("UPDATE incident SET first_at = first_at - interval '2 hours' WHERE closed_at IS NULL")
    for agent in agents[:5]:
        wait_for(lambda: repairs_of(patient, agent), LONG)  # noqa: B023


def test_a_booting_node_lacks_gpus_without_a_fault_until_the_deadline(patient):
    agent = join(patient, patient.cluster())
    tell(agent, ("gpu_count", "0/8", "", 0, {}))
    node = wait_for(lambda: (n := patient.api("GET", f"nodes/{agent.node_id}").json()) and n["warning"] and n, LONG)
    assert node["state"] != "unhealthy" and repairs_of(patient, agent) == []
    patient.sql(f"UPDATE node SET booted_at = booted_at - interval '2 hours' WHERE id = '{agent.node_id}'")
    wait_for(lambda: patient.api("GET", f"nodes/{agent.node_id}").json()["state"] == "unhealthy", LONG)
    wait_for(lambda: repairs_of(patient, agent), LONG)


def test_a_change_of_driver_has_the_same_grace(patient):
    agent = join(patient, patient.cluster())
    agent.report_ok(inventory={**gpu_parts(*agent.serials), "driver_version": "550.1"})
    patient.sql(f"UPDATE node SET booted_at = now() - interval '1 day' WHERE id = '{agent.node_id}'")
    agent.report_ok(inventory={**gpu_parts(*agent.serials), "driver_version": "570.1"})
    tell(agent, ("driver_mismatch", "", "", 12, {}))
    node = wait_for(lambda: (n := patient.api("GET", f"nodes/{agent.node_id}").json()) and n["warning"] and n, LONG)
    assert node["state"] != "unhealthy" and repairs_of(patient, agent) == []
    assert node["driver_changed_at"] and patient.api("GET", "checks").json()["boot_grace_seconds"] > 0
    patient.sql(f"UPDATE node SET driver_changed_at = driver_changed_at - interval '2 hours' WHERE id = '{agent.node_id}'")
    wait_for(lambda: patient.api("GET", f"nodes/{agent.node_id}").json()["state"] == "unhealthy", LONG)


def test_nothing_is_proposed_in_maintenance_which_ends_by_itself(world):
    agent = join(world, world.cluster(), paused_until="2999-01-01T00:00:00Z")
    tell(agent, ("gpu_lost", "79", PCI, 9, {}))
    wait_for(lambda: world.api("GET", f"nodes/{agent.node_id}").json()["state"] == "paused", LONG)
    other = join(world, agent.cluster_id)
    tell(other, ("gpu_lost", "79", PCI, 9, {}))
    wait_for(lambda: repairs_of(world, other), LONG)
    assert repairs_of(world, agent) == []
    world.sql(f"UPDATE node SET paused_until = now() WHERE id = '{agent.node_id}'")
    wait_for(lambda: world.api("GET", f"nodes/{agent.node_id}").json()["state"] in ("unhealthy", "repairing"), LONG)
    wait_for(lambda: repairs_of(world, agent), LONG)


def test_silence_is_unknown_and_never_proposed_for(world):
    agent = join(world, world.cluster())
    wait_for(lambda: world.api("GET", f"nodes/{agent.node_id}").json()["state"] == "healthy", LONG)
    world.sql(f"UPDATE node_latest SET seen_at = now() - interval '1 day' WHERE node_id = '{agent.node_id}'")
    wait_for(lambda: world.api("GET", f"nodes/{agent.node_id}").json()["state"] == "unknown", LONG)
    assert repairs_of(world, agent) == []


def test_silent_nodes_of_one_rack_are_a_common_cause(world):
    cluster, rack = world.cluster(), world.name("rack")
    silent = [join(world, cluster, rack=rack) for _ in range(3)]
    heard = [join(world, cluster) for _ in range(3)]
    assert len(heard) == 3, "not all of the cluster: then the server would take itself to be cut off"
    ids = ", ".join(f"'{agent.node_id}'" for agent in silent)
    world.sql(f"UPDATE node_latest SET seen_at = now() - interval '1 day' WHERE node_id IN ({ids})")
    common = wait_for(lambda: common_of(world, cluster, f"rack {rack}"), LONG)
    assert common["members"] == [] and common["count"] == 3 and common["state"] == "open"
    for agent in silent:
        agent.report_ok()
    wait_for(lambda: common_of(world, cluster, f"rack {rack}")["state"] == "closed", LONG)
