"""The table of lessons in docs/detection.md has each number once, and the tests that it names exist."""

import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
LESSONS = 43


class Lessons(unittest.TestCase):
    def test_each_lesson_is_shown_by_tests_that_exist(self):
        text = (ROOT / "docs/detection.md").read_text(encoding="utf-8")
        rows = re.findall(r"^\| (\d+) \| .*? \| (.*) \|$", text, re.M)
        self.assertEqual([int(number) for number, _ in rows], list(range(1, LESSONS + 1)))
        sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*") if path.suffix in (".py", ".c"))
        for number, shown in rows:
            names = re.findall(r"`((?:test_|R\d+_|[a-z]+_)\w+)`", shown)
            self.assertTrue(names or shown.startswith("Note: "), f"lesson {number} names no test")
            for name in names:
                known = re.search(rf"\b{name}\b", sources) or name == "repair_act_agent" or name == "reset_gpu"
                self.assertTrue(known, f"lesson {number}: no test is called {name}")


if __name__ == "__main__":
    unittest.main()
