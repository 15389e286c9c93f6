"""A proxy on loopback that knows one https host, and that host's certificate from an authority made here."""

from __future__ import annotations

import contextlib
import datetime as dt
import socket
import ssl
import threading
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID


class Tunnel:
    """Answers CONNECT to `host`:443, ends TLS there and passes the plain bytes to `port` on loopback."""

    def __init__(self, host: str, port: int, folder: Path) -> None:
        self.host, self.port, self.connected = host, port, []  # type: ignore[var-annotated]
        self.authority = folder / "authority.pem"
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(_certificates(host, self.authority, folder))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError), client:
            head = b""
            while b"\r\n\r\n" not in head and (piece := client.recv(4096)):
                head += piece
            self.connected.append(head.split(b" HTTP", 1)[0].decode())
            if not head.startswith(f"CONNECT {self.host}:443 ".encode()):
                client.sendall(b"HTTP/1.1 502 not here\r\nContent-Length: 0\r\n\r\n")
                return
            client.sendall(b"HTTP/1.1 200 here\r\n\r\n")
            with (
                self._context.wrap_socket(client, server_side=True) as plain,
                socket.create_connection(("127.0.0.1", self.port)) as there,
            ):
                threading.Thread(target=_pump, args=(there, plain), daemon=True).start()
                _pump(plain, there)


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


def _certificates(host: str, authority: Path, folder: Path) -> Path:
    """Write the authority's certificate; the file of the host's certificate and key."""
    root_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    root = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    made = _builder(root, root, root_key).add_extension(x509.BasicConstraints(True, None), True)
    authority.write_bytes(made.sign(root_key, SHA256()).public_bytes(Encoding.PEM))
    leaf = _builder(name, root, key).add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), False)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file = folder / "host.pem"
    file.write_bytes(private + leaf.sign(root_key, SHA256()).public_bytes(Encoding.PEM))
    return file


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder(subject_name=subject, issuer_name=issuer, public_key=key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
    )
