"""Files over ssh: what a path may do inside, and that none leads out."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import struct
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from hudsim.coding.limits import Limits
from hudsim.coding.sftp import Packets, open_files
from hudsim.errors import SandboxError
from tests.asyncrun import on_loop
from tests.coding.shells import Shell, shell

_SECRET = b"the host's own"


async def _sftp(host: Shell) -> tuple[Any, Any]:
    client = await host.client()
    return client, await client._connection.start_sftp_client(path_encoding=None)


@on_loop
async def test_openssh_moves_a_megabyte_both_ways(tmp_path: Path) -> None:
    data = os.urandom(1 << 20)
    (tmp_path / "up").write_bytes(data)
    async with shell(tmp_path) as host:
        lines = f"put {tmp_path}/up there\nget there {tmp_path}/down\n"
        code, _, err = await host.openssh(program="sftp", stdin=lines.encode(), options="-b -")
        assert code == 0, err
        assert (host.root / "there").read_bytes() == data
    assert (tmp_path / "down").read_bytes() == data


@on_loop
async def test_openssh_does_all_that_its_sftp_can(tmp_path: Path) -> None:
    (tmp_path / "up").write_bytes(b"hello")
    async with shell(tmp_path) as host:
        lines = [
            "mkdir d", f"put {tmp_path}/up d/a", "chmod 600 d/a", "rename d/a d/b", "ln -s b d/link", "ln d/b d/hard",
            "ls -la d", "df .", "cd d", "pwd", "get link " + str(tmp_path / "linked"), "rm b", f"put {tmp_path}/up b",
            "rm hard", "rm link", "rm b", "cd ..", "rmdir d",
        ]  # fmt: skip
        code, out, err = await host.openssh(program="sftp", stdin="\n".join(lines).encode(), options="-b -")
        assert (code, err) == (0, b"")
        assert b"-rw-------" in out
        assert b"/workspace/d" in out
        assert list(host.root.iterdir()) == []
    assert (tmp_path / "linked").read_bytes() == b"hello"


@on_loop
async def test_scp_copies_a_tree_both_ways(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "deep").mkdir(parents=True)
    (tree / "deep" / "x.sh").write_bytes(b"#!/bin/sh\n")
    (tree / "deep" / "x.sh").chmod(0o750)
    async with shell(tmp_path) as host:
        code, _, err = await host.openssh(f"{tree} {{0}}there", program="scp", options="-rp")
        assert code == 0, err
        code, _, err = await host.openssh(f"{{0}}there {tmp_path}/back", program="scp", options="-rp")
        assert code == 0, err
    assert (tmp_path / "back" / "deep" / "x.sh").read_bytes() == b"#!/bin/sh\n"
    assert (tmp_path / "back" / "deep" / "x.sh").stat().st_mode & 0o777 == 0o750


@on_loop
async def test_a_links_two_paths_come_in_either_order(tmp_path: Path) -> None:
    async with shell(tmp_path) as host:
        client, sftp = await _sftp(host)
        async with client:
            await sftp.symlink(b"target", b"standard")
            assert await sftp.readlink(b"standard") == b"target"
        await host.openssh(program="sftp", stdin=b"ln -s target openssh\n", options="-b -")
        assert (host.root / "openssh").readlink() == Path("target")


@on_loop
async def test_names_are_bytes(tmp_path: Path) -> None:
    names = [b"\xff\xfe", b"new\nline", b"sp ace", "é".encode(), b"-rf", b"a" * 255, b"\x01"]
    async with shell(tmp_path) as host:
        client, sftp = await _sftp(host)
        async with client:
            for name in names:
                async with sftp.open(name, "wb") as file:
                    await file.write(name)
            assert {name for name in await sftp.listdir(b".") if name not in (b".", b"..")} == set(names)
            for name in names:
                async with sftp.open(name, "rb") as file:
                    assert await file.read() == name
        assert {os.fsencode(path.name) for path in host.root.iterdir()} == set(names)


@on_loop
async def test_no_path_leads_out(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(_SECRET)
    secret.chmod(0o644)
    async with shell(tmp_path) as host:
        (host.root / "link").symlink_to(secret)
        (host.root / "up").symlink_to("../secret")
        (host.root / "folder").symlink_to(tmp_path)
        (host.root / "root").symlink_to("/proc/self/root")
        (host.root / "one").symlink_to("/proc/1/root")
        (host.root / "cwd").symlink_to("/proc/1/cwd")
        paths = ["link", "up", "folder/secret", f"root{secret}", f"one{secret}", "cwd/../secret", str(secret)]
        paths += [
            "../" * 20 + str(secret).lstrip("/"),
            f"/proc/self/root{secret}",
            f"/proc/1/root{secret}",
            "../secret",
        ]
        client, sftp = await _sftp(host)
        async with client:
            for path in paths:
                with pytest.raises((asyncssh.SFTPNoSuchFile, asyncssh.SFTPPermissionDenied, asyncssh.SFTPFailure)):
                    await sftp.open(path.encode(), "rb")
                with pytest.raises(asyncssh.SFTPError):
                    await sftp.stat(path.encode())
            for path in ("folder/made", f"root{tmp_path}/made", "../made"):
                with pytest.raises(asyncssh.SFTPError):
                    await sftp.open(path.encode(), "wb")
                with pytest.raises(asyncssh.SFTPError):
                    await sftp.mkdir(path.encode())
        assert secret.read_bytes() == _SECRET
        assert not (tmp_path / "made").exists()


@on_loop
async def test_a_dangling_link_is_followed_inside_only(tmp_path: Path) -> None:
    async with shell(tmp_path) as host:
        (host.root / "link").symlink_to(tmp_path / "made")
        (host.root / "tmp").symlink_to("/tmp/inside")
        client, sftp = await _sftp(host)
        async with client:
            with pytest.raises(asyncssh.SFTPError):
                await sftp.open(b"link", "wb")
            async with sftp.open(b"tmp", "wb") as file:
                await file.write(b"x")
            assert (await client.run("cat /tmp/inside")).stdout == b"x"
        assert not (tmp_path / "made").exists()


@on_loop
async def test_a_path_swapped_all_the_while_never_leads_out(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(_SECRET)
    async with shell(tmp_path) as host:
        client, sftp = await _sftp(host)
        async with client:
            script = f"echo inside > file; while :; do ln -sfn {tmp_path}/secret x; ln -f file y; mv -f y x; done"
            await client.run(f"({script}) > /dev/null 2>&1 &")
            for _ in range(300):
                try:
                    async with sftp.open(b"x", "rb") as file:
                        assert await file.read() in (b"inside\n", b"")
                except asyncssh.SFTPNoSuchFile:
                    pass


@pytest.mark.parametrize("path", [b"fifo", b"/dev/zero", b"/dev/null", b"socket", b"folder", b"/dev/tty", b"/dev/ptmx"])
@on_loop
async def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path, path: bytes) -> None:
    async with shell(tmp_path) as host:
        client, sftp = await _sftp(host)
        async with client:
            await client.run(
                "mkdir folder; mkfifo fifo; perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Local => \"socket\")'"
            )
            for mode in ("rb", "wb", "r+b", "ab"):
                async with asyncio.timeout(5):
                    with pytest.raises(asyncssh.SFTPError):
                        await sftp.open(path, mode)
            with pytest.raises(asyncssh.SFTPError):
                await sftp.truncate(path, 1)


@on_loop
async def test_a_fifo_with_somebody_at_its_other_end_is_refused_too(tmp_path: Path) -> None:
    async with shell(tmp_path) as host:
        client, sftp = await _sftp(host)
        async with client:
            await client.run("mkfifo fifo; exec 3<>fifo; (sleep 1011 <&3 >&3 2>&1 &)")
            for mode in ("rb", "wb"):
                with pytest.raises(asyncssh.SFTPFailure, match="not a regular file"):
                    await sftp.open(b"fifo", mode)


@on_loop
async def test_files_belong_to_the_workspaces_user_and_modes_are_kept(tmp_path: Path) -> None:
    async with shell(tmp_path) as host:
        client, sftp = await _sftp(host)
        async with client:
            async with sftp.open(b"x", "wb", asyncssh.SFTPAttrs(permissions=0o4755)) as file:
                await file.write(b"x")
            found = (host.root / "x").stat()
            assert found.st_uid == host.root.stat().st_uid
            await sftp.chmod(b"x", 0o640)
            await sftp.utime(b"x", (1_000_000_000, 1_100_000_000))
            await sftp.truncate(b"x", 5)
            found = (host.root / "x").stat()
            assert (found.st_mode & 0o7777, found.st_atime, found.st_size) == (0o640, 1_000_000_000, 5)
            with pytest.raises(asyncssh.SFTPError):
                await sftp.chown(b"x", 0, 0)
            with pytest.raises(asyncssh.SFTPError):
                async with sftp.open(b"/usr/made", "wb"):
                    pass


@on_loop
async def test_a_rename_never_replaces_and_a_posix_rename_does(tmp_path: Path) -> None:
    async with shell(tmp_path) as host:
        for name in ("a", "b"):
            (host.root / name).write_text(name)
        (host.root / "d").mkdir()
        (host.root / "e").mkdir()
        client, sftp = await _sftp(host)
        async with client:
            for old, new in ((b"a", b"b"), (b"d", b"e"), (b"a", b"d"), (b"none", b"c")):
                with pytest.raises(asyncssh.SFTPError):
                    await sftp.rename(old, new)
            assert (host.root / "b").read_text() == "b"
            await sftp.posix_rename(b"a", b"b")
            await sftp.rename(b"d", b"f")
        assert (host.root / "b").read_text() == "a"
        assert (host.root / "f").is_dir()


@on_loop
async def test_a_full_disk_and_a_file_too_large_are_said(tmp_path: Path) -> None:
    async with shell(tmp_path, limits=Limits(file_bytes=2 << 20, tmp_bytes=1 << 20)) as host:
        client, sftp = await _sftp(host)
        async with client:
            for path, why in ((b"big", "File too large"), (b"/tmp/big", "No space left")):
                file = await sftp.open(path, "wb")
                with pytest.raises(asyncssh.SFTPError, match=why):
                    await file.write(bytes(3 << 20))
                await file.close()
            assert (await client.run("echo on")).stdout == b"on\n"


@on_loop
async def test_handles_are_bounded_and_come_back(tmp_path: Path) -> None:
    async with shell(tmp_path) as host:
        client, sftp = await _sftp(host)
        async with client:
            files = [await sftp.open(b"x", "wb") for _ in range(128)]
            with pytest.raises(asyncssh.SFTPFailure, match="128 files"):
                await sftp.open(b"x", "rb")
            for file in files:
                await file.close()
            await (await sftp.open(b"x", "rb")).close()


@on_loop
async def test_a_folder_whose_files_vanish_is_listed(tmp_path: Path) -> None:
    async with shell(tmp_path) as host:
        client, sftp = await _sftp(host)
        async with client:
            await client.run("(while :; do touch $(seq 300); rm -f $(seq 300); done) > /dev/null 2>&1 &")
            for _ in range(20):
                await sftp.listdir(b".")


@on_loop
async def test_the_file_server_ends_with_its_client(tmp_path: Path) -> None:
    async with shell(tmp_path) as host, await host.client() as watching:
        before = (await watching.run("ls -d /proc/[0-9]* | wc -l")).stdout
        client, sftp = await _sftp(host)
        await sftp.stat(b".")
        client._connection.abort()
        while (await watching.run("ls -d /proc/[0-9]* | wc -l")).stdout != before:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


@on_loop
async def test_what_is_no_sftp_ends_the_session_and_harms_nothing(tmp_path: Path) -> None:
    rng = random.Random(7)
    async with shell(tmp_path) as host:
        (host.root / "keep").write_bytes(b"kept")
        box = await host.room.sandbox()
        for n in range(60):
            with (await open_files(box, "OpenSSH_9"))[0] as sock:
                sock.setblocking(False)
                loop = asyncio.get_running_loop()
                await loop.sock_sendall(sock, _noise(rng, n))
                sock.shutdown(1)
                while await loop.sock_recv(sock, 1 << 16):
                    pass
        assert (host.root / "keep").read_bytes() == b"kept"
        assert (await box.run("echo on")).stdout == b"on\n"


@on_loop
async def test_each_request_that_is_wrong_has_its_answer(tmp_path: Path) -> None:
    async with shell(tmp_path) as host:
        box = await host.room.sandbox()
        with (await open_files(box, ""))[0] as sock:
            sock.setblocking(False)
            reader, writer = await asyncio.open_unix_connection(sock=sock)
            for kind in [*range(3, 23), 99, 200]:
                for body in (b"", b"\xff\xff\xff\xff", struct.pack(">I", 4) + b"none" + bytes(40), bytes(3)):
                    writer.write(struct.pack(">IBI", 5 + len(body), kind, 77) + body)
                    size = int.from_bytes(await reader.readexactly(4), "big")
                    answer = await reader.readexactly(size)
                    assert answer[1:5] == struct.pack(">I", 77)
            writer.close()
            await writer.wait_closed()


@on_loop
async def test_a_file_operation_has_its_time_limit_and_an_idle_client_has_none(tmp_path: Path) -> None:
    async with shell(tmp_path, limits=Limits(wall_s=2)) as host, await host.client() as client:
        (host.root / "file").write_bytes(b"there")
        assert await client.read("file") == b"there"
        server = client._sftp
        await asyncio.sleep(5)
        assert await client.read("file") == b"there"
        assert client._sftp is server
        await client.run("kill -STOP -1")
        with pytest.raises(SandboxError, match="its file server is gone"):
            await client.read("file")
        assert (await client.run("cat /proc/[0-9]*/stat | grep -c ' T '")).stdout == b"0\n"
        assert await client.read("file") == b"there"


def test_packets_are_counted_however_they_come_in_pieces() -> None:
    whole = b"".join(struct.pack(">I", len(body)) + body for body in (b"one", b"", b"x" * 5000, b"last"))
    for step in (1, 3, 7, 4096, len(whole)):
        packets = Packets()
        for at in range(0, len(whole), step):
            packets.add(whole[at : at + step])
        assert packets.count == 4
        packets.add(b"\0\0\0\2x")
        assert packets.count == 4


@pytest.mark.skipif(shutil.which("perl") is None, reason="perl makes the socket")
@on_loop
async def test_a_listing_names_what_each_thing_is(tmp_path: Path) -> None:
    async with shell(tmp_path) as host, await host.client() as client:
        kinds = {entry.name: entry.kind for entry in await client.list("/dev")}
        assert kinds["null"] == "other"
        assert kinds["fd"] == "link"
        assert kinds["pts"] == "folder"


def _noise(rng: random.Random, n: int) -> bytes:
    """Bytes, packets of noise, or requests that begin well."""
    if n % 3 == 0:
        return rng.randbytes(rng.randrange(5000))
    packets = b""
    for _ in range(rng.randrange(1, 40)):
        body = rng.randbytes(rng.randrange(40))
        if n % 3 == 1:
            words = [struct.pack(">I", len(word)) + word for word in (b"nothing", rng.randbytes(8))]
            body = rng.choice(words) + body
        packets += struct.pack(">IBI", 5 + len(body), rng.choice([*range(1, 21), 200]), rng.getrandbits(32)) + body
    return packets
