"""api/openapi.yaml follows its own rules: references, names, parameters, If-Match on every PATCH."""
import copy
import os
import sys
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "api"))
import embed_api  # noqa: E402


class Document(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.document = embed_api.load(os.path.join(ROOT, "api", "openapi.yaml"))

    def test_it_is_sound(self):
        self.assertGreater(sum(1 for _ in embed_api.operations(self.document)), 50)

    def refuse(self, why, change):
        broken = copy.deepcopy(self.document)
        change(broken)
        with self.assertRaises(embed_api.Refused) as caught:
            embed_api.check(broken)
        self.assertIn(why, str(caught.exception))

    def test_a_reference_to_nothing(self):
        self.refuse("names nothing", lambda d: d["components"]["schemas"].pop("Project"))

    def test_a_key_that_yaml_reads_as_a_truth_value(self):
        self.refuse("quote it", lambda d: d["components"]["schemas"]["Incident"]["properties"].update({False: {}}))

    def test_an_operation_without_permission(self):
        self.refuse("x-permission is missing", lambda d: d["paths"]["/api/v1/me"]["get"].pop("x-permission"))

    def test_a_name_that_stands_twice(self):
        self.refuse("stands twice", lambda d: d["paths"]["/api/v1/me"]["get"].update(operationId="org_list"))

    def test_a_path_parameter_that_is_not_described(self):
        self.refuse("path parameters are", lambda d: d["paths"]["/api/v1/nodes/{node}"].pop("parameters"))

    def test_a_patch_without_if_match(self):
        self.refuse("PATCH without If-Match", lambda d: d["paths"]["/api/v1/nodes/{node}"]["patch"].pop("parameters"))


if __name__ == "__main__":
    unittest.main()
