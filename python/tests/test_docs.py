"""Python in the documentation runs as it stands. What names a server is only compiled."""

import os
import re
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", "python/README.md", "docs/python.md"]


def snippets():
    """Each different block once, with the page that it is on."""
    found = {}
    for page in PAGES:
        for block in re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL):
            found.setdefault(block, page)
    return found


class Docs(unittest.TestCase):
    def test_every_snippet_runs(self):
        found = snippets()
        self.assertGreaterEqual(len(found), 3)
        names = {}
        with tempfile.TemporaryDirectory() as scratch:
            before = os.getcwd()
            self.addCleanup(os.chdir, before)
            os.chdir(scratch)
            for block, page in found.items():
                code = compile(block, page, "exec")
                if "localhost" not in block:
                    exec(code, names)
            os.chdir(before)


if __name__ == "__main__":
    unittest.main()
