"""Parts of nodes, registered by hand and noted on."""
from resource import check_idempotency, check_list, check_refusals, check_update, last_event


def test_registering(world):
    node, serial = world.node(), world.name("s")
    answer = world.api("POST", f"nodes/{node}/devices", {"type": "nic", "serial": serial, "pci": "0000:0c:00", "model": "CX-7"})
    assert answer.status_code == 201
    device = answer.json()
    assert (device["type"], device["serial"], device["present"], device["index"]) == ("nic", serial, False, None)
    assert world.api("GET", answer.headers["location"]).json() == device
    assert last_event(world)["data"] == {"device_id": device["id"]}


def test_a_serial_stands_once_on_a_node(world):
    node, other, body = world.node(), world.node(), {"type": "gpu", "serial": world.name("s")}
    for target, status in ((node, 201), (other, 201), (node, 409)):
        assert world.api("POST", f"nodes/{target}/devices", body).status_code == status


def test_refusals_come_all_at_once(world):
    check_refusals(world, "POST", f"nodes/{world.node()}/devices", {"type": "fan", "serial": "", "colour": 1},
                   ["#/type", "#/serial", "#/colour"])


def test_idempotency(world):
    check_idempotency(world, f"nodes/{world.node()}/devices", lambda: {"serial": world.name("s"), "type": "disk"})


def test_list(world):
    node = world.node()
    for kind, serial in (("gpu", "b"), ("gpu", "a with a space"), ("disk", "z"), ("nic", "1")):
        world.made("POST", f"nodes/{node}/devices", {"type": kind, "serial": serial})
    items = check_list(world, f"nodes/{node}/devices", "id")
    assert [(item["type"], item["serial"]) for item in items] == [("disk", "z"), ("gpu", "a with a space"), ("gpu", "b"), ("nic", "1")]
    assert world.api("GET", f"nodes/{world.org.id}/devices").status_code == 404


def test_noting(world):
    check_update(world, f"devices/{world.device()}", {"note": "Came back from repair"}, "note")
    check_refusals(world, "PATCH", f"devices/{world.device()}", {"note": "x" * 1024, "serial": "1"}, ["#/note", "#/serial"], {"If-Match": '"1"'})
