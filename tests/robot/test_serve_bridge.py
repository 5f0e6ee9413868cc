"""A simulator's own program serves its bridge: started by hand, or as an endpoint's world; with and without TLS."""

from __future__ import annotations

import datetime as dt
import json
import signal
import ssl
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from hudsim.errors import ConnectError, UsageError
from hudsim.net import Address, connect
from hudsim.robot.client import RobotClient
from hudsim.robot.endpoint import RobotEndpoint
from tests.asyncrun import on_loop
from tests.robot.playing import joined, play

PROGRAM = """
import os
from hudsim import serve_bridge
from hudsim.bridges.testcard import TestCardBridge
print("loading the simulator ...", flush=True) if "HUDSIM_SPAWNED" in os.environ else None
serve_bridge(TestCardBridge(width=16, height=16))
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "sim.py"
    path.write_text(PROGRAM)
    return path


def test_started_by_hand_it_says_where_and_a_signal_ends_it(program: Path) -> None:
    process = subprocess.Popen([sys.executable, str(program)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())

        @on_loop
        async def drive() -> None:
            async with await RobotClient.connect(said["url"]) as robot:
                assert [heard.index for heard in await play(robot, 3)] == [0, 1, 2, 3]

        drive()
        assert Address.parse(said["url"]).port == said["port"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(5) == 0
    finally:
        process.kill()
        process.wait(5)
        assert process.stdout is not None
        process.stdout.close()


@on_loop
async def test_as_a_command_it_is_an_endpoints_world(program: Path) -> None:
    async with RobotEndpoint.spawn([sys.executable, str(program)]) as world, joined(world) as (robot, episode):
        assert len(await play(robot, 5)) == 6
        await robot.end("max_steps")
        assert (await robot.get_observation()).over
        assert (await world.result(episode.token))["end"] == "max_steps"


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[str, str]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "somewhere-else")])
    now = dt.datetime.now(dt.UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    made = made.not_valid_before(now - dt.timedelta(days=1)).not_valid_after(now + dt.timedelta(days=2))
    cert = made.sign(key, hashes.SHA256())
    (tmp_path / "cert.pem").write_bytes(cert.public_bytes(Encoding.PEM))
    (tmp_path / "key.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")


@on_loop
async def test_with_a_certificate_it_speaks_wss_only(certificate: tuple[str, str]) -> None:
    cert, key = certificate
    spec = "hudsim.bridges.testcard:TestCardBridge"
    async with RobotEndpoint.spawn(spec, tls_cert=cert, tls_key=key) as world:
        address = Address.parse(world.capability().url)
        assert address.tls
        with pytest.raises(ConnectError, match="certificate"):
            await connect(address)  # nobody vouches for it
        plain = Address(address.host, address.port, address.path, address.bearer)
        with pytest.raises(ConnectError):
            await connect(plain, timeout_s=3.0)
        trusting = ssl.create_default_context(cafile=cert)
        trusting.check_hostname = False
        link = await connect(address, tls=trusting)
        assert b"hudsim/1" in bytes(await link.receive())  # type: ignore[arg-type]
        await link.close()
        episode = await world.reset(seed=1)
        assert (await world.result(episode.token))["end"] == "max_steps"


@on_loop
async def test_a_certificate_that_cannot_be_read_is_a_usage_error() -> None:
    world = RobotEndpoint.spawn("hudsim.bridges.testcard:TestCardBridge", tls_cert="/nowhere.pem", tls_key="/nowhere")
    with pytest.raises(UsageError, match="/nowhere"):
        await world.start()
    await world.stop()
