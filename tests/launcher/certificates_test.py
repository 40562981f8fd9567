"""A run whose nodes have certificates: who joins, and what the others are told.

    certificates_test.py DDPRUN RDZVD
"""

import os
import pathlib
import select
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests" / "support"))
import certificates  # noqa: E402
from ports import free_port  # noqa: E402
from sentences import kHasOtherSecret, kNoTrustedLink, kNotSignedBy  # noqa: E402
from sentences import kRefusesCertificate  # noqa: E402

DDPRUN, RDZVD = sys.argv[1:3]
SECRET = "correct-horse-battery-staple-0123456789"
HUNG = 60


def tls(certificate, prefix="rdzv-", **changes):
    files = {"cert": certificate.cert, "key": certificate.key, "ca": certificate.ca} | changes
    return [f"--{prefix}tls-{name}={file}" for name, file in files.items() if file is not None]


class Certified(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.ca = certificates.Ca(cls.folder, "ca")
        cls.other = certificates.Ca(cls.folder, "other")
        cls.own = cls.ca.issue()

    def setUp(self):
        self.port = free_port()

    def node(self, *options, host="127.0.0.1", own=False, secret=None, nodes="2"):
        names = ("DDPRUN", "PET_", "SLURM", "TORCH")
        environment = {k: v for k, v in os.environ.items() if not k.startswith(names)}
        if secret is not None:
            environment["DDPRUN_SECRET"] = secret
        process = subprocess.Popen(
            [DDPRUN, f"--nnodes={nodes}", "--rdzv-backend=c10d", "--rdzv-id=run",
             f"--rdzv-endpoint={host}:{self.port}", f"--log-dir={self.folder}/logs",
             f"--rdzv-conf=join_timeout=30,is_host={str(own).lower()}", *options, "--no-python",
             "true"],
            env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)
        self.addCleanup(end, process)
        return process

    def ends(self, process, code, *phrases):
        text, _ = process.communicate(timeout=HUNG)
        self.assertEqual(process.returncode, code, text)
        for phrase in phrases:
            self.assertIn(phrase, text)

    def test_nodes_with_certificates_of_one_ca_form_a_run(self):
        one = self.node(*tls(self.own), own=True)
        two = self.node(*tls(self.ca.issue("DNS:any.name")), host="localhost")
        self.ends(one, 0)
        self.ends(two, 0)

    def test_strangers_are_refused_by_one_sentence_each(self):
        one = self.node(*tls(self.own), own=True)
        foreign = self.other.issue()
        foreign.ca = self.ca.file
        self.ends(self.node(*tls(foreign)), 111, kRefusesCertificate + str(foreign.cert))
        self.ends(self.node(*tls(self.own, ca=self.other.file)), 111,
                  kNotSignedBy + "the CA of --rdzv-tls-ca=")
        self.ends(self.node(*tls(self.ca.issue(expired=True))), 111, kRefusesCertificate)
        self.ends(self.node(secret=SECRET), 111, kHasOtherSecret)
        self.ends(self.node(), 111, "pass --rdzv-tls-cert, --rdzv-tls-key and --rdzv-tls-ca")
        self.ends(self.node(*tls(self.own)), 0)
        self.ends(one, 0)

    def test_a_coordinator_of_another_host_and_an_expired_one_are_refused(self):
        for certificate, phrase in ((self.ca.issue("DNS:node0"), "does not name 127.0.0.1"),
                                    (self.ca.issue(expired=True), "certificate has expired")):
            self.serve(*tls(certificate, ""))
            self.ends(self.node(*tls(self.own), nodes="1"), 111, phrase)

    def test_a_node_with_certificates_joins_no_coordinator_with_a_secret_or_without(self):
        for secret in (SECRET, None):
            self.port = free_port()
            one = self.node(own=True, secret=secret)
            self.ends(self.node(*tls(self.own)), 111, kNoTrustedLink + "127.0.0.1")
            self.ends(self.node(secret=secret), 0)
            self.ends(one, 0)

    def test_ddprun_rdzvd_serves_every_run_of_the_ca_and_no_other(self):
        self.serve(*tls(self.own, ""))
        self.ends(self.node(*tls(self.ca.issue()), nodes="1"), 0)
        self.ends(self.node(nodes="1"), 111, "agents with a certificate")
        self.ends(self.node(*tls(self.other.issue()), nodes="1"), 111, kNotSignedBy)

    def test_options_that_contradict_each_other_are_refused(self):
        secret = self.folder / "secret"
        secret.write_text(SECRET)
        secret.chmod(0o600)
        self.ends(self.node(*tls(self.own), f"--rdzv-secret-file={secret}"), 2,
                  "exclude each other: links have either")
        self.ends(self.node(*tls(self.own), secret=SECRET), 2, "DDPRUN_SECRET and --rdzv-tls-cert")
        self.ends(self.node(*tls(self.own, key=None)), 2, "--rdzv-tls-key is missing")
        self.ends(self.node(*tls(self.own, key="/none")), 2, "--rdzv-tls-key=/none: cannot read it")
        for words, phrase in ((tls(self.own, "", ca=None), "--tls-ca is missing"),
                              ([*tls(self.own, ""), f"--secret-file={secret}"], "pass one of the"),
                              (tls(self.own, "", ca="/none"), "--tls-ca=/none: cannot read it")):
            daemon = subprocess.run([RDZVD, "--port=0", *words], capture_output=True, text=True,
                                    timeout=HUNG)
            self.assertEqual(daemon.returncode, 2, daemon.stderr)
            self.assertIn(phrase, daemon.stderr)

    def serve(self, *words):
        daemon = subprocess.Popen([RDZVD, "--port=0", *words], text=True, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(end, daemon)
        ready, _, _ = select.select([daemon.stdout], [], [], HUNG)
        self.assertTrue(ready)
        self.port = int(daemon.stdout.readline().rpartition(":")[2])


def end(process):
    if process.poll() is None:
        process.kill()
    process.communicate(timeout=HUNG)


if __name__ == "__main__":
    if certificates.missing():
        print(certificates.missing())
        sys.exit(77)
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
