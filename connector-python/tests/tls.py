"""Servers that speak TLS."""

import ssl
from datetime import datetime, timedelta, timezone
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


def tls_of(*hosts: str, folder: str) -> ssl.SSLContext:
    """With a certificate that is its own authority, `certificate.pem` in the folder."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, hosts[0])])
    now = datetime.now(timezone.utc)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, now - timedelta(1), now + timedelta(1))
    names = x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts])
    certificate = builder.add_extension(names, False).sign(key, hashes.SHA256())
    pem = serialization.Encoding.PEM
    Path(folder, "certificate.pem").write_bytes(certificate.public_bytes(pem))
    plain = serialization.NoEncryption()
    Path(folder, "key.pem").write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{folder}/certificate.pem", f"{folder}/key.pem")
    return context
