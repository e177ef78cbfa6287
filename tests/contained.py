"""Run as a script, by root: what an engine does for a container, as far as users and files go.

    python contained.py JSON         of root, shown, volumes, secrets, user, folder, env, command

A new root holds the shown folders of this machine, the secrets, all of them read-only, and the
volumes; there is no /tmp and no home. Then the command runs there, as that user, without any
privilege. Its process is this one; all mounts go with it.
"""

import ctypes
import json
import os
import sys
from pathlib import Path

NEW_MOUNTS = 0x00020000
READ_ONLY, REMOUNT, BIND, RECURSIVE, PRIVATE = 1, 32, 4096, 16384, 1 << 18
NO_NEW_PRIVILEGES = 38
DEVICES = ("null", "zero", "random", "urandom")

libc = ctypes.CDLL(None, use_errno=True)


def required(code):
    if code:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def mount(source, target, kind, flags, data=""):
    texts = (each and each.encode() for each in (source, target, kind))
    required(libc.mount(*texts, ctypes.c_ulong(flags), data.encode() or None))


def bind(source, target, *, read_only):
    """A file or folder of this machine, in the new root."""
    if os.path.isdir(source):
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    mount(source, str(target), None, BIND | RECURSIVE)
    if read_only:
        mount(None, str(target), None, REMOUNT | BIND | READ_ONLY)


def show(source, root):
    """A folder for reading; links are links again."""
    target = root / source.lstrip("/")
    if target.exists():
        return
    if os.path.islink(source):
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(os.readlink(source))
    else:
        bind(source, target, read_only=True)


def new_root(given):
    required(libc.unshare(NEW_MOUNTS))
    mount(None, "/", None, RECURSIVE | PRIVATE)
    root = Path(given["root"])
    mount("tmpfs", str(root), "tmpfs", 0, "mode=755")
    for source in given["shown"]:
        show(source, root)
    for name in DEVICES:
        bind(f"/dev/{name}", root / "dev" / name, read_only=False)
    bind("/proc", root / "proc", read_only=False)
    for target, source in given["secrets"].items():
        bind(source, root / target.lstrip("/"), read_only=True)
    for target, source in given["volumes"].items():
        bind(source, root / target.lstrip("/"), read_only=False)
    mount(None, str(root), None, REMOUNT | BIND | READ_ONLY)
    os.chroot(root)


def main():
    given = json.loads(sys.argv[1])
    new_root(given)
    os.chdir(given["folder"])
    user, group = given["user"]
    os.setgroups([])
    os.setgid(group)
    os.setuid(user)
    required(libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    os.execve(given["command"][0], given["command"], given["env"])


if __name__ == "__main__":
    main()
