"""Reading a topic back with a consumer group of two members, of which one is killed half way, and the daemon too."""

import http.client
import signal
import subprocess
import sys
import time

# How long the node waits for a member that is gone before the other one gets its partitions.
SESSION_TIMEOUT = "6s"


PAGE = 10     # records in one answer
WORK = 0.002  # seconds that a member takes for a record


def be_member(port, group, topic):
    """One member, a process of its own: prints the place of each record, then commits the page. Outlives the daemon."""
    import quickstart  # The client; at the top it would be a circle.
    target, member, client = f"/v1/groups/{group}/members", None, None
    stopping = []
    signal.signal(signal.SIGTERM, lambda *_: stopping.append(True))
    while True:
        try:
            client = client or quickstart.Client(port)
            if stopping:
                return client.call("DELETE", f"{target}/{member}")
            if member is None:
                member = client.must("POST", target, {"topics": [topic], "sessionTimeout": SESSION_TIMEOUT,
                                                      "autoOffsetReset": "earliest"})[0]["memberId"]
            status, page, _ = client.call("GET", f"{target}/{member}/records?wait=500ms&limit={PAGE}")
            if status == 404:
                member = None  # It was away too long.
                continue
            for record in page.get("records", []):
                print(record["partition"], record["offset"], flush=True)
                time.sleep(WORK)
            if page.get("next"):
                client.call("POST", f"{target}/{member}/offsets",
                            {"generation": page["generation"], "offsets": page["next"]})
        except (OSError, http.client.HTTPException):
            client = None
            time.sleep(0.05)


class Member:
    def __init__(self, port, group, topic, output):
        self.output = output
        with open(output, "wb") as out:
            self.process = subprocess.Popen([sys.executable, __file__, str(port), group, topic], stdout=out)

    def printed(self):
        """Places of the records; the last line of one that was killed may be cut short."""
        with open(self.output, "r", encoding="ascii") as lines:
            return [tuple(int(part) for part in line.split()) for line in lines if line.endswith("\n")]

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.terminate()
        self.process.wait()


def committed(group):
    return {(p["topic"], p["partition"]): int(p["offset"]) for p in group["partitions"] if "offset" in p}


def is_read(group):
    """Everything is committed. A partition that nobody has committed yet and that has records is not."""
    return bool(group["partitions"]) and all(p.get("offset", "0") == p["logEndOffset"] for p in group["partitions"])


def wait_until(condition, what):
    """The pace of a person who looks; the daemon itself polls for nothing."""
    for _ in range(1200):
        if condition():
            return
        time.sleep(0.05)
    raise SystemExit(f"quickstart: {what} did not happen within a minute")


def read_in_a_group(port, group, topic, places, directory, restart):
    """Reads every place with two members. `restart` kills the daemon with SIGKILL, starts it again and answers a new
    client. Answers the faults found, and how many records came twice."""
    client = restart(kill=False)

    def group_now():
        return client.must("GET", f"/v1/groups/{group}")[0]

    members = [Member(port, group, topic, directory / f"member-{i}") for i in (1, 2)]
    try:
        wait_until(lambda: len(members[0].printed()) > len(places) // 8 and
                   len(members[0].printed()) + len(members[1].printed()) > len(places) // 2, "reading the first half")
        before = committed(group_now())
        members[0].kill()
        client = restart(kill=True)
        after = committed(group_now())
        faults = [f"the committed offset of {place} went from {offset} to {after.get(place)}"
                  for place, offset in before.items() if after.get(place, -1) < offset]
        wait_until(lambda: is_read(group_now()), "reading the rest")
    finally:
        for member in members:
            if member.process.poll() is None:
                member.stop()
    first, second = members[0].printed(), members[1].printed()
    missing = set(places) - set(first) - set(second)
    if missing:
        faults.append(f"{len(missing)} records reached neither member, {sorted(missing)[:3]} for instance")
    return faults, len(first) + len(second) - len(set(first) | set(second)), len(first), len(second)


if __name__ == "__main__":
    be_member(int(sys.argv[1]), sys.argv[2], sys.argv[3])
