"""Parts and machines by their serials, wherever they were."""
import uuid

from agent import Agent, fault, join_token, stream, wait_for

PCI = "0000:1b:00"


def join(world, cluster, serial, host_serial):
    agent = Agent(world.server, world.name("m")).enroll(join_token(world.server, cluster_id=cluster, org_id=world.org.id))
    agent.report_ok(inventory={"host_serial": host_serial, "devices": [{"type": "gpu", "index": 0, "serial": serial, "pci": PCI, "model": "H100",
                                                                        "firmware": "", "memory_mib": 200}]})
    return agent


def fail(world, agent, serial):
    agent.report_ok(streams=[stream(0, fault(1, "gpu_ecc", code="48", device=PCI, summary="memory", clears="person"))])
    return wait_for(lambda: next((i for i in world.api("GET", f"incidents?node_id={agent.node_id}").json()["items"] if i["serial"] == serial), None))


def test_a_part_s_history_follows_it_from_node_to_node(world):
    cluster, serial = world.cluster(), world.name("serial")
    first, second = join(world, cluster, serial, world.name("host")), join(world, world.cluster(), serial, world.name("host"))
    faults = [fail(world, first, serial), fail(world, second, serial)]
    device = next(d for d in world.api("GET", f"nodes/{first.node_id}/devices").json()["items"] if d["serial"] == serial)
    history = world.api("GET", f"devices/{device['id']}/history").json()
    assert (history["type"], history["serial"]) == ("gpu", serial)
    assert [place["node_id"] for place in history["places"]] == [first.node_id, second.node_id]
    assert [one["id"] for one in history["incidents"]] == [one["id"] for one in faults[::-1]]
    assert {one["node_name"] for one in history["incidents"]} == {first.name, second.name}


def test_a_machine_s_history_goes_over_its_names(world):
    cluster, host = world.cluster(), world.name("host")
    before, after = join(world, cluster, world.name("s"), host), join(world, cluster, world.name("s"), host)
    other = join(world, cluster, world.name("s"), world.name("host"))
    history = world.api("GET", f"nodes/{after.node_id}/machine").json()
    assert history["host_serial"] == host and {n["id"] for n in history["nodes"]} == {before.node_id, after.node_id}
    alone = world.api("GET", f"nodes/{other.node_id}/machine").json()
    assert [n["id"] for n in alone["nodes"]] == [other.node_id]


def test_serials_are_found_by_their_beginning(world):
    cluster, serial, host = world.cluster(), world.name("find"), world.name("find")
    agent = join(world, cluster, serial, host)
    for text, kind, thing in ((serial, "device", "gpu"), (host, "node", "node")):
        items = world.api("GET", f"serials?q={text}").json()["items"]
        assert [(one["kind"], one["type"], one["serial"], one["node_id"]) for one in items] == [(kind, thing, text, agent.node_id)]
    assert len(world.api("GET", f"serials?q={world.mark}-find&count=1").json()["items"]) == 1
    assert world.api("GET", "serials?q=zz").status_code == 422 and world.api("GET", "serials").status_code == 422
    assert world.api("GET", "serials?q=no-such-serial").json()["items"] == []


def test_what_is_not_there_is_404(world):
    assert world.api("GET", f"devices/{uuid.uuid4()}/history").status_code == 404
    assert world.api("GET", f"nodes/{uuid.uuid4()}/machine").status_code == 404
