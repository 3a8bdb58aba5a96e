"""The program in this wheel, on the mock: TTFT 50 ms and ITL 10 ms by construction."""

import html
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import goodput

REQUESTS, TOKENS = 60, 6
# A busy machine is not what is tested here: bounds are those of the mock, counts are exact.
PLAN = {"rate": 60, "num_requests": REQUESTS, "output_tokens": TOKENS, "quiet": True}


class Runs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = Path(scratch.name)
        cls.run_ = goodput.run("mock", slo="p99 ttft < 1ms", out=cls.folder / "run", **PLAN)
        cls.summary = json.loads((cls.folder / "run/summary.json").read_text())

    def test_figures_are_those_of_the_summary(self):
        run, ttft = self.run_, self.summary["metrics"]["ttft"]
        self.assertEqual(run.summary, self.summary)
        self.assertEqual((run.ttft.n, run.ttft.unit), (ttft["n"], "ms"))
        self.assertGreaterEqual(run.ttft.p50.value, 50)
        self.assertGreaterEqual(run.tpot.p50.value, 9)
        self.assertEqual(run.ttft.p99.value, ttft["percentiles"]["99"]["value"])
        self.assertEqual(run.ttft.percentile(99.9).quality, "not_estimable")
        self.assertEqual(run.requests_per_s, self.summary["throughput"]["requests_per_s"])
        self.assertEqual(
            (run.folder, run.plan), (self.folder / "run", self.folder / "run/plan.toml")
        )
        with self.assertRaisesRegex(LookupError, "no p12"):
            run.ttft.percentile(12)

    def test_a_missed_slo_is_a_property(self):
        slo = self.run_.slo
        self.assertIs(self.run_.slo_met, False)
        self.assertEqual(
            (slo.state, slo.terms[0].limit, slo.attainment.value), ("missed", 1.0, 0.0)
        )
        self.assertIn("SLO missed: p99 ttft < 1ms", repr(self.run_))

    def test_requests_are_frames(self):
        mean = self.summary["metrics"]["ttft"]["mean"]
        arrow = self.run_.requests()
        self.assertEqual(arrow.num_rows, REQUESTS)
        self.assertEqual(set(arrow["output_tokens"].to_pylist()), {TOKENS})
        pandas, polars = self.run_.requests("pandas"), self.run_.requests("polars")
        self.assertAlmostEqual(pandas[pandas.phase == "measured"].ttft_ms.mean(), mean, places=6)
        self.assertAlmostEqual(polars["ttft_ms"].mean(), mean, places=6)
        self.assertEqual(self.run_.chunks().num_rows, REQUESTS * TOKENS)

    def test_a_saved_run_is_the_same(self):
        for path in (self.run_, self.folder / "run", str(self.folder / "run/summary.json")):
            found = goodput.open(path)
            self.assertIsInstance(found, goodput.Run)
            self.assertEqual((found.folder, found.ttft), (self.run_.folder, self.run_.ttft))

    def test_the_page_is_in_a_sandbox(self):
        page = self.run_.report_html()
        self.assertTrue(page.startswith("<!doctype html>"), page[:80])
        frame = re.fullmatch(r'<iframe (.*) srcdoc="([^"]*)"></iframe>', self.run_._repr_html_())
        self.assertIn('sandbox="allow-scripts"', frame[1])
        self.assertEqual(html.unescape(frame[2]), page)
        self.assertIsNone(goodput.Run({}, self.folder / "gone")._repr_html_())

    def test_saved_runs_are_compared(self):
        other = goodput.run(plan=self.run_.plan, out=self.folder / "other", quiet=True)
        found = goodput.compare(self.run_, other, quiet=True)
        self.assertEqual(found.sides, ("run", "other"))
        self.assertIn("not_interleaved", [caveat.code for caveat in found.caveats])
        self.assertIsNone(found._repr_html_())
        with self.assertRaisesRegex(goodput.UsageError, "lies in no folder"):
            found.report_text()

    def test_repeats(self):
        found = goodput.run(
            "mock", repeat=2, out=self.folder / "repeats", **{**PLAN, "num_requests": 20}
        )
        self.assertIsInstance(found, goodput.Repeats)
        self.assertEqual(found.headlines["ttft_p50"].n, found.summary["used"])
        self.assertIsInstance(goodput.open(found), goodput.Repeats)

    def test_bad_input(self):
        with self.assertRaisesRegex(goodput.UsageError, "'--bogus'"):
            goodput.run("mock", bogus=1, quiet=True)
        with self.assertRaisesRegex(goodput.TargetError, "cannot reach http://127.0.0.1:1"):
            goodput.run("http://127.0.0.1:1", rate=5, quiet=True)
        with self.assertRaisesRegex(goodput.UsageError, "does not exist"):
            goodput.open(self.folder / "gone")

    def test_a_missed_slo_is_raised_on_request(self):
        with self.assertRaises(goodput.GoodputError) as raised:
            goodput.run("mock", slo="p99 ttft < 1ms", out=self.folder / "m", check=True, **PLAN)
        result = raised.exception.result
        self.assertEqual(result.folder, self.folder / "m")
        # A busy machine makes the result void, which counts more.
        kind = goodput.VoidResult if result.is_void else goodput.SloMissed
        self.assertIs(type(raised.exception), kind)

    def test_a_target_that_fails_every_request(self):
        with self.assertRaises(goodput.TargetError) as raised:
            goodput.run(
                "mock:fault=500",
                rate=40,
                num_requests=20,
                no_probe=True,
                out=self.folder / "f",
                quiet=True,
            )
        self.assertEqual(raised.exception.result.summary["requests"]["failed"], 20)

    def test_the_module_is_the_command(self):
        said = subprocess.run([sys.executable, "-m", "goodput", "--version"], capture_output=True)
        self.assertIn(f"goodput {goodput.__version__} (", said.stdout.decode())


SCRIPT = """
import sys, goodput
try:
    goodput.run("mock", rate=20, duration="60s", output_tokens=100, out=sys.argv[1])
except KeyboardInterrupt as stopped:
    print(stopped.result.summary["run"]["state"], isinstance(stopped, Exception))
"""


class Stops(unittest.TestCase):
    """A minute of load that ends early; without that these tests would take the minute."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.out = Path(scratch.name) / "run"
        self.script = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, self.out],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.addCleanup(self.script.kill)
        self.wait(lambda: (self.out / "requests.log").exists())

    def wait(self, condition):
        until = time.monotonic() + 30
        while not condition():
            self.assertLess(time.monotonic(), until, "not within 30 s")
            time.sleep(0.05)

    def test_ctrl_c_reaches_the_program_once(self):
        time.sleep(1)  # requests are in flight, for whose answers the program waits
        # A terminal sends it to the whole group, in which the script is late here.
        self.script.send_signal(signal.SIGSTOP)
        os.killpg(self.script.pid, signal.SIGINT)
        time.sleep(0.3)
        self.script.send_signal(signal.SIGCONT)
        out, err = self.script.communicate(timeout=30)
        self.assertEqual(out, "interrupted False\n", err)
        self.assertIn("stopping: waiting for answers", err)
        self.assertNotIn("stopping at once", err)

    def test_a_killed_script_leaves_no_load(self):
        self.script.kill()
        self.script.communicate()
        # The last file that a run leaves.
        self.wait(lambda: (self.out / "report.html").exists())
        manifest = json.loads((self.out / "manifest.json").read_text())
        self.assertEqual(manifest["state"], "interrupted")


if __name__ == "__main__":
    unittest.main()
