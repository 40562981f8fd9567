# The part of a template that runs in Python (docs/RECOVERY.md). ddprun carries this file and puts
# it in front of PYTHONPATH as an archive in memory. CPython imports it before it opens the
# program: the template imports modules here and stays; each process forked from it returns from
# here as a worker, and the interpreter itself runs the program. Behind modules_of.py and
# imports.py, in one file.
import os
import sys


PRINTED_MAX = 65536
SENTENCE_MAX = 400
DESCRIPTORS_MAX = 64
HIDES = "%s would be imported instead of the module %s"
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
PR_SET_PTRACER = 0x59616D61


def restore_path(variables, ours, path_was_set):
    """PYTHONPATH as the worker gets it."""
    if "PYTHONPATH" not in variables:
        return
    rest = variables["PYTHONPATH"].split(":")
    if ours in rest:
        rest.remove(ours)
    if rest or path_was_set:
        variables["PYTHONPATH"] = ":".join(rest)
    else:
        del variables["PYTHONPATH"]


def started_with(ours, path_was_set):
    """The variables that the worker would have been started with, as far as all ranks share them:
    os.environ has also what the interpreter and the lines of .pth files have set since."""
    with open("/proc/self/environ", "rb") as block:
        entries = [os.fsdecode(entry).partition("=") for entry in block.read().split(b"\0")]
    variables = {name: value for name, _, value in entries if name and not is_late(name)}
    restore_path(variables, ours, path_was_set)
    return variables


def undo_injection(archive, ours, path_was_set):
    """As if ddprun had not touched PYTHONPATH: what the program starts must not load this file."""
    restore_path(os.environ, ours, path_was_set)
    sys.path[:] = [entry for entry in sys.path if entry != ours]
    sys.path_importer_cache.pop(ours, None)
    directory_cache = getattr(sys.modules.get("zipimport"), "_zip_directory_cache", {})
    directory_cache.pop(ours, None)
    os.close(archive)


def run_real_sitecustomize():
    """The user's own, if there is one. Returns how the import of this file has to end: an
    exception, which site handles as it handles that of the real one, or None."""
    sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401: not this file, which is out of sys.path by now
    except BaseException as error:
        return error
    return None


def program_folder():
    """What the interpreter will put in front of sys.path, or None."""
    if os.environ.get("PYTHONSAFEPATH"):
        return None
    with open("/proc/self/cmdline", "rb") as words:
        program = os.fsdecode(words.read().split(b"\0")[2])
    if program == "-m":
        return os.getcwd()
    if os.path.isdir(program):
        return os.path.abspath(program)
    with open(program, "rb") as file:
        if file.read(2) == b"PK":
            raise Refused("the program is an archive")
    return os.path.dirname(os.path.realpath(program))


def state_of(path):
    """Of the file; where there is none, as inside an archive, of the nearest above it that is."""
    try:
        facts = os.stat(path)
    except (OSError, ValueError):
        above = os.path.dirname(path)
        return "-" if above == path else state_of(above)
    return "%d %d %d" % (facts.st_mtime_ns, facts.st_size, facts.st_ino)


def modules_in(folder):
    """The paths of what could be imported there: [(name of the module, path)]."""
    try:
        with os.scandir(folder) as entries:
            found = [(entry.name.partition("."), entry.path) for entry in entries]
    except OSError:
        return []  # it is none, or cannot be searched
    return [(stem, path) for (stem, _, suffix), path in found
            if suffix in ("py", "pyc") or suffix.endswith("so")
            or suffix == "" and os.path.exists(os.path.join(path, "__init__.py"))]


class Places:
    """The folders of sys.path in front of those in which modules were found: what appears there
    later hides them."""

    def __init__(self, names):
        path = [entry.rstrip("/") for entry in sys.path]
        self.places = {}  # of each module: how many entries of sys.path are in front of its own
        for name in names:
            spec = getattr(sys.modules.get(name), "__spec__", None)
            origin = getattr(spec, "origin", None)
            if not isinstance(origin, str) or not origin.startswith("/"):
                continue
            place = os.path.dirname(origin)
            if spec.submodule_search_locations is not None:
                place = os.path.dirname(place)
            self.places[name] = path.index(place) if place in path else len(path)
        last = max(self.places.values(), default=0)
        self.states = [(entry, state_of(entry), set(self.hidden(entry, index)))
                       for index, entry in enumerate(path[:last])]

    def hidden(self, entry, index):
        return [(path, name) for name, path in modules_in(entry)
                if self.places.get(name, -1) > index]

    def check(self):
        for index, (entry, state, before) in enumerate(self.states):
            if state_of(entry) == state:
                continue
            if os.path.isfile(entry):
                raise Refused("%s has changed since modules behind it were imported" % entry)
            for path, name in self.hidden(entry, index):
                if (path, name) not in before:
                    raise Refused(HIDES % (path, name))


class Imported:
    """The modules that were imported here and their files."""

    def __init__(self, before, folder):
        self.folder = folder
        self.names = {name.partition(".")[0] for name in sys.modules if name not in before}
        self.places = Places(self.names)
        files = set()
        for name, module in list(sys.modules.items()):
            path = getattr(getattr(module, "__spec__", None), "origin", None)
            if name in before or not isinstance(path, str) or not path.startswith("/"):
                continue
            if folder is not None and os.path.dirname(path) == folder:
                raise Refused("%s lies in the folder of the program" % path)
            files.add(path)
        self.files = "\0".join(sorted(files))  # one object: each that is looked at is copied
        self.states = self.states_now()

    def states_now(self):
        return "\n".join([state_of(path) for path in self.files.split("\0")])

    def check(self):
        """That a new process would import the same."""
        states = self.states_now()
        if states != self.states:
            pairs = zip(states.split("\n"), self.states.split("\n"), self.files.split("\0"))
            raise Refused("%s has changed since it was imported" % next(
                path for now, then, path in pairs if now != then))
        self.places.check()
        for name, path in [] if self.folder is None else modules_in(self.folder):
            if name in self.names:
                raise Refused(HIDES % (path, name))


def received_descriptors(ancillary):
    import array
    numbers = array.array("i")
    for _, _, data in ancillary:
        numbers.frombytes(data[: len(data) - len(data) % numbers.itemsize])
    return list(numbers)


def receive(link):
    """A message and its descriptors. When ddprun has closed the link, or ended, so does this."""
    import _socket
    space = _socket.CMSG_SPACE(4 * DESCRIPTORS_MAX)
    data, ancillary, _, _ = link.recvmsg(64, space, _socket.MSG_CMSG_CLOEXEC)
    if not data:
        os._exit(0)
    return data, received_descriptors(ancillary)


def printed_to(descriptor):
    """What the modules printed; every rank prints it, as if it had imported them."""
    text = os.pread(descriptor, PRINTED_MAX + 1, 0)
    if len(text) > PRINTED_MAX:
        raise Refused("imported modules print more than %d bytes" % PRINTED_MAX)
    return text


def move(pipe, file):
    """What was printed before this file was imported."""
    if pipe < 0:
        return
    os.set_blocking(pipe, False)
    try:
        while text := os.read(pipe, PRINTED_MAX):
            os.write(file, text)
    except BlockingIOError:
        pass
    os.close(pipe)


class Template:
    def __init__(self, link, agent):
        self.modules_before = set(sys.modules)
        import ctypes
        self.link = link
        self.agent = agent
        self.libc = ctypes.CDLL(None)
        self.mark = os.environb.get(b"DDPRUN_WORKER", b"")

    def prepare(self, names, outputs, learned_from, variables):
        for descriptor, (output, early) in zip((1, 2), outputs):
            move(early, output)
            os.dup2(output, descriptor)
            os.close(output)
        self.libc.prctl(PR_SET_CHILD_SUBREAPER, 1)  # a daemon of a module becomes a child, too
        folder = program_folder()
        learns = learned_from[0] >= 0
        if learns:
            names = learn(*learned_from, names, folder)
        with Importer(variables) as importer:
            self.ending = run_real_sitecustomize()
            importer.begin()
            if learns:
                importer.learned(names)
            else:
                importer.given(names)
        self.change = importer.change()
        self.printed = [printed_to(descriptor) for descriptor in (1, 2)]
        self.imported = Imported(self.modules_before, folder)
        self.imported.check()
        self.libc.prctl(PR_SET_CHILD_SUBREAPER, 0)

    def serve(self):
        """Forks workers ahead, until ddprun closes the link. Returns only in a worker."""
        while True:
            order, links = receive(self.link)
            if order == b"check":
                try:
                    self.imported.check()
                    self.link.send(b"same")
                except Refused as why:
                    self.link.send(b"changed " + sentence(why))
                continue
            middle = os.fork()
            if middle == 0:
                return self.fork_workers(links, order == b"park")
            os.waitpid(middle, 0)
            for descriptor in links:
                os.close(descriptor)

    def fork_workers(self, links, ahead):
        """The process between, whose end makes workers children of the agent. By fork(), because
        libraries have handlers for that (pthread_atfork)."""
        middle = os.getpid()
        for own in links:
            if os.fork() == 0:
                self.park(middle, own, links, ahead)
                return
        os._exit(0)

    def park(self, middle, own, links, ahead):
        import _socket
        import time
        while os.getppid() == middle:
            time.sleep(0.0002)
        os.setsid()
        self.libc.prctl(PR_SET_PDEATHSIG, 9)
        if os.getppid() != self.agent:  # it has ended before the call above
            os._exit(0)
        self.libc.prctl(PR_SET_PTRACER, self.agent)
        self.link.close()
        for descriptor in links:
            if descriptor != own:
                os.close(descriptor)
        link = _socket.socket(fileno=own)
        renew()
        self.find_mark()
        if ahead:
            self.rehearse()
        link.send(b"parked %d" % os.getpid())
        _, (out, err, environment) = receive(link)
        entries = os.pread(environment, os.fstat(environment).st_size, 0).split(b"\0")
        os.close(environment)
        self.become(out, err, entries)
        link.send(b"ready")
        receive(link)
        link.close()
        for descriptor, text in zip((1, 2), self.printed):
            try:
                while text:
                    text = text[os.write(descriptor, text):]
            except OSError:
                pass  # what a module prints while it is imported stops no program

    def rehearse(self):
        """What become() writes to is shared with the template until the first time: a restart need
        not wait for the copies."""
        entries = [b"=".join(pair) for pair in os.environb.items()]
        self.become(os.dup(1), os.dup(2), [b"DDPRUN_WORKER=" + self.mark, *entries])

    def become(self, out, err, entries):
        for descriptor, output in zip((1, 2), (out, err)):
            os.dup2(output, descriptor)
            os.close(output)
        os.environ.clear()
        for entry in entries:
            name, _, value = entry.partition(b"=")
            os.environb[name] = value
        self.write_mark(os.environb.get(b"DDPRUN_WORKER", b""))
        for name, value in self.change.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    def find_mark(self):
        """In what /proc shows as the environment, by which ddprun finds what a worker started."""
        import ctypes
        with open("/proc/self/stat", "rb") as stat:
            fields = stat.read().rpartition(b")")[2].split()
        start, end = int(fields[47]), int(fields[48])
        old = b"DDPRUN_WORKER=" + self.mark + b"\0"
        place = ctypes.string_at(start, end - start).find(old)
        self.mark_at = start + place if place >= 0 else None
        self.mark_room = len(old)

    def write_mark(self, mark):
        import ctypes
        new = b"DDPRUN_WORKER=" + mark + b"\0"
        if self.mark_at is not None and len(new) <= self.mark_room:
            ctypes.memmove(self.mark_at, new.ljust(self.mark_room, b"\0"), self.mark_room)


def renew():
    """What a process draws or reads once when it starts."""
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.default_generator.seed()
    threading = sys.modules.get("threading")
    if threading is not None and hasattr(threading.main_thread(), "_set_native_id"):
        threading.main_thread()._set_native_id()
    process = sys.modules.get("multiprocessing.process")
    if process is not None:
        key = process.AuthenticationString(os.urandom(32))
        process.current_process()._config["authkey"] = key


def sentence(error):
    return str(error).replace("\n", " ").encode("utf-8", "replace")[:SENTENCE_MAX]


def accept(order):
    """The link to ddprun, and what prepare() takes."""
    (link, archive, out, err, agent, memory, maps, early_out, early_err, path_was_set,
     names) = order.split(";")
    ours = "/proc/self/fd/" + archive
    variables = started_with(ours, path_was_set == "1")
    undo_injection(int(archive), ours, path_was_set == "1")
    import _socket
    os.set_inheritable(int(link), False)
    return (_socket.socket(fileno=int(link)), int(agent),
            [name for name in names.split(",") if name],
            ((int(out), int(early_out)), (int(err), int(early_err))), (int(memory), int(maps)),
            variables)


def run():
    try:
        link, agent, *inputs = accept(os.environ.pop("DDPRUN_TEMPLATE"))
        if agent == 0:  # with `-c pass` instead of the program
            link.send(b"able %d" % os.getpid())
            os._exit(0)
        link.send(b"hello %d" % os.getpid())
    except BaseException:
        os._exit(1)  # never on to the program: this is no worker
    try:
        template = Template(link, agent)
        template.prepare(*inputs)
        link.send(b"ready %d" % (len(sys.modules) - len(template.modules_before)))
        template.serve()
    except Refused as why:
        link.send(b"refused " + sentence(why))
        os._exit(1)
    except Gone as why:
        link.send(b"gone " + sentence(why))
        os._exit(1)
    except Spoilt as found:
        link.send(b"spoilt %s " % found.args[0].encode() + sentence(found.args[1]))
        os._exit(1)
    except BaseException as error:
        try:
            link.send(b"refused " + sentence("%s: %s" % (type(error).__name__, error)))
        finally:
            os._exit(1)
    if template.ending is not None:
        raise template.ending


run()
