"""Which versions a connector is warned of."""

import json
import re
import unittest
from pathlib import Path

from agent_relay_connector.version import VERSION, is_outdated

PACKAGE = Path(__file__).parent.parent


class Version(unittest.TestCase):
    def test_is_that_of_the_package_and_of_the_other_connector(self) -> None:
        project = re.search(r'^version = "(.+)"$', (PACKAGE / "pyproject.toml").read_text(), re.MULTILINE)
        other = json.loads((PACKAGE.parent / "connector" / "package.json").read_text())
        self.assertEqual([VERSION, VERSION], [project and project[1], other["version"]])

    def test_is_outdated_by_a_higher_number_and_by_another_build_of_its_own(self) -> None:
        numbers = (("0.2.0-ba", "0.1.9-bb"), ("0.10.0", "0.9.0"), ("1.0.0-ba", "0.9.9-ba"), ("0.1.1-ba", "0.1.0"))
        for offered, own in (*numbers, ("0.1.0-b0123456789ab", "0.1.0-bba9876543210")):
            self.assertTrue(is_outdated(offered, own), offered)

    def test_is_outdated_by_nothing_else(self) -> None:
        for own in ("0.1.0-ba", "0.1.0"):
            for offered in ("0.1.0", "0.1.0-ba", "0.0.9-bb", None, "", "newest", f"0.2.0-{'b' * 65}", "0.2.0\n"):
                self.assertFalse(is_outdated(offered, own), (offered, own))
