"""Keywords, exit codes, progress: against a program that leaves what the test says."""

import contextlib
import io
import os
import sys
import types
import unittest
from pathlib import Path
from unittest import mock

import goodput
from goodput import _progress
from goodput._flags import words
from program import comparison, program, sweep


class Flags(unittest.TestCase):
    def test_keywords_are_flags(self):
        table = [
            ({"num_requests": 50}, ["--num-requests=50"]),
            ({"rate": 2.5, "stream": True}, ["--rate=2.5", "--stream"]),
            ({"rate": float("inf"), "no_probe": False, "slo": None}, ["--rate=inf"]),
            (
                {"rates": [1, 2.0], "header": ("a: b",)},
                ["--rates=1", "--rates=2.0", "--header=a: b"],
            ),
            ({"from_": 1, "out": Path("a b")}, ["--from=1", "--out=a b"]),
            ({"metrics": False, "canary": True}, ["--metrics=off", "--canary=on"]),
            ({"slo": "-1"}, ["--slo=-1"]),
        ]
        for flags, expected in table:
            self.assertEqual(words(flags), expected)

    def test_other_values_are_refused(self):
        for value in ({"a": 1}, b"x", [[1]]):
            with self.assertRaisesRegex(TypeError, "rate: a flag takes text"):
                words({"rate": value})


class ExitCodes(unittest.TestCase):
    def test_each_is_an_exception(self):
        said = "a note\nerror: no answer\n  from the server\nhint: start it\n"
        table = [
            (1, goodput.InternalError),
            (2, goodput.UsageError),
            (3, goodput.TargetError),
            (5, goodput.VoidResult),
            (130, goodput.Interrupted),
            (77, goodput.InternalError),
        ]
        for code, kind in table:
            with program(code, said), self.assertRaises(kind) as raised:
                goodput.run("mock", quiet=True)
            self.assertIs(type(raised.exception), kind)
            if code != 130:
                found = raised.exception
                self.assertEqual(
                    (found.message, found.hint), ("no answer\nfrom the server", "start it")
                )
                self.assertEqual(str(found), "no answer\nfrom the server\nhint: start it")
                self.assertIsInstance(found, goodput.GoodputError)
        self.assertEqual(goodput.VoidResult.exit_code, 5)

    def test_a_similar_flag_is_the_hint(self):
        said = "error: unexpected '--rat'\n\n  tip: a similar argument exists: '--rate'\n"
        with program(2, said), self.assertRaises(goodput.UsageError) as raised:
            goodput.run("mock", rat=3, quiet=True)
        self.assertEqual(raised.exception.hint, "did you mean '--rate'?")

    def test_a_kill_is_named(self):
        with program(-9), self.assertRaisesRegex(goodput.InternalError, "signal 9"):
            goodput.run("mock", quiet=True)

    def test_a_missed_slo_is_raised_on_request(self):
        with program(4, summary=sweep("unreachable", None)):
            found = goodput.sweep("mock", quiet=True)
            self.assertIs(found.slo_met, False)
            with self.assertRaisesRegex(goodput.SloMissed, "over the limit at 16") as raised:
                goodput.sweep("mock", quiet=True, check=True)
        self.assertIsInstance(raised.exception.result, goodput.Sweep)

    def test_a_worse_candidate_is_raised_on_request(self):
        with program(4, summary=comparison("worse")):
            found = goodput.compare("a", "b", quiet=True)
            with self.assertRaisesRegex(goodput.SloMissed, "worse"):
                goodput.compare("a", "b", quiet=True, check=True)
        self.assertEqual((found.outcome, found.sides), ("worse", ("A", "B")))
        finding = found.findings[0]
        self.assertEqual((finding.metric, finding.change, finding.high), ("ttft_p99", 0.2, 0.3))

    def test_a_void_result_gives_its_reason(self):
        caveat = {"code": "c", "severity": "void", "message": "too late", "advice": "wait"}
        summary = {**comparison("no_verdict", "void"), "caveats": [caveat]}
        with program(5, summary=summary):
            self.assertTrue(goodput.compare("a", "b", quiet=True).is_void)
            with self.assertRaises(goodput.VoidResult) as raised:
                goodput.compare("a", "b", quiet=True, check=True)
        self.assertEqual((raised.exception.message, raised.exception.hint), ("too late", "wait"))

    def test_what_measures_nothing_is_refused(self):
        with program(summary={"name": "chat"}), self.assertRaises(goodput.UsageError):
            goodput.run("mock", dry_run=True, quiet=True)
        with program(summary=[{"path": "a"}, {"path": "b"}]):
            with self.assertRaisesRegex(goodput.UsageError, "holds 2 results"):
                goodput.open("runs")

    def test_a_missing_program_is_named(self):
        with mock.patch.dict(os.environ, GOODPUT_BIN="/nowhere/goodput"):
            with self.assertRaisesRegex(goodput.MissingProgram, "GOODPUT_BIN names `/nowhere"):
                goodput.run("mock")


class Sweeps(unittest.TestCase):
    def test_goodput_has_its_interval(self):
        with program(stderr="run folder: x/y\n", summary=sweep()):
            found = goodput.sweep("mock", quiet=True)
        self.assertEqual(found.folder, Path("x/y").absolute())
        self.assertEqual(found.goodput.confirmed_rps, 12.0)
        self.assertEqual(found.goodput.crossing, goodput.Estimate(13.0, 11.0, 15.0))
        self.assertEqual(found.goodput.attainment, goodput.Estimate(0.99, 0.97, None))
        self.assertEqual(repr(found), f"<goodput.Sweep: valid, found 12 req/s, {found.folder}>")

    def test_points_are_a_frame(self):
        with program(stderr="run folder: x\n", summary=sweep(), csv="number,level\n1,2.5\n2,5\n"):
            found = goodput.sweep("mock", quiet=True)
            # That program cannot write Parquet.
            for frame in (found.points(), goodput.Run({}, Path("x")).requests()):
                self.assertEqual(frame.to_pydict(), {"number": [1, 2], "level": [2.5, 5.0]})
            self.assertEqual(list(found.points("pandas").level), [2.5, 5.0])
            self.assertEqual(found.points("polars")["level"].to_list(), [2.5, 5.0])
            with self.assertRaisesRegex(goodput.UsageError, "built without `parquet`"):
                goodput.Run({}, Path("x")).chunks()

    def test_a_missing_package_names_its_extra(self):
        with program(csv="a\n1\n"):
            found = goodput.Sweep({}, Path("x"))
            for extra, package in (
                ("arrow", "pyarrow.csv"),
                ("pandas", "pandas"),
                ("polars", "polars"),
            ):
                with mock.patch.dict(sys.modules, {package: None}):
                    with self.assertRaises(ImportError) as raised:
                        found.points(extra)
                self.assertIn(f"pip install 'goodput-bench[{extra}]'", str(raised.exception))
            with self.assertRaisesRegex(ValueError, "'xlsx'"):
                found.points("xlsx")


class Progress(unittest.TestCase):
    SAID = "5.0 s · 10 ok\n\nwarning: w\nerror: no\nhint: h\n"

    def test_lines_go_to_stderr_up_to_the_error(self):
        with contextlib.redirect_stderr(io.StringIO()) as shown, program(2, self.SAID):
            with self.assertRaises(goodput.UsageError):
                goodput.run("mock")
        self.assertEqual(shown.getvalue(), "5.0 s · 10 ok\n\nwarning: w\n")

    def test_quiet_shows_nothing(self):
        with contextlib.redirect_stderr(io.StringIO()) as shown, program(2, self.SAID):
            with self.assertRaises(goodput.UsageError):
                goodput.run("mock", quiet=True)
        self.assertEqual(shown.getvalue(), "")

    def test_a_notebook_has_one_output_that_is_updated(self):
        handle = mock.Mock()
        display = mock.Mock(return_value=handle)
        shell = types.SimpleNamespace(kernel=object())
        ipython = types.SimpleNamespace(
            get_ipython=lambda: shell, display=types.SimpleNamespace(display=display)
        )
        with mock.patch.dict(sys.modules, {"IPython": ipython}), program(2, self.SAID):
            with self.assertRaises(goodput.UsageError):
                goodput.run("mock")
        display.assert_called_once_with({"text/plain": "5.0 s · 10 ok"}, raw=True, display_id=True)
        handle.update.assert_called_once_with({"text/plain": "5.0 s · 10 ok\nwarning: w"}, raw=True)

    def test_a_terminal_of_ipython_is_a_terminal(self):
        ipython = types.SimpleNamespace(get_ipython=lambda: types.SimpleNamespace())
        with mock.patch.dict(sys.modules, {"IPython": ipython}):
            self.assertNotIsInstance(_progress.printer(), types.MethodType)


if __name__ == "__main__":
    unittest.main()
