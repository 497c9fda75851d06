"""A certificate authority for one run of tests, and certificates of servers on this machine.

    ca = Authority()
    ca.pem                              # to be trusted
    chain, key = ca.issue(folder)       # files with a certificate for localhost and 127.0.0.1, and its key
"""
import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = datetime.timedelta(days=1)


def _name(text):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _builder(subject, issuer, key):
    now = datetime.datetime.utcnow()
    return (x509.CertificateBuilder().subject_name(_name(subject)).issuer_name(_name(issuer)).public_key(key.public_key())
            .serial_number(x509.random_serial_number()).not_valid_before(now - DAY).not_valid_after(now + 7 * DAY))


class Authority:
    def __init__(self, name="Muster test authority"):
        self.name, self.key = name, ec.generate_private_key(ec.SECP256R1())
        self.certificate = (_builder(name, name, self.key)
                            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
                            .sign(self.key, hashes.SHA256()))
        self.pem = self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    def issue(self, folder, name="localhost"):
        """(certificate file, key file); valid for localhost and 127.0.0.1."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        certificate = (_builder(name, self.name, key).add_extension(names, critical=False)
                       .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
                       .sign(self.key, hashes.SHA256()))
        chain, private = Path(folder) / f"{name}.crt", Path(folder) / f"{name}.key"
        chain.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        private.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                              serialization.NoEncryption()))
        private.chmod(0o600)
        return str(chain), str(private)
