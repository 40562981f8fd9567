"""Programs that print what they can observe of how they were started. Each is (files, words after
the options of ddprun, more): `files` are written into the working directory; `preload` is what a
template imports, as far as it is not the default."""

PRELOAD = "json,decimal,logging,multiprocessing,asyncio,concurrent.futures,ctypes,random,uuid"

NOISY = "import sys\nprint('imported')\nprint('imported, too', file=sys.stderr)\n"
SETS = "import os\nos.environ['SET_BY_IMPORT'] = '1'\nos.environ.pop('REMOVED_BY_IMPORT', None)\n"
REAL_SITE = "import os\nos.environ['SITE_RAN'] = 'yes'\nVALUE = 3\n"
BROKEN_SITE = "raise RuntimeError('broken on purpose')\n"
PACKAGE = {"pkg/__init__.py": "", "pkg/other.py": "WORD = 'relative'\n",
           "pkg/mod.py": "from .other import WORD\nimport sys\n"
                         "print(WORD, __name__, __package__, sys.argv, sys.path[0] == "
                         "sys.path[0])\n"
                         "print(__spec__.name, sys.modules['__main__'].__dict__ is globals())\n"}


def program(text, *arguments, **more):
    return ({"program.py": text}, ["program.py", *arguments], more)


PROGRAMS = {
    "arguments": program(
        "import sys\nprint(sys.argv, getattr(sys, 'orig_argv', 0), __file__, __name__, __spec__)\n"
        "print(type(__loader__).__name__, __package__, sorted(globals()))", "x", "--y=z"),
    "path": program("import sys\nprint(sys.path, sorted(sys.path_importer_cache)[:1] != [])\n"
                    "print(any('/proc/' in entry for entry in [*sys.path, "
                    "*sys.path_importer_cache]))"),
    "environment": program(
        "import os\nprint(*(f'{k}={v}' for k, v in os.environ.items()), sep='\\n')"),
    "environment of C": program(
        "import ctypes\ng = ctypes.CDLL(None).getenv\ng.restype = ctypes.c_char_p\n"
        "print([g(n) for n in (b'RANK', b'PYTHONPATH', b'DDPRUN_TEMPLATE', "
        "b'PYTHONFAULTHANDLER')])"),
    "descriptors": program(
        "import os\nprint(sorted((n, os.fstat(int(n)).st_mode) for n in "
        "os.listdir('/proc/self/fd')\n"
        "  if os.path.exists('/proc/self/fd/' + n)))"),
    "session": program(
        "import os\nprint(os.getsid(0) == os.getpid(), os.getpgid(0) == os.getpid(), "
        "os.getcwd())\n"
        "print(oct(os.umask(0o22)), os.nice(0), os.sched_getscheduler(0), "
        "os.sched_getaffinity(0))"),
    "limits": program("import resource\nprint([resource.getrlimit(i) for i in range(16)])"),
    "command line": program(
        "print(open('/proc/self/cmdline').read().split('\\0'), "
        "open('/proc/self/comm').read())", "a b"),
    "process control": program(
        "import ctypes\nv = ctypes.c_int()\nc = ctypes.CDLL(None)\n"
        "for option in (2, 37):\n  c.prctl(option, ctypes.byref(v))\n  print(v.value)\n"
        "print(c.prctl(3), c.prctl(39))\nprint(open('/proc/self/oom_score_adj').read())"),
    "mark": program(
        "e = open('/proc/self/environ', 'rb').read().split(b'\\0')\n"
        "print([x.rpartition(b'/')[2] for x in e if x.startswith(b'DDPRUN_WORKER=')])"),
    "streams": program(
        "import sys\nfor s in (sys.stdin, sys.stdout, sys.stderr):\n"
        "  print(s.encoding, s.errors, s.line_buffering, s.write_through, s.isatty(), s.name, "
        "s.mode,\n"
        "        s.seekable(), s.buffer.__class__.__name__, s.newlines, s.fileno())"),
    "streams to files": program("import sys\nprint(sys.stdout.seekable(), sys.stderr.seekable())",
                                options=["--redirects=3"]),
    "streams to a tee": program("import sys\nprint(sys.stdout.seekable(), sys.stderr.seekable())",
                                options=["--tee=3"]),
    "standard input": program("import sys\nprint(repr(sys.stdin.read()))"),
    "signals": program(
        "import signal\nfor s in sorted(signal.valid_signals()):\n"
        "  h = signal.getsignal(s)\n  print(int(s), getattr(h, '__name__', h))\n"
        "print(signal.pthread_sigmask(signal.SIG_BLOCK, []))\n"
        "print(*(l for l in open('/proc/self/status') if l.startswith(('Sig', 'Shd', 'Threads'))\n"
        "  and not l.startswith('SigQ')))"),
    "signal handlers": program(
        "import os, signal\ngot = []\nsignal.signal(signal.SIGTERM, lambda n, f: got.append(n))\n"
        "os.kill(os.getpid(), 15)\nprint(got)\ntry:\n  os.kill(os.getpid(), 2)\n  signal.pause()\n"
        "except KeyboardInterrupt:\n  print('interrupted')\n"
        "signal.signal(signal.SIGALRM, lambda *a: "
        "print('alarm'))\nsignal.alarm(1)\nsignal.pause()"),
    "death by a signal": program("import os\nprint('now')\nos.kill(os.getpid(), 15)", code=143),
    "exit code": program("import sys\nsys.exit(7)", code=7),
    "exit text": program("import sys\nsys.exit('text')", code=1),
    "hard exit": program("import os\nprint('no flush', end='')\nos._exit(9)", code=9),
    "uncaught exception": program("def f():\n  raise RuntimeError('boom')\nf()", code=1),
    "syntax error": program("print('a'\n", code=1),
    "missing module": program("import no_such_module", code=1),
    "crash": program("import ctypes\nctypes.string_at(0)", code=139),
    "fault handler": program(
        "import faulthandler, sys\nprint(faulthandler.is_enabled())\n"
        "faulthandler.dump_traceback(file=sys.stdout)"),
    "frames": program(
        "import inspect, sys, traceback\nprint(sys._getframe().f_back, len(inspect.stack()))\n"
        "traceback.print_stack(file=sys.stdout)\ndef r(n):\n  try: return r(n + 1)\n"
        "  except RecursionError: return n\nprint(r(0), sys.getrecursionlimit())"),
    "end of the interpreter": program(
        "import atexit, sys, threading\natexit.register(print, 'atexit')\n"
        "e = threading.Event()\nthreading.Thread(target=e.wait, daemon=True).start()\n"
        "t = threading.Timer(0.1, print, ['joined'])\nt.start()\nclass D:\n"
        "  def __del__(self): print('deleted')\nd = D()\nsys.exit(0)"),
    "threads": program(
        "import os, threading\nm = threading.main_thread()\n"
        "print(m.native_id == os.getpid(), threading.get_native_id() == os.getpid(), m is "
        "threading.current_thread(), threading.enumerate()[0].name, threading.active_count())"),
    "child processes": program(
        "import os, subprocess, sys\nprint(subprocess.run([sys.executable, '-c', 'import os, sys;"
        "print(sorted(k for k in os.environ if k.startswith((\"DDPRUN_T\", \"PYTHON\"))), "
        "sys.path)'],"
        " capture_output=True, text=True).stdout)"),
    "fork": program(
        "import os\np = os.fork()\nif p == 0:\n  print('child', os.getppid() > 1)\n  os._exit(4)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(p, 0)[1]))\n"
        "try:\n  os.wait()\nexcept ChildProcessError:\n  print('no other')"),
    "execute itself": program(
        "import os, sys\nif os.environ.get('AGAIN') != '1':\n  os.environ['AGAIN'] = '1'\n"
        "  os.execv(sys.executable, [sys.executable, '-u'] + sys.argv)\n"
        "print('again', sys.argv, os.environ['RANK'], sys.path[0])", "q"),
    "multiprocessing": program(
        "import multiprocessing as mp\nclass K:\n  def __init__(self, v): self.v = v\n"
        "def f(k): return k.v * 2, mp.get_start_method(allow_none=True)\n"
        "if __name__ == '__main__':\n  for m in ('fork', 'spawn', 'forkserver'):\n"
        "    with mp.get_context(m).Pool(2) as p: print(m, p.map(f, [K(1), K(2)]))\n"
        "  q = mp.Queue()\n  p = mp.Process(target=q.put, args=(5,))\n  p.start()\n  "
        "print(q.get())\n"
        "  p.join()\n  print(p.exitcode, mp.parent_process(), "
        "mp.current_process().name)", ranks=1),
    "executors": program(
        "import concurrent.futures as cf\nif __name__ == '__main__':\n"
        "  with cf.ThreadPoolExecutor(4) as e: print(list(e.map(abs, range(-3, 0))))\n"
        "  with cf.ProcessPoolExecutor(2) as e: print(list(e.map(abs, range(-3, 0))))", ranks=1),
    "asyncio": program(
        "import asyncio\nasync def main():\n  await asyncio.sleep(0.01)\n"
        "  p = await asyncio.create_subprocess_exec('echo', 'hi', stdout=-1)\n"
        "  return (await p.communicate())[0], p.returncode\nprint(asyncio.run(main()))"),
    "pickle": program(
        "import dataclasses, enum, pickle\n@dataclasses.dataclass\nclass C:\n  a: int = 1\n"
        "class E(enum.Enum):\n  A = 1\nprint(pickle.loads(pickle.dumps([C(2), E.A])), "
        "pickle.dumps(C))"),
    "module": (PACKAGE, ["--module", "pkg.mod", "a", "b"], {}),
    "folder": ({"app/__main__.py": "import helper, sys\nprint(helper.X, sys.argv, __file__, "
                                   "__name__)\n",
                "app/helper.py": "X = 1\n"}, ["app"], {}),
    "module beside the program": (
        {"program.py": "import beside\nprint(beside.X, beside.__file__)\n", "beside.py": "X = "
                                                                                         "2\n"},
        ["program.py"], {}),
    "warnings": program(
        "import warnings\nwarnings.warn('user')\nwarnings.warn('old', DeprecationWarning)"),
    "logging": program("import logging\nlogging.basicConfig()\nlogging.warning('w %s', __name__)\n"
                       "logging.info('hidden')\nprint(logging.getLogger().level)"),
    "hash seed": program("print(hash('abc'))", environment={"PYTHONHASHSEED": "5"}),
    "flags": program("import sys\nprint(sys.flags, sys.warnoptions, sys._xoptions, "
                     "sys.dont_write_bytecode)",
                     environment={"PYTHONWARNINGS": "ignore::UserWarning", "PYTHONUTF8": "1"}),
    "interpreter": program("import sys\nprint(sys.executable, sys.prefix, sys.base_prefix, "
                           "sys.version)"),
    "decimal context": program("import decimal, locale\nprint(decimal.getcontext(), "
                               "locale.setlocale(0))"),
    "path of the user": (
        {"program.py": "import sys, lib_of_user\nprint(sys.path[:3], lib_of_user.__file__)\n",
         "lib/lib_of_user.py": ""}, ["program.py"], {"path": "lib"}),
    "module that prints": ({"program.py": "import noisy\nprint('main')\n", "lib/noisy.py": NOISY},
                           ["program.py"], {"path": "lib", "preload": "noisy"}),
    "module that changes the environment": (
        {"program.py": "import os, sets\nprint(os.environ.get('SET_BY_IMPORT'), "
                       "os.environ.get('REMOVED_BY_IMPORT'))\n", "lib/sets.py": SETS},
        ["program.py"], {"path": "lib", "preload": "sets",
            "environment": {"REMOVED_BY_IMPORT": "1"}}),
    "locale that the interpreter chooses": program(
        "import locale, os, subprocess\nprint(os.environ.get('LC_CTYPE'), "
        "os.environ.get('LANG'), locale.setlocale(locale.LC_CTYPE))\n"
        "print(subprocess.run(['locale', 'charmap'], capture_output=True, text=True).stdout)",
        unset=("LANG", "LC_ALL", "LC_CTYPE")),
    "variables of a .pth line": program(
        "import os\nprint(os.environ.get('FROM_PTH'), os.environ.get('PYTHONPATH'), "
        "os.environ.get('REMOVED_BY_PTH'))",
        environment={"REMOVED_BY_PTH": "1"},
        pth="import os; os.environ['FROM_PTH'] = '1'; os.environ['PYTHONPATH'] = '/first' + "
            "(':' + os.environ['PYTHONPATH'] if 'PYTHONPATH' in os.environ else ''); "
            "os.environ.pop('REMOVED_BY_PTH', None)"),
    "a .pth line that prints": program(
        "print('main')", pth="import sys; print('out'); print('err', file=sys.stderr)"),
    "own sitecustomize": (
        {"program.py": "import os, sys\nprint(os.environ.get('SITE_RAN'), "
                       "sys.modules['sitecustomize'].VALUE)\n", "lib/sitecustomize.py": REAL_SITE},
        ["program.py"], {"path": "lib"}),
    "broken sitecustomize": (
        {"program.py": "import sys\nprint('sitecustomize' in sys.modules)\n",
         "lib/sitecustomize.py": BROKEN_SITE}, ["program.py"], {"path": "lib"}),
    "no sitecustomize": program("import sys\nprint('sitecustomize' in sys.modules)"),
    "own usercustomize": (
        {"program.py": "import os\nprint(os.environ.get('SITE_RAN'))\n",
         "lib/usercustomize.py": REAL_SITE}, ["program.py"], {"path": "lib"}),
    "no folder of the program": program(
        "import sys\nprint(sys.path[:1])", environment={"PYTHONSAFEPATH": "1"}),
    "breakpoint of time": program(
        "import time\nprint(time.process_time() < 30, time.perf_counter() > 0, time.tzname)"),
}

# What is refused starts cold in a process of its own: these would notice another one.
REFUSED = ("arguments", "path", "environment", "environment of C", "descriptors", "session",
           "command line", "process control", "mark", "streams", "standard input", "signals",
           "death by a signal", "uncaught exception", "module", "variables of a .pth line")

# Each line is drawn by every process for itself.
DRAWN = 7
DRAWS = ("import multiprocessing, os, random, secrets, tempfile, uuid\n"
         "print(*(random.random(), uuid.uuid4(), uuid.uuid1(), secrets.token_hex(8), "
         "multiprocessing.current_process().authkey.hex(), tempfile.mktemp(), "
         "os.urandom(8).hex()), "
         "sep='\\n')\n")
