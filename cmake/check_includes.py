#!/usr/bin/env python3
"""Holds every #include against the declared module graph.

usage: check_includes.py SOURCE_ROOT BUILD_DIR/modules.txt

A file of a module may include the module itself, its declared dependencies and what those pass on as PUBLIC.
A third-party header that has one home may be included there only. daemon/, cli/, tests/ and bench/ are
leaves: they may include any module, yet keep to the third-party rule (tests may reach for what they test with).
"""
import pathlib
import re
import sys

# header prefix -> folders that may include it
HOMES = {
    "rocksdb/": ["src/store", "tests/store", "tests/support", "tests/crash"],
    "sodium.h": ["src/crypto", "tests/crypto"],
    "lua": ["src/flow/lua"],
    "git2": ["src/subscription"],
    "boost/beast": ["src/http"],
    "systemd/": ["daemon"],
    "prometheus/": ["src/api"],
    "isa-l": ["src/base"],
}
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')


def read_graph(path):
    modules = {}
    for line in pathlib.Path(path).read_text().splitlines():
        name, folder, public, private = line.split("|")
        modules[name] = (folder, [d for d in public.split(",") if d], [d for d in private.split(",") if d])
    return modules


def visible(modules, name):
    seen, todo = {name}, list(modules[name][1] + modules[name][2])
    while todo:
        dep = todo.pop()
        if dep not in seen:
            seen.add(dep)
            todo += modules[dep][1]
    return seen


def main():
    root, modules = pathlib.Path(sys.argv[1]), read_graph(sys.argv[2])
    by_folder = {folder: name for name, (folder, _, _) in modules.items()}
    faults, files = [], 0
    for path in sorted(root.glob("**/*")):
        relative = path.relative_to(root).as_posix()
        if path.suffix not in (".h", ".cc") or relative.split("/")[0] not in ("src", "daemon", "cli", "tests", "bench"):
            continue
        files += 1
        folder = relative.rsplit("/", 1)[0]
        owner = None
        while owner is None and folder:
            owner = by_folder.get(folder)
            folder = folder.rpartition("/")[0]
        allowed = visible(modules, owner) if owner and relative.startswith("src/") else set(modules)
        for number, line in enumerate(path.read_text().splitlines(), 1):
            found = INCLUDE.match(line)
            if not found:
                continue
            quote, header = found.groups()
            for prefix, homes in HOMES.items():
                if header.startswith(prefix) and quote == "<" and not any(relative.startswith(h + "/") for h in homes):
                    faults.append(f"{relative}:{number}: <{header}> may be included only in {', '.join(homes)}")
            if quote == '"' and "/" in header:
                target = header.split("/")[0]
                if target in modules and target not in allowed:
                    faults.append(f"{relative}:{number}: module '{owner}' includes \"{header}\" "
                                  f"but does not declare '{target}'")
    print("\n".join(faults) if faults else f"{files} files, {len(modules)} modules: every include is declared")
    return 1 if faults else 0


sys.exit(main())
