"""bench/results/table, bench/results/models/write and tools/run_documents on small trees: what they write, and what they refuse."""
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


class Models(Documents):
    def setUp(self):
        super().setUp()
        self.results = self.root / "bench/results/models"
        self.results.mkdir(parents=True)
        self.document = self.root / "docs/models.md"
        self.document.parent.mkdir()
        self.document.write_text("# Models\n\nBy hand.\n\n## What was tried\nold\n")

    def lines(self, name, rows):
        data = {"date": "2020-01-02", "versions": {"onnx": "1"}, "command": "table", "rows": rows}
        (self.results / f"{name}.json").write_text(json.dumps(data))
        self.assertEqual(run("bench/results/models/write", self.root), (0, ""))
        self.text = self.document.read_text()
        return [line for line in self.text.split("\n") if line.startswith("|")][2:]

    def test_what_is_written_by_hand_stays(self):
        self.lines("packages", [])
        self.assertTrue(self.text.startswith("# Models\n\nBy hand.\n\n## What was tried\n\nThis part is written"))
        self.assertNotIn("old", self.text)

    def test_a_file_that_differs_says_so(self):
        row = {"package": "p", "file": "a.onnx", "megabytes": 1.5, "as_is": True, "plan_over_model": 1.25, "max_rel": [0.5, 1e-6], "status": "differs"}
        right = {**row, "file": "b.onnx", "as_is": False, "options": "--dim n=1", "max_rel": [1e-7], "ms": [2.0], "ort_ms": [3.0], "status": "right"}
        self.assertEqual(
            self.lines("packages", [row, right]),
            ["| p | a.onnx | 1.5 | as it is: differs | 0.5 / 1e-06 | - | - | - | 1.2 |", "| p | b.onnx | 1.5 | --dim n=1 | 1e-07 | - | 2 | 3 | 1.2 |"],
        )
        self.assertIn("2 files of 1 packages: 1 compile as they are, 1 agree with ONNX Runtime. 2020-01-02; onnx 1; `table`.", self.text)

    def test_exports_are_a_line_a_network(self):
        base = {"network": "n", "plan_over_model": 1.0}
        rows = [
            {**base, "form": "dynamo", "max_rel": 2e-6, "status": "right"},
            {**base, "form": "int8", "max_rel": 0.02, "of_float": 0.03, "ort_of_float": 0.031, "status": "right", "plan_over_model": 2.0},
            {**base, "form": "qdq", "max_rel": 0.5, "of_float": 0.6, "ort_of_float": 0.1, "status": "differs"},
            {"network": "n", "form": "script", "status": "no export: UnsupportedOperatorError: it"},
            {"network": "m", "form": "-", "status": "not made: ImportError: it"},
        ]
        self.assertEqual(
            self.lines("exports", rows),
            ["| n | 2e-06 | no export |  | 0.02 (0.03, 0.031) | 0.5 (0.6, 0.1) differs | 1 to 2 |", "| m | not made |  |  |  |  | - |"],
        )
        self.assertIn("3 files of 1 networks: 2 agree with ONNX Runtime.", self.text)
        self.assertIn("- n, script: no export: UnsupportedOperatorError: it\n", self.text)

    def test_results_that_are_not_written_are_noticed(self):
        self.lines("packages", [])
        self.assertEqual(run("bench/results/models/write", "--check", self.root), (0, ""))
        self.document.write_text(self.text + "more\n")
        self.assertEqual(
            run("bench/results/models/write", "--check", self.root),
            (1, "docs/models.md is not what bench/results/models has: run bench/results/models/write\n"),
        )

    def test_a_document_without_the_heading_is_refused(self):
        self.document.write_text("# Models\n")
        self.assertEqual(run("bench/results/models/write", self.root), (1, "docs/models.md has no heading '## What was tried'\n"))


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
