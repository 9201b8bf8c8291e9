"""An S3 server on loopback, and buckets in it."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import boto3

from tests.support.catalogs import Place

_SERVER = """
import logging, sys, threading
from moto.moto_server.werkzeug_app import DomainDispatcherApplication
from moto.server import ThreadedMotoServer
serve, one_at_a_time = DomainDispatcherApplication.__call__, threading.Lock()
def serially(*request):  # moto looks whether an object is there and writes it in two steps; S3 does so in one
    with one_at_a_time:
        return serve(*request)
DomainDispatcherApplication.__call__ = serially
logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""


@dataclass(frozen=True)
class Server:
    """A running server."""

    endpoint: str

    @property
    def options(self) -> dict[str, str]:
        return {
            "aws_access_key_id": "testing-key",
            "aws_secret_access_key": "testing-secret",
            "aws_region": "us-east-1",
            "aws_endpoint": self.endpoint,
            "allow_http": "true",
        }

    def place(self) -> Place:
        """A fresh root in a fresh bucket."""
        bucket = f"b{uuid.uuid4().hex[:12]}"
        client = boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id="testing-key",
            aws_secret_access_key="testing-secret",
            region_name="us-east-1",
        )
        client.create_bucket(Bucket=bucket)
        return Place(f"s3://{bucket}/warehouse", self.options)


@contextmanager
def serve() -> Iterator[Server]:
    """Start a server in a process of its own, and stop it at the end."""
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        assert process.stdout is not None
        endpoint = f"http://127.0.0.1:{int(process.stdout.readline())}"
        _wait_until_up(endpoint)
        yield Server(endpoint)
    finally:
        process.kill()
        process.wait()


def _wait_until_up(endpoint: str) -> None:
    for _ in range(100):
        try:
            urllib.request.urlopen(f"{endpoint}/moto-api/", timeout=1)
            return
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"the S3 server at {endpoint} does not answer")
