"""A driver for a real Ironic whose machines are files: MACHINES/<name>.effects has a line for each change, <name>.power is on or off.

What goes wrong is the machine's extra.fault: {"slow": seconds, "error_after": true, "ignore": true, "no_install": true}.
"""
import os
import time
from pathlib import Path

from ironic.common import exception, states
from ironic.drivers import base, fake_hardware
from ironic.drivers.modules import fake

MACHINES = Path(os.environ["MACHINES"])


def faults(node):
    return node.extra.get("fault") or {}


def is_on(node):
    path = MACHINES / f"{node.name}.power"
    return not path.exists() or path.read_text() == "on"


def happened(node, what, on):
    (MACHINES / f"{node.name}.power").write_text("on" if on else "off")
    with open(MACHINES / f"{node.name}.effects", "a", encoding="ascii") as file:
        file.write(what + "\n")


class Power(fake.FakePower):
    def get_power_state(self, task):
        return states.POWER_ON if is_on(task.node) else states.POWER_OFF

    def set_power_state(self, task, power_state, timeout=None):
        time.sleep(faults(task.node).get("slow", 0))
        if not faults(task.node).get("ignore"):
            happened(task.node, power_state, power_state == states.POWER_ON)
        if faults(task.node).get("error_after"):
            raise exception.IronicException("the controller answered with an error")

    def reboot(self, task, timeout=None):
        happened(task.node, "reboot", True)


class Deploy(fake.FakeDeploy):
    @base.deploy_step(priority=100)
    def deploy(self, task):
        time.sleep(faults(task.node).get("slow", 0))
        if faults(task.node).get("no_install"):
            raise exception.InstanceDeployFailure("the image was not there")
        happened(task.node, "install", True)

    def tear_down(self, task):
        happened(task.node, "undeploy", is_on(task.node))
        return states.DELETED


class Hardware(fake_hardware.FakeHardware):
    supported_power_interfaces = [Power]
    supported_deploy_interfaces = [Deploy]
