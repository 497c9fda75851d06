"""Commands that the console and the documents tell people to run use options that the program knows."""
import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
KEYS = {"muster-agent": set(re.findall(r'^    \{"(\w+)", CONFIG_', (ROOT / "agent/options.c").read_text(encoding="utf-8"), re.M))
        | {"config", "line", "source", "context", "events", "check", "code", "device", "severity", "action", "clear", "list"}}
SHOWN = [ROOT / "web/src/views/join.tsx", ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


class ShownCommands(unittest.TestCase):
    def test_every_option_of_a_shown_agent_command_exists(self):
        commands = [(path.name, line) for path in SHOWN for line in path.read_text(encoding="utf-8").splitlines()
                    if re.search(r"muster-agent (run|enroll|inject|classify) ", line)]
        self.assertTrue(any(name == "join.tsx" for name, _ in commands))
        for name, line in commands:
            for option in re.findall(r"--(\w+)", re.split(r"&&", line[line.index("muster-agent"):])[0]):
                self.assertIn(option, KEYS["muster-agent"], f"{name}: {line.strip()}")

    def test_the_service_knows_the_server_after_the_shown_commands(self):
        for path in (ROOT / "web/src/views/join.tsx", ROOT / "docs/operate.md"):
            text = path.read_text(encoding="utf-8")
            self.assertLess(text.index("/etc/muster/agent.conf"), text.index("muster-agent enroll"), path.name)
            self.assertIn("server_url = ", text, path.name)


if __name__ == "__main__":
    unittest.main()
