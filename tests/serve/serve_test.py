#!/usr/bin/env python3
"""serve_test.py BIN PLAN: the server of examples/serve over the plan of the digits, as its clients see it: the protocol, what is
refused, batches, a new plan and the end under load without a lost answer. BIN holds serve and serve_load."""
import array
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

BIN, PLAN = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
IMAGE = [((i * 37) % 17) / 16 for i in range(64)]


class Server:
    def __init__(self, *options, plan=PLAN):
        self.process = subprocess.Popen([BIN / "serve", plan, "--device", "cpu", "--port", "0", "--name", "digits", *options],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        found = re.fullmatch(r"serve: digits on http://127\.0\.0\.1:(\d+)\n", line)
        if not found:
            self.process.kill()
            raise AssertionError(f"wanted the line of a server that is ready, found {line!r} {self.process.communicate()[1]!r}")
        self.port = int(found.group(1))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()
        self.process.communicate(timeout=60)

    def ask(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        data = response.read()
        connection.close()
        return response, data

    def infer(self, document, **options):
        response, data = self.ask("POST", "/v2/models/digits/infer", json.dumps(document), **options)
        return response.status, json.loads(data)

    def load(self, *options):
        return subprocess.Popen([BIN / "serve_load", f"127.0.0.1:{self.port}", "digits", *options], stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True)

    def metric(self, name):
        text = self.ask("GET", "/metrics")[1].decode()
        return float(re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE).group(1))


def request(rows=1, **more):
    return {"inputs": [{"name": "image", "datatype": "FP32", "shape": [rows, 1, 8, 8], "data": IMAGE * rows}], **more}


def counts(text):
    return {name: float(value) for name, value in re.findall(r"(\w+)=([0-9.]+)", text)}


class Protocol(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--max-batch", "8")

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    def test_an_answer_has_name_type_shape_and_values(self):
        status, answer = self.server.infer(request(2, id="seven"))
        self.assertEqual(status, 200, answer)
        self.assertEqual((answer["model_name"], answer["id"]), ("digits", "seven"))
        (output,) = answer["outputs"]
        self.assertEqual((output["name"], output["datatype"], output["shape"]), ("logits", "FP32", [2, 10]))
        self.assertEqual(len(output["data"]), 20)
        for a, b in zip(output["data"][:10], output["data"][10:]):
            self.assertAlmostEqual(a, b, places=3)

    def test_nested_lists_are_read_in_the_order_of_their_elements(self):
        nested = request()
        nested["inputs"][0]["data"] = [[[IMAGE[8 * y:8 * y + 8] for y in range(8)]]]
        self.assertEqual(self.server.infer(nested), self.server.infer(request()))

    def test_tensors_go_as_bytes_both_ways(self):
        head = json.dumps({"inputs": [{"name": "image", "datatype": "FP32", "shape": [1, 1, 8, 8],
                                       "parameters": {"binary_data_size": 256}}],
                           "parameters": {"binary_data_output": True}}).encode()
        response, data = self.server.ask("POST", "/v2/models/digits/infer", head + array.array("f", IMAGE).tobytes(),
                                         {"Inference-Header-Content-Length": str(len(head))})
        self.assertEqual(response.status, 200, data)
        size = int(response.getheader("Inference-Header-Content-Length"))
        self.assertEqual(json.loads(data[:size])["outputs"][0]["parameters"], {"binary_data_size": 40})
        values = array.array("f", data[size:])
        wanted = self.server.infer(request())[1]["outputs"][0]["data"]
        self.assertEqual(len(values), 10)
        for a, b in zip(values, wanted):
            self.assertAlmostEqual(a, b, places=4)

    def test_the_model_and_the_server_describe_themselves(self):
        for path in ("/v2/health/live", "/v2/health/ready", "/v2/models/digits/ready"):
            self.assertEqual(self.server.ask("GET", path)[0].status, 200, path)
        model = json.loads(self.server.ask("GET", "/v2/models/digits")[1])
        self.assertEqual(model["inputs"], [{"name": "image", "datatype": "FP32", "shape": [-1, 1, 8, 8]}])
        self.assertEqual(model["outputs"], [{"name": "logits", "datatype": "FP32", "shape": [-1, 10]}])
        self.assertIn("binary_tensor_data", json.loads(self.server.ask("GET", "/v2")[1])["extensions"])

    def test_what_does_not_fit_is_refused_with_its_reason(self):
        def refused(document, code, text):
            status, answer = self.server.infer(document)
            self.assertEqual(status, code, answer)
            self.assertIn(text, answer["error"])

        def changed(**members):
            document = request()
            document["inputs"][0].update(members)
            return document

        refused({}, 400, "the request is not of the inference protocol")
        refused({"inputs": []}, 400, "the model has 1 inputs, found 0")
        refused(changed(name="picture"), 400, "input 'image' is missing")
        refused(changed(datatype="INT32", data=[0] * 64), 400, "input 'image': wanted FP32, found INT32")
        refused(changed(datatype="BYTES"), 400, "wanted a datatype of numbers, found 'BYTES'")
        refused(changed(shape=[1, 64]), 400, "wanted shape [N, 1, 8, 8]")
        refused(changed(data=IMAGE[1:]), 400, "its shape takes 256 bytes, found 252")
        refused(changed(data=["x"] * 64), 400, "wanted numbers, found string")
        refused(changed(shape=[1, 1, 4, 16]), 400, "image")
        refused(changed(shape=[2**62, 2, 8, 8]), 400, "its shape is out of range")
        refused(changed(shape=[-1, 1, 8, 8]), 400, "its shape is out of range")
        refused(changed(shape=[0, 1, 8, 8], data=[]), 400, "the request has no rows")
        refused(request(outputs=[{"name": "none"}]), 400, "the model has no output 'none'")
        deep = json.dumps(request()).replace(json.dumps(IMAGE), "[" * 200000 + "]" * 200000).encode()
        response, data = self.server.ask("POST", "/v2/models/digits/infer", deep)
        self.assertEqual(response.status, 400)
        self.assertIn("nested too deep", json.loads(data)["error"])
        for body in (b"", b"{", b"\xff\xfe", b"[" * 1000):
            self.assertEqual(self.server.ask("POST", "/v2/models/digits/infer", body)[0].status, 400, body[:9])
        self.assertEqual(self.server.ask("POST", "/v2/models/other/infer", b"{}")[0].status, 404)
        self.assertEqual(self.server.ask("GET", "/nothing")[0].status, 404)
        head = {"Inference-Header-Content-Length": "99999"}
        self.assertEqual(self.server.ask("POST", "/v2/models/digits/infer", b"{}", head)[0].status, 400)
        self.assertEqual(self.server.infer(request())[0], 200)

    def test_what_is_counted_is_what_was_asked(self):
        before = self.server.metric('serve_request_seconds_count')
        for _ in range(3):
            self.server.infer(request(4))
        self.assertEqual(self.server.metric('serve_request_seconds_count'), before + 3)
        self.assertEqual(self.server.metric("serve_queue_length"), 0)

    def test_a_client_that_goes_away_harms_nobody(self):
        for _ in range(20):
            connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
            connection.request("POST", "/v2/models/digits/infer", json.dumps(request()))
            connection.close()
        self.assertEqual(self.server.infer(request())[0], 200)


class Load(unittest.TestCase):
    def test_requests_of_many_connections_run_together(self):
        with Server("--max-batch", "16", "--max-wait-us", "2000") as server:
            load = server.load("--connections", "16", "--seconds", "2")
            text = load.communicate(timeout=120)[0]
            self.assertEqual(load.returncode, 0, text)
            found = counts(text)
            self.assertEqual((found["wrong"], found["lost"], found["refused"]), (0, 0, 0), text)
            runs, requests = server.metric("serve_batch_rows_count"), server.metric("serve_batched_requests_total")
            self.assertGreater(requests / runs, 2, text)
            self.assertEqual(server.metric('serve_batch_rows_bucket{le="16"}'), runs)

    def test_a_new_plan_and_the_end_lose_no_answer(self):
        with tempfile.TemporaryDirectory() as folder:
            plan = pathlib.Path(folder) / "plan.bin"
            shutil.copy(PLAN, plan)
            with Server("--max-batch", "8", plan=plan) as server:
                load = server.load("--connections", "8", "--seconds", "60", "--until-end", "1")
                for reloads in range(1, 4):
                    time.sleep(0.3)
                    fresh = pathlib.Path(folder) / "fresh.bin"
                    shutil.copy(PLAN, fresh)
                    os.replace(fresh, plan)
                    self.assertEqual(server.ask("POST", "/v2/repository/models/digits/load")[0].status, 200)
                    self.assertEqual(server.metric("serve_reloads_total"), reloads)
                server.process.send_signal(signal.SIGTERM)
                text = load.communicate(timeout=120)[0]
                self.assertEqual(load.returncode, 0, text)
                self.assertEqual((counts(text)["wrong"], counts(text)["lost"]), (0, 0), text)
                self.assertEqual(server.process.communicate(timeout=60)[0], "serve: ended\n")
                self.assertEqual(server.process.returncode, 0)

    def test_a_plan_that_does_not_load_leaves_the_old_one(self):
        with tempfile.TemporaryDirectory() as folder:
            plan = pathlib.Path(folder) / "plan.bin"
            shutil.copy(PLAN, plan)
            with Server(plan=plan) as server:
                wrong = pathlib.Path(folder) / "wrong.bin"
                wrong.write_bytes(b"no plan")
                os.replace(wrong, plan)
                response, data = server.ask("POST", "/v2/repository/models/digits/load")
                self.assertEqual(response.status, 400)
                self.assertIn("not a plan", json.loads(data)["error"])
                self.assertEqual(server.infer(request())[0], 200)

    def test_requests_that_wait_too_long_or_are_too_many_are_told_so(self):
        # A minute to wait for company: what waits is answered when a new plan takes over, however slow the machine is.
        with Server("--max-batch", "4", "--max-wait-us", "60000000", "--max-queue", "2") as server:
            statuses = []

            def ask_behind(*documents):
                threads = [threading.Thread(target=lambda d=d: statuses.append(server.infer(d)[0])) for d in documents]
                for thread in threads:
                    thread.start()
                while server.metric("serve_queue_length") < len(documents):
                    time.sleep(0.01)
                return threads

            def answer(threads):
                self.assertEqual(server.ask("POST", "/v2/repository/models/digits/load")[0].status, 200)
                for thread in threads:
                    thread.join()

            answer(ask_behind(request(parameters={"timeout": 1000})))
            self.assertEqual(statuses, [504])
            waiting = ask_behind(request(), request())
            response, data = server.ask("POST", "/v2/models/digits/infer", json.dumps(request()))
            self.assertEqual((response.status, response.getheader("Retry-After")), (503, "1"))
            self.assertIn("too many requests wait", json.loads(data)["error"])
            answer(waiting)
            self.assertEqual(statuses, [504, 200, 200])


class CommandLine(unittest.TestCase):
    def run_serve(self, *arguments):
        done = subprocess.run([BIN / "serve", *arguments], capture_output=True, text=True, timeout=60)
        return done.returncode, done.stderr

    def test_what_is_wrong_is_named(self):
        self.assertEqual(self.run_serve()[0], 2)
        self.assertIn("--port: wanted a whole number of at least 0, found 'x'", self.run_serve(PLAN, "--port", "x")[1])
        self.assertIn("unknown option '--prot'", self.run_serve(PLAN, "--prot", "1")[1])
        code, text = self.run_serve("/nonexistent/plan.bin", "--device", "cpu")
        self.assertEqual(code, 5)
        self.assertIn("/nonexistent/plan.bin: cannot open", text)
        with Server() as server:
            code, text = self.run_serve(PLAN, "--device", "cpu", "--port", str(server.port))
            self.assertEqual(code, 6)
            self.assertIn("cannot listen on 127.0.0.1", text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
