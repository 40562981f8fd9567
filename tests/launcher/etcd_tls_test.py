"""Runs whose etcd speaks TLS, and wants certificates of its clients: Debian's etcd-server, with
certificates that the test makes.

    etcd_tls_test.py DDPRUN
"""

import os
import pathlib
import select
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests" / "support"), str(ROOT / "tests" / "chaos")]
import certificates  # noqa: E402
import etcd_servers  # noqa: E402
from sentences import kNoCaInFile, kNotSignedBy, kNotTheKeyOf  # noqa: E402
from sentences import kOthersMayAccess, kRefusesCertificate  # noqa: E402
from sentences import kWantsCertificate  # noqa: E402

DDPRUN = sys.argv[1]
HUNG = 60
SOON = {"keep_alive_interval": 0.2}  # after a few of which it says what it waits for


class Https(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.ca = certificates.Ca(cls.folder, "ca")
        cls.other = certificates.Ca(cls.folder, "other")
        cls.own = cls.ca.issue()
        cls.etcd = cls.enter(etcd_servers.Etcd(cls.folder, 1, cls.ca.issue(), cls.own))

    @classmethod
    def enter(cls, manager):  # Python 3.11 has enterClassContext()
        entered = manager.__enter__()
        cls.addClassCleanup(manager.__exit__, None, None, None)
        return entered

    def node(self, conf, etcd=None, options=()):
        keys = ",".join(f"{key}={value}" for key, value in conf.items())
        limits = "join_timeout=30" + ("," if keys else "")
        names = ("DDPRUN", "PET_", "SLURM", "TORCH")
        process = subprocess.Popen(
            [DDPRUN, "--nnodes=2", "--rdzv-backend=etcd-v3", f"--rdzv-id={self.id()}",
             f"--rdzv-endpoint={(etcd or self.etcd).endpoints}", f"--rdzv-conf={limits}{keys}",
             f"--log-dir={self.folder}/logs", *options, "--no-python", "true"],
            env={k: v for k, v in os.environ.items() if not k.startswith(names)},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(end, process)
        return process

    def conf(self, own=None, **changes):
        own = own or self.own
        conf = {"protocol": "https", "cacert": own.ca, "cert": own.cert, "key": own.key} | changes
        return {key: value for key, value in conf.items() if value is not None}

    def refused(self, *phrases, etcd=None, **changes):
        """It ends at once, with one sentence."""
        process = self.node(self.conf(**changes), etcd)
        text, _ = process.communicate(timeout=HUNG)
        self.assertEqual(process.returncode, 2, text)
        for phrase in phrases:
            self.assertIn(phrase, text)
        return text

    def test_a_run_of_two_nodes_elects_its_coordinator_by_https(self):
        nodes = [self.node(self.conf()), self.node(self.conf(self.ca.issue()))]
        for node in nodes:
            text, _ = node.communicate(timeout=HUNG)
            self.assertEqual(node.returncode, 0, text)

    def test_the_links_to_the_elected_coordinator_have_certificates_too(self):
        def start(own):
            links = [f"--rdzv-tls-cert={own.cert}", f"--rdzv-tls-key={own.key}",
                     f"--rdzv-tls-ca={own.ca}"]
            return self.node(self.conf(own), options=links)
        nodes = [start(self.own), start(self.ca.issue())]
        for node in nodes:
            text, _ = node.communicate(timeout=HUNG)
            self.assertEqual(node.returncode, 0, text)

    def test_a_server_of_another_ca_is_refused(self):
        self.refused(kNotSignedBy + "the CA of --rdzv-conf cacert=",
                     cacert=self.other.file)

    def test_a_server_is_not_believed_by_the_system_by_default(self):
        self.refused(kNotSignedBy + "a CA of this system", cacert=None)

    def test_a_certificate_of_another_ca_and_none_are_refused_by_the_server(self):
        own = self.other.issue()
        self.refused(kRefusesCertificate + str(own.cert), cert=own.cert, key=own.key)
        self.refused(kWantsCertificate, cert=None, key=None)

    def test_an_expired_certificate_is_refused_by_the_server(self):
        own = self.ca.issue(expired=True)
        self.refused(kRefusesCertificate + str(own.cert), cert=own.cert, key=own.key)

    def test_a_server_with_an_expired_certificate_or_of_another_host_is_refused(self):
        for certificate, phrase in (
                (self.ca.issue("IP:10.0.0.1,DNS:far"), "does not name 127.0.0.1 (subjectAltName)"),
                (self.ca.issue(expired=True), "certificate has expired")):
            # It does not even believe itself, so it is not asked whether it answers.
            etcd = etcd_servers.Etcd(self.folder, 1, certificate, self.own)
            try:
                etcd.start(0)
                etcd.wait_until_it_listens()
                self.refused(phrase, etcd=etcd)
            finally:
                etcd.__exit__(None, None, None)

    def tells(self, process, phrase):
        """It does so while it tries again."""
        text = ""
        while phrase not in text:
            ready, _, _ = select.select([process.stdout], [], [], HUNG)
            self.assertTrue(ready, text)
            more = os.read(process.stdout.fileno(), 4096).decode()
            self.assertTrue(more, text)
            text += more

    def test_http_to_a_server_with_tls_says_so(self):
        self.tells(self.node(SOON), "if it speaks TLS, pass --rdzv-conf protocol=https")

    def test_https_to_a_server_without_tls_says_so(self):
        with etcd_servers.Etcd(self.folder, 1) as plain:
            self.tells(self.node(self.conf() | SOON, plain), "pass --rdzv-conf protocol=http)")

    def test_files_that_cannot_be_used_are_named(self):
        self.refused("--rdzv-conf cert=/none: cannot read it: No such file or directory",
                     cert="/none")
        self.refused(kNotTheKeyOf, key=self.ca.issue().key)
        self.refused(kNoCaInFile, cacert=self.own.key)
        open_key = self.folder / "open.key"
        open_key.write_bytes(self.own.key.read_bytes())
        open_key.chmod(0o644)
        self.refused(kOthersMayAccess + "644)", key=open_key)


def end(process):
    if process.poll() is None:
        process.kill()
    process.communicate(timeout=HUNG)


if __name__ == "__main__":
    for why in (certificates.missing(), etcd_servers.missing()):
        if why:
            print(why)
            sys.exit(77)
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
