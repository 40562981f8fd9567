"""--dry-run says what workers get, and leaves nothing: dry_run_test.py DDPRUN.

Each command line runs twice, with --dry-run and without: what the workers see is what was shown.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from anyone import for_anyone  # noqa: E402
from tables import members  # noqa: E402

LIMIT = 60
WORKER = """import json, os, sys
with open(os.environ["TEST_NOTES"] + "/" + os.environ["RANK"], "w") as note:
    json.dump({"argv": sys.argv, "environment": dict(os.environ)}, note)
"""


def environment_in(folder):
    """This test's own, without what ddprun or torchrun would read."""
    own = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PET_", "DDPRUN_", "TORCH", "SLURM", "OMPI", "PMI"))
    }
    temporary = folder / "tmp"
    temporary.mkdir()
    return dict(own, TEST_NOTES=str(folder), TMPDIR=str(temporary), XDG_RUNTIME_DIR=str(temporary))


def run(words, environment, code=0):
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=LIMIT, env=environment, check=False
    )
    assert done.returncode == code, (words, done)
    return done


def shown_and_seen(ddprun, options, variables=None):
    """The JSON of --dry-run, and what each rank got."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        worker = folder / "worker.py"
        worker.write_text(WORKER)
        environment = dict(environment_in(folder), PYTHON_EXEC=sys.executable, **(variables or {}))
        command = [*options, str(worker), "--rank", "${local_rank}"]
        shown = run([ddprun, "--dry-run", "--json", *command], environment)
        assert shown.stdout.count("\n") == 1, shown
        assert not list((folder / "tmp").iterdir()), "nothing is left"
        assert len(list(folder.iterdir())) == 2, "nothing was started"
        run([ddprun, *command], environment)
        preview = json.loads(shown.stdout)
        seen = [json.loads((folder / str(w["rank"])).read_text()) for w in preview["workers"]]
        return preview, seen, environment


def has_documented_members(ddprun):
    preview = json.loads(run([ddprun, "--dry-run", "--json", "true"], dict(os.environ)).stdout)
    documented = members("COMMANDS.md", "## Before a run")
    assert set(preview) == set(documented), preview
    for part in ("nodes", "workers"):
        for name in preview[part][0]:
            assert f"`{name}`" in documented[part], name


def check(ddprun, options, variables=None):
    preview, seen, inherited = shown_and_seen(ddprun, options, variables)
    for worker, real in zip(preview["workers"], seen):
        shown = worker["environment"]
        for name, value in shown.items():
            assert name in real["environment"], (options, name)
            if value is not None:
                assert real["environment"][name] == value, (options, name, value)
        for name, value in real["environment"].items():
            known = inherited.get(name) == value or name in shown or name == "LC_CTYPE"
            assert known, (options, name, value, "is not shown")
        assert worker["command"][-3:] == real["argv"], worker
        assert real["argv"][-1] == str(worker["local_rank"]), real
    return preview


def workers_get_what_is_shown(ddprun):
    alone = check(ddprun, ["--standalone", "--nproc-per-node=2"])
    assert alone["run_id"] is None and alone["coordinator"] is None, alone
    assert [worker["rank"] for worker in alone["workers"]] == [0, 1], alone
    later = [n for n, v in alone["workers"][0]["environment"].items() if v is None]
    assert "MASTER_PORT" in later and "TORCHELASTIC_RUN_ID" in later, later
    named = check(
        ddprun,
        ["--rdzv-backend=c10d", "--rdzv-id=x", "--max-restarts=3", "--log-dir=/dev/null"],
        {"PET_ROLE": "r"},
    )
    assert named["run_id"] == "x" and named["log_dir"] is None, named
    devices = check(
        ddprun,
        ["--standalone", "--nproc-per-node=2", "--virtual-local-rank"],
        {"CUDA_VISIBLE_DEVICES": "4,6", "OMP_NUM_THREADS": "3"},
    )
    assert [worker["devices"] for worker in devices["workers"]] == ["4", "6"], devices
    check(ddprun, ["--standalone", "--restart=failed", "--run-path"])


def several_nodes(ddprun):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        environment = environment_in(folder)

        def shown(*options, code=0):
            words = [ddprun, "--dry-run", "--json", *options, "/bin/true"]
            done = run(words, environment, code)
            return json.loads(done.stdout) if code == 0 else done

        static = ["--nnodes=3", "--nproc-per-node=2", "--node-rank=1", "--master-addr=10.0.0.1"]
        second = shown(*static)
        assert [node["first_rank"] for node in second["nodes"]] == [0, 2, 4], second
        assert [node["here"] for node in second["nodes"]] == [False, True, False], second
        assert second["nodes"][0]["host"] == "10.0.0.1", second
        assert [worker["rank"] for worker in second["workers"]] == [2, 3], second
        assert second["workers"][0]["environment"]["MASTER_PORT"] == "29500", second
        assert second["workers"][0]["environment"]["WORLD_SIZE"] == "6", second
        listed = shown("--hosts=10.0.0.1,10.0.0.2", "--node-rank=0")
        assert [node["host"] for node in listed["nodes"]][1] == "10.0.0.2", listed
        assert listed["may_run_coordinator"], listed
        elastic = shown("--nnodes=1:3", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost")
        assert elastic["nodes"] == [] and elastic["workers"][0]["rank"] is None, elastic
        assert elastic["workers"][0]["environment"]["WORLD_SIZE"] is None, elastic
        file = folder / "store"
        by_file = ["--nnodes=2", "--rdzv-backend=c10d", "--rdzv-conf=store_type=file"]
        by_file += [f"--rdzv-endpoint={file}", "--local-addr=127.0.0.1"]
        first = shown(*by_file)
        assert first["coordinator"] is None and first["may_run_coordinator"], first
        text = run([ddprun, "--dry-run", "-v", *by_file, "/bin/true"], environment)
        assert "coordinator  (decided at the start) (this node may run it)" in text.stdout, text
        assert "coordinator decided at the start" in text.stderr, text
        assert not file.exists() and not list((folder / "tmp").iterdir())
        name = os.uname().nodename
        file.write_text(f"# ddprun: the coordinator of each run id\nnone {name} 127.0.0.1:21000\n")
        assert shown(*by_file)["coordinator"] == "127.0.0.1:21000", by_file


def text_and_mistakes(ddprun):
    with tempfile.TemporaryDirectory() as name:
        environment = environment_in(pathlib.Path(name))

        def run_with(*words, code=0):
            return run([ddprun, *words], environment, code)

        words = ["--dry-run", "--standalone", "--nproc-per-node=2", "/bin/echo", "a b"]
        text = run_with(*words).stdout
        for part in (
            "Nothing was started",
            "1 node; this is ",
            "1     1           all      all   /bin/echo 'a b'",
            "  MASTER_PORT=(decided at the start)",
            "  local rank 1: LOCAL_RANK=1 RANK=1 ROLE_RANK=1",
        ):
            assert part in text, (part, text)
        bound = run_with("--dry-run", "--detach", "/bin/true")
        assert not bound.stderr and "Nothing was started" in bound.stdout, bound
        missing = run_with("--dry-run", "no-such-program", code=127)
        assert "no such file" in run_with("--dry-run", "no-such.py", code=2).stderr
        assert not missing.stdout and "no-such-program" in missing.stderr, missing
        assert "--dry-run" in run_with("--json", "/bin/true", code=2).stderr
        assert "--nnodes" in run_with("--dry-run", "--nnodes=0", "/bin/true", code=2).stderr


def refused_like_the_start(ddprun):
    """With the words and the exit code of the start."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        environment = environment_in(folder)

        def script(of, first_line):
            (folder / of).write_text(first_line)
            (folder / of).chmod(0o755)
            return str(folder / of)

        def last_line(words, code):
            shown = [line for line in run(words, environment, code).stderr.splitlines() if line]
            return next(line for line in shown if ": error [" in line)

        (folder / "plain").touch()
        missing = script("missing", "#!/no/such/interpreter -u\n")
        windows = script("windows", "#!/bin/sh\r\n")
        cases = [
            (127, [missing]),
            (127, [windows]),
            (126, [script("a-folder", "#!/tmp\n")]),
            (127, ["no-such-program"]),
            (2, [str(folder / "no${local_rank}.py")]),
            (2, ["--log-dir", str(folder / "plain" / "logs"), "/bin/true"]),
            (2, ["--log-dir", str(folder / "plain"), "/bin/true"]),
        ]
        store = ["--nnodes=2", "--rdzv-backend=c10d", "--rdzv-conf=store_type=file"]
        for place in (folder, folder / "no" / "store"):
            words = [*store, f"--rdzv-endpoint={place}", "--local-addr=127.0.0.1"]
            cases.append((2, [*words, "/bin/true"]))
        for code, words in cases:
            dry = last_line([ddprun, "--dry-run", *words], code)
            assert dry == last_line([ddprun, *words], code), (words, dry)
        by_rank = script("train0.py", "")
        run([ddprun, "--dry-run", by_rank.replace("0", "${local_rank}")], environment)
        elsewhere = dict(environment, TMPDIR=str(folder / "none"))
        shown = run([ddprun, "--dry-run", "--json", "/bin/true"], elsewhere)
        assert json.loads(shown.stdout)["log_dir"] == "/tmp", shown


def refused_to_another_user(ddprun):
    """What only root may write."""
    if os.geteuid() != 0:
        print("not root: the refusals of another user were not tried")
        return
    with tempfile.TemporaryDirectory() as name, for_anyone(ddprun) as (ddprun, passed):
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        environment = environment_in(folder)
        (folder / "tmp").chmod(0o777)
        for place in (folder, folder / "new" / "logs"):
            words = [f"--log-dir={place}", "--nnodes=1", "--master-port=0", "/bin/true"]
            lines = []
            for dry in ([], ["--dry-run"]):
                done = subprocess.run(
                    [ddprun, *dry, *words], capture_output=True, text=True, timeout=LIMIT,
                    env=environment, user=1234, group=1234, extra_groups=[], check=False,
                    **passed,
                )
                assert done.returncode == 2, done
                lines.append(done.stderr)
            assert lines[0] == lines[1] and "Permission denied (--log-dir)" in lines[0], lines


def settings(ddprun):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        file = folder / "run.toml"
        file.write_text("max-restarts = 2\nrole = 'file'\nstandalone = true\n")
        environment = dict(environment_in(folder), PET_ROLE="variable")
        environment["TORCH_ELASTIC_SHUTDOWN_TIMEOUT"] = "7"
        words = [ddprun, "config", "--nproc-per-node=3", "--config", str(file)]
        text = run(words, environment).stdout
        rows = {line.split()[0]: line.split(None, 2)[1:] for line in text.splitlines()[1:]}
        assert rows["--nproc-per-node"] == ["3", "command line"], rows
        assert rows["--role"] == ["variable", "PET_ROLE"], rows
        assert rows["--max-restarts"] == ["2", f"{file}:1"], rows
        assert rows["--standalone"] == ["on", f"{file}:3"], rows
        assert rows["--shutdown-timeout"] == ["7", "TORCH_ELASTIC_SHUTDOWN_TIMEOUT"], rows
        assert rows["--nnodes"] == ["1:1", "default"], rows
        told = json.loads(run([*words, "--json", "train.py", "--nnodes"], environment).stdout)
        by_name = {row["name"]: row for row in told["settings"]}
        assert {"--" + name for name in by_name} == set(rows), (by_name, rows)
        assert by_name["standalone"] == {
            "name": "standalone",
            "value": True,
            "source": "file",
            "from": f"{file}:3",
        }, by_name["standalone"]
        assert by_name["hosts"]["value"] is None, by_name["hosts"]
        assert by_name["role"]["source"] == "variable", by_name["role"]
        wrong = dict(environment, TORCHELASTIC_HEALTH_CHECK_PORT="none", DDPRUN_GPUS="1,0")
        done = run([ddprun, "config", "--json", "--config", str(file), "--nnodes=2"], wrong)
        by_name = {row["name"]: row for row in json.loads(done.stdout)["settings"]}
        assert by_name["http"] == dict(by_name["hosts"], name="http"), by_name["http"]
        count = by_name["nproc-per-node"]
        assert (count["value"], count["source"]) == ("2", "variable"), count
        assert count["from"] == "DDPRUN_GPUS", count
        assert by_name["standalone"]["value"] is False, by_name["standalone"]
        assert f"note: {file}:3: standalone not used: --nnodes=2" in done.stderr, done
        assert "TORCHELASTIC_HEALTH_CHECK_PORT='none' is not a port" in done.stderr, done
        every = json.loads(run([ddprun, "config", "--json", "--gpus=all"], environment).stdout)
        count = next(row for row in every["settings"] if row["name"] == "nproc-per-node")
        assert (count["value"], count["from"]) == ("gpu", "--gpus"), count
        refused = run([ddprun, "config", "--restart=some"], environment, 2)
        assert refused.stderr.startswith("ddprun: error [USAGE] --restart='some'"), refused
        under = dict(environment, **slurm())
        rows = json.loads(run([ddprun, "config", "--json"], under).stdout)["settings"]
        nodes = next(row for row in rows if row["name"] == "nnodes")
        assert (nodes["value"], nodes["source"]) == ("2", "scheduler"), nodes
        (folder / "config").mkdir()  # of that name: no program
        there = {"cwd": folder, "env": environment}
        shown = subprocess.run([ddprun, "config"], capture_output=True, text=True, **there)
        assert shown.returncode == 0 and shown.stdout.startswith("setting "), shown


def slurm():
    """The variables of a real step."""
    captured = pathlib.Path(__file__).parents[1] / "captured" / "slurm-step-node0.env"
    lines = captured.read_text().splitlines()
    pairs = (line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    return {name: value for name, value in pairs if name.startswith("SLURM")}


program = os.path.abspath(sys.argv[1])
workers_get_what_is_shown(program)
has_documented_members(program)
several_nodes(program)
text_and_mistakes(program)
refused_like_the_start(program)
refused_to_another_user(program)
settings(program)
