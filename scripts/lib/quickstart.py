"""The main job of scripts/quickstart, written against the HTTP API with nothing but Python's standard library, so that
what is compared at the end does not rest on the daemon's own client."""

import argparse
import http.client
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

import readers

TOPIC = "package-catalogue"
PARTITIONS = 8
BATCH = 20  # records in one request, which is one atomic commit
FIELDS = ["Package", "Version", "Architecture", "Installed-Size", "Section", "Maintainer"]


def catalogue():
    """This machine's packages, as dpkg-query lists them."""
    form = "\\t".join("${%s}" % field for field in FIELDS) + "\\n"
    text = subprocess.run(["dpkg-query", "-W", "-f", form], check=True, capture_output=True, text=True).stdout
    return [dict(zip(FIELDS, line.split("\t"))) for line in text.splitlines()]


class Daemon:
    def __init__(self, binary, data, port):
        self.binary, self.data, self.port = binary, data, port
        # Beside the directory: the daemon takes no directory that holds somebody else's files.
        self.log = data.with_name(data.name + "-quickstart.log")
        self.pid_file = data.with_name(data.name + "-quickstart.pid")
        self.process = None

    def stop_earlier(self):
        """An earlier quickstart may have left one running on this directory."""
        try:
            pid = int(self.pid_file.read_text())
            if pathlib.Path(f"/proc/{pid}/exe").resolve().name.split(" ")[0] != "millraced":
                return
            os.kill(pid, signal.SIGTERM)
            while pathlib.Path(f"/proc/{pid}").exists():
                time.sleep(0.05)
            print(f"   stopped the daemon that an earlier run left (process {pid})")
        except (OSError, ValueError):
            pass

    def start(self):
        began = time.monotonic()
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [self.binary, "--data", self.data, "--set", f"http.listen=127.0.0.1:{self.port}"],
                stdout=log, stderr=log, start_new_session=True)
        self.pid_file.write_text(str(self.process.pid))
        while True:
            if self.process.poll() is not None:
                tail = self.log.read_text(errors="replace").splitlines()[-5:]
                sys.exit("quickstart: the daemon did not start:\n  " + "\n  ".join(tail))
            try:
                if Client(self.port).call("GET", "/v1/node/ready")[0] == 200:
                    return time.monotonic() - began
            except OSError:
                pass
            time.sleep(0.01)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.pid_file.unlink()


class Client:
    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def call(self, method, path, body=None, key=None):
        headers = {"Content-Type": "application/json"} if body is not None else {}
        if key:
            headers["Idempotency-Key"] = key
        self.connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        response = self.connection.getresponse()
        text = response.read()
        replayed = response.getheader("Idempotent-Replayed") == "true"
        return response.status, json.loads(text) if text else None, replayed

    def must(self, method, path, body=None, key=None):
        status, answer, replayed = self.call(method, path, body, key)
        if status >= 300:
            sys.exit(f"quickstart: {method} {path} answered {status}: {answer}")
        return answer, replayed


def make_batches(packages):
    records = [{"key": package["Package"], "value": dict(package, sequence=i)} for i, package in enumerate(packages)]
    return [records[i:i + BATCH] for i in range(0, len(records), BATCH)]


def produce(client, batches, run, first, acknowledged, on_batch):
    """Sends batches in order. Ends at the first one whose fate is unknown, and answers its number."""
    for number in range(first, len(batches)):
        try:
            answer, replayed = client.must("POST", f"/v1/topics/{TOPIC}/records", {"records": batches[number]},
                                           f"{run}-{number}")
        except (OSError, http.client.HTTPException):
            return number
        acknowledged[number] = (answer["offsets"], replayed)
        on_batch(number)
    return len(batches)


def read_back(client):
    """Every record, by partition and offset, a page at a time."""
    records = []
    for partition in range(PARTITIONS):
        offset = 0
        while True:
            page, _ = client.must("GET", f"/v1/topics/{TOPIC}/partitions/{partition}/records?offset={offset}&limit=1000")
            records += page["records"]
            offset = int(page["nextOffset"])
            if offset == int(page["highWatermark"]):
                break
    return records


def compare(records, batches, acknowledged):
    """What was read against an independent listing, and against what was acknowledged. Answers the faults found."""
    faults = []
    by_place = {(r["partition"], r["offset"]): r for r in records}
    values = [r["value"]["data"] for r in records]
    listed = sorted(json.dumps(p, sort_keys=True) for p in catalogue())
    read = sorted(json.dumps({k: v[k] for k in FIELDS}, sort_keys=True) for v in values)
    if listed != read:
        faults.append(f"{len(read)} records do not equal the {len(listed)} packages that dpkg-query lists now")
    sequences = [v["sequence"] for v in values]
    if len(set(sequences)) != len(sequences):
        faults.append("a record is there twice")
    for number, (offsets, _) in acknowledged.items():
        for sent, place in zip(batches[number], offsets):
            found = by_place.get((place["partition"], place["offset"]))
            if found is None or found["value"]["data"] != sent["value"]:
                faults.append(f"{sent['key']} was acknowledged at {place} and is not there")
    last = {}
    for record in sorted(records, key=lambda r: (r["partition"], int(r["offset"]))):
        key, sequence = record["key"]["data"], record["value"]["data"]["sequence"]
        if last.get(key, -1) >= sequence:
            faults.append(f"the order of key {key} is not kept")
        last[key] = sequence
    return faults


def main():
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    parser = argparse.ArgumentParser(prog="scripts/quickstart")
    parser.add_argument("--bin", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--once", action="store_true", help="stop the daemon at the end")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path(state) / "millrace")
    arguments = parser.parse_args()

    arguments.data.resolve().parent.mkdir(parents=True, exist_ok=True)
    daemon = Daemon(arguments.bin.resolve() / "millraced", arguments.data.resolve(), arguments.port)
    print("== the daemon")
    daemon.stop_earlier()
    print(f"   ready in {daemon.start() * 1000:.0f} ms on http://127.0.0.1:{arguments.port}, data in {daemon.data}")

    client = Client(arguments.port)
    if client.call("GET", f"/v1/topics/{TOPIC}")[0] == 200:
        client.must("DELETE", f"/v1/topics/{TOPIC}")
    client.must("POST", "/v1/topics", {"name": TOPIC, "partitions": PARTITIONS})
    packages = catalogue()
    batches = make_batches(packages)
    run = f"quickstart-{os.getpid()}-{int(time.time())}"
    print(f"== {len(packages)} packages of this machine go into topic {TOPIC}, {PARTITIONS} partitions, "
          f"{len(batches)} requests of up to {BATCH} records, each with an Idempotency-Key")

    acknowledged = {}
    kill_after = len(batches) // 2
    killer = threading.Timer(random.uniform(0, 0.003), daemon.kill)
    began = time.monotonic()
    stopped_at = produce(client, batches, run, 0, acknowledged,
                         lambda number: killer.start() if number == kill_after else None)
    first_part = time.monotonic() - began
    killer.join()
    before = len(acknowledged)
    print(f"   SIGKILL in the middle: {before} requests ({sum(len(batches[i]) for i in acknowledged)} records) were "
          f"acknowledged in {first_part:.2f} s; the fate of request {stopped_at} is unknown")

    print(f"   started again, ready in {daemon.start() * 1000:.0f} ms")
    client = Client(arguments.port)
    # From one before the unknown one: that was acknowledged, so its key must answer what it answered then.
    resume = max(0, min(stopped_at, len(batches)) - 1)
    answered_then = acknowledged.get(resume)
    began = time.monotonic()
    end = produce(client, batches, run, resume, acknowledged, lambda number: None)
    second_part = time.monotonic() - began
    if end != len(batches):
        sys.exit("quickstart: the daemon went away again; see " + str(daemon.log))
    replayed = sum(1 for _, again in acknowledged.values() if again)
    faults = []
    if answered_then and acknowledged[resume][0] != answered_then[0]:
        faults.append("a repeated request was answered with other offsets")
    print(f"   went on with the same keys: {len(batches) - resume} requests in {second_part:.2f} s, "
          f"{replayed} of them known already and not done again")

    print("== reading everything back")
    began = time.monotonic()
    records = read_back(client)
    print(f"   {len(records)} records in {time.monotonic() - began:.2f} s")
    faults += compare(records, batches, acknowledged)
    if faults:
        sys.exit("quickstart: FAILED\n  " + "\n  ".join(faults[:20]))
    print(f"   every package exactly once, every acknowledged offset holds what was sent, order kept per key")
    print(f"   {len(packages) / (first_part + second_part):.0f} records/s acknowledged on disk, one request at a time")

    print("== the same with a consumer group of two members; one is killed half way, and so is the daemon")

    def restart(kill):
        if kill:
            daemon.kill()
            daemon.start()
        return Client(arguments.port)

    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="millrace-quickstart-") as directory:
        faults, twice, first, second = readers.read_in_a_group(
            arguments.port, run, TOPIC, [(r["partition"], int(r["offset"])) for r in records],
            pathlib.Path(directory), restart)
    if faults:
        sys.exit("quickstart: FAILED\n  " + "\n  ".join(faults))
    print(f"   {first} records by the member that was killed, {second} by the other, in {time.monotonic() - began:.1f} s: "
          f"every record,\n   {twice} of them twice (printed and not committed yet); committed offsets survived")

    if arguments.once:
        daemon.stop()
        print("== done; the daemon is stopped. Its data stays in " + str(daemon.data))
        return
    url = f"http://127.0.0.1:{arguments.port}"
    print(f"""== done; the daemon goes on (process {daemon.process.pid}). Where to look:
   curl {url}/v1/node
   curl '{url}/v1/topics/{TOPIC}/partitions/0/records?limit=2'
   curl -N '{url}/v1/topics/{TOPIC}/stream?from=earliest'
   {arguments.bin}/millrace topics show {TOPIC}
   {arguments.bin}/millrace groups show {run}
   curl {url}/metrics          log: {daemon.log}
   stop it: kill {daemon.process.pid}""")


if __name__ == "__main__":
    main()
