"""What pip prints where there is no wheel: one line each."""

import os
import sys
import types
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
import backend  # noqa: E402


def missing(platform="linux", programs=("cargo", "cc"), rust="rustc 1.95.0 (0123 2026-04-16)"):
    said = types.SimpleNamespace(stdout=rust)
    with (
        mock.patch.object(sys, "platform", platform),
        mock.patch("shutil.which", lambda name: name if name in programs else None),
        mock.patch("subprocess.run", return_value=said),
        mock.patch.dict(os.environ, CC="cc"),
    ):
        return backend.missing()


class Backend(unittest.TestCase):
    def test_what_is_missing_is_one_line(self):
        table = [
            ({"platform": "darwin"}, "goodput runs on Linux, and this is darwin"),
            ({"programs": ("cc",)}, "cargo is missing: install Rust 1.95 or later"),
            ({"rust": "rustc 1.94.9"}, "rustc 1.94.9 is too old to build goodput"),
            ({"rust": ""}, "rustc is too old"),
            ({"programs": ("cargo",)}, "the C compiler `cc` is missing: install gcc"),
        ]
        for case, expected in table:
            self.assertIn(expected, missing(**case))
            self.assertNotIn("\n", missing(**case))

    def test_nothing_is_missing(self):
        for rust in ("rustc 1.95.0", "rustc 1.100.0-nightly", "rustc 2.0.1"):
            self.assertIsNone(missing(rust=rust))

    def test_maturin_comes_after_that(self):
        with mock.patch.object(backend, "missing", return_value=None):
            self.assertEqual(backend.get_requires_for_build_wheel(), [backend.MATURIN])
        with mock.patch.object(backend, "missing", return_value="no"):
            with self.assertRaisesRegex(SystemExit, "^goodput-bench: no$"):
                backend.get_requires_for_build_wheel()

    def test_both_builds_have_one_maturin(self):
        tools = (ROOT / "xtask/src/wheel.rs").read_text()
        name, version = backend.MATURIN.split("==")
        self.assertIn(f'("{name}", "{version}")', tools)


if __name__ == "__main__":
    unittest.main()
