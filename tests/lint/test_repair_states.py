"""The states of a repair are the same in the C table and in the database's CHECK, and so are the actions."""
import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def words(text):
    return re.findall(r"'([a-z_]+)'", text)


def check_list(table, column):
    sql = (ROOT / "migrations/0001_foundation.sql").read_text(encoding="utf-8")
    body = re.search(rf"CREATE TABLE {table} \((.*?)\n\);", sql, re.S).group(1)
    return words(re.search(rf"{column}\s+text[^,]*?CHECK \({column} IN\s*\((.*?)\)\)", body, re.S).group(1))


class RepairStates(unittest.TestCase):
    def test_the_check_lists_the_states_of_the_table_in_c(self):
        header = (ROOT / "server/repair/fsm.h").read_text(encoding="utf-8")
        table = header[header.index("#define REPAIR_STATE_TABLE"):header.index("enum repair_state {")]
        self.assertEqual(re.findall(r'X\(REPAIR_\w+, "([a-z]+)"', table), check_list("repair", "state"))

    def test_the_check_lists_the_actions_of_the_table_in_c(self):
        source = (ROOT / "server/repair/action.c").read_text(encoding="utf-8")
        self.assertEqual(re.findall(r'\.name = "([a-z_]+)"', source), check_list("repair", "action"))

    def test_no_statement_writes_a_state_by_its_name(self):
        for path in sorted((ROOT / "db/sql").glob("repair*.sql")):
            text = re.sub(r"--[^\n]*", "", path.read_text(encoding="utf-8"))
            for update in re.findall(r"UPDATE repair r\s+SET state = ([^,]+),", text):
                self.assertRegex(update, r"^\$\d+", f"{path.name}: state = {update}")


if __name__ == "__main__":
    unittest.main()
