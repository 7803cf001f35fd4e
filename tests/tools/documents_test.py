"""bench/results/table and tools/run_documents on small trees: what they write, and what they refuse."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent


def run(script, *arguments):
    done = subprocess.run([sys.executable, SOURCE / script, *map(str, arguments)], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


class Documents(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)


class Table(Documents):
    def results(self, rows, kind="ratio", columns=({"title": "1, `fp32`", "batch": 1}, {"title": "ms / peer", "times": {"batch": 1}})):
        table = {"table": "inference", "title": "Inference", "kind": kind, "recorded": "abc1234", "text": "Idle.", "columns": columns, "rows": rows}
        results = self.root / "bench/results"
        results.mkdir(parents=True, exist_ok=True)
        (results / "a.json").write_text(json.dumps({"schema": 1, "machine": {"name": "A machine", "order": 1}, "tables": [table]}))
        (results / "choices.json").write_text(json.dumps({"choices": []}))

    def lines(self):
        self.assertEqual(run("bench/results/table", self.root), (0, ""))
        return [line for line in (self.root / "docs/performance.md").read_text().split("\n") if line.startswith("|")][2:]

    def test_a_ratio_has_its_range_and_times(self):
        self.results([{"network": "n", "batch": 1, "ms": 2.5, "peer_ms": 5, "ratio": 2, "low": 1.9, "high": 2.1}])
        self.assertEqual(self.lines(), ["| n | 2.00 (1.90 to 2.10) | 2.5 / 5 |"])

    def test_a_loss_is_written_like_a_gain(self):
        self.results([{"network": "n", "batch": 1, "ratio": 0.8}])
        self.assertEqual(self.lines(), ["| n | 0.80 | |"])

    def test_a_row_that_no_column_takes_leaves_its_cell_empty(self):
        self.results([{"network": "n", "batch": 8, "ratio": 2}])
        self.assertEqual(self.lines(), ["| n | | |"])

    def test_plain_rows_have_what_they_have(self):
        columns = [{"title": "kernel", "field": "kernel"}, {"title": "ratio", "ratio": True}, {"title": "s", "span": "seconds"}]
        self.results([{"kernel": "k", "low": 0.5, "high": 0.7, "seconds": [1, 2]}, {"kernel": "l", "ratio": 1}], "plain", columns)
        self.assertEqual(self.lines(), ["| k | 0.50 to 0.70 | 1 to 2 |", "| l | 1.00 | |"])

    def test_results_that_are_not_written_are_noticed(self):
        self.results([{"network": "n", "batch": 1, "ratio": 2}])
        self.lines()
        self.assertEqual(run("bench/results/table", "--check", self.root), (0, ""))
        self.results([{"network": "n", "batch": 1, "ratio": 1}])
        self.assertEqual(
            run("bench/results/table", "--check", self.root), (1, "docs/performance.md is not what bench/results has: run bench/results/table\n")
        )

    def test_an_unknown_option_is_refused(self):
        self.assertEqual(run("bench/results/table", "--chek")[0], 1)


class RunDocuments(Documents):
    def write(self, command, block=""):
        self.file = self.root / "a.md"
        self.file.write_text(f"# A\n\n<!-- run: {command} -->\n```\n{block}```\nend\n")

    def test_a_block_becomes_what_its_command_prints(self):
        self.write("printf 'a\\nb\\n' | sed -n 2p", "old\n")
        self.assertEqual(run("tools/run_documents", self.file), (0, ""))
        self.assertEqual(
            self.file.read_text(), "# A\n\n<!-- run: printf 'a\\nb\\n' | sed -n 2p -->\n```\n$ printf 'a\\nb\\n'\nb\n```\nend\n"
        )
        self.assertEqual(run("tools/run_documents", "--check", self.file), (0, ""))

    def test_a_block_that_is_not_what_its_command_prints_is_noticed(self):
        self.write("echo a", "$ echo a\nb\n")
        status, text = run("tools/run_documents", "--check", self.file)
        self.assertEqual((status, text), (1, "run_documents: a.md is not what its commands print: run tools/run_documents and read the difference\n"))
        self.assertIn("\nb\n", self.file.read_text())

    def test_a_command_that_fails_or_prints_nothing_is_an_error(self):
        self.write("echo bad >&2; exit 3")
        self.assertEqual(run("tools/run_documents", self.file), (1, "run_documents: error: 'echo bad >&2; exit 3' ended with 3: bad\n"))
        self.write("echo a | sed -n 2p")
        self.assertEqual(run("tools/run_documents", self.file), (1, "run_documents: error: 'echo a | sed -n 2p' printed nothing\n"))


if __name__ == "__main__":
    unittest.main()
