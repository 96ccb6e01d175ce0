"""Reading a topic back with a consumer group of two members, of which one is killed half way, and the daemon too."""

import json
import subprocess
import time

GROUP = "catalogue-readers"
# How long the node waits for a member that is gone before the other one gets its partitions.
SESSION_TIMEOUT = "6s"


class Member:
    """`millrace consume --group`: prints a record a line, and commits after printing."""

    def __init__(self, binary, port, topic, output):
        self.output = output
        with open(output, "wb") as out:
            self.process = subprocess.Popen(
                [binary, "--server", f"http://127.0.0.1:{port}", "--json", "consume", topic, "--group", GROUP,
                 "--session-timeout", SESSION_TIMEOUT], stdout=out, stderr=subprocess.DEVNULL)

    def printed(self):
        """Places of the records; the last line of one that was killed may be cut short."""
        with open(self.output, "rb") as lines:
            records = [json.loads(line) for line in lines if line.endswith(b"\n")]
        return [(record["partition"], int(record["offset"])) for record in records]

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.terminate()
        self.process.wait()


def group_of(client):
    return client.must("GET", f"/v1/groups/{GROUP}")[0]


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


def read_in_a_group(binary, port, topic, places, directory, restart):
    """Reads every place with two members. `restart` kills the daemon with SIGKILL, starts it again and answers a new
    client. Answers the faults found, and how many records came twice."""
    client = restart(kill=False)
    if client.call("GET", f"/v1/groups/{GROUP}")[0] == 200:
        client.must("DELETE", f"/v1/groups/{GROUP}")
    members = [Member(binary, port, topic, directory / f"member-{i}.jsonl") for i in (1, 2)]
    try:
        wait_until(lambda: len(members[0].printed()) > len(places) // 8 and
                   len(members[0].printed()) + len(members[1].printed()) > len(places) // 2, "reading the first half")
        before = committed(group_of(client))
        members[0].kill()
        client = restart(kill=True)
        after = committed(group_of(client))
        faults = [f"the committed offset of {place} went from {offset} to {after.get(place)}"
                  for place, offset in before.items() if after.get(place, -1) < offset]
        wait_until(lambda: is_read(group_of(client)), "reading the rest")
    finally:
        for member in members:
            if member.process.poll() is None:
                member.stop()
    first, second = members[0].printed(), members[1].printed()
    missing = set(places) - set(first) - set(second)
    if missing:
        faults.append(f"{len(missing)} records reached neither member, {sorted(missing)[:3]} for instance")
    return faults, len(first) + len(second) - len(set(first) | set(second)), len(first), len(second)
