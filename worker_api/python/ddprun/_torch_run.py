"""torch.distributed.run by ddprun: run(args) with the Namespace that torch's own parser makes, and
main(). What fails is a ChildFailedError with the first failure, as of torchrun."""

import os
import sys

from ddprun import _program


def take_place(module):
    """run() and main() of torch.distributed.run."""
    parser_of = module.get_args_parser

    def run(args):
        words = words_of(parser_of(), args)
        name = str(args.training_script)
        log_dir = getattr(args, "log_dir", None)
        _program.run(words, log_dir, lambda ended: _raise_failure(ended, name))

    def main(args=None):
        if args is None:
            command_line()
        run(module.parse_args(args))

    module.run = run
    module.main = main


def command_line():
    """This process becomes ddprun, with the command line of torchrun."""
    path = _program.program()
    if path is None:
        sys.exit("ddprun: error [EXEC] DDPRUN_TORCH is set, and the program ddprun is not "
                 "installed with its module, and not on PATH")
    os.environ.setdefault("PYTHON_EXEC", sys.executable)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(path, ["torchrun"] + sys.argv[1:])


def words_of(parser, args):
    """The command line that gives this Namespace. What torch finds in PET_* ddprun finds, too."""
    words = []
    for action in parser._actions:
        option = next((one for one in action.option_strings if one.startswith("--")), None)
        value = getattr(args, action.dest, action.default)
        if option is None or action.dest == "help" or value == action.default or value is None:
            continue
        if action.nargs == 0:
            if value:
                words.append(option)
            continue
        if isinstance(value, (list, tuple)):
            value = ",".join(map(str, value))
        words.append(f"{option}={value}")
    return words + [str(args.training_script)] + [str(one) for one in args.training_script_args]


def _raise_failure(ended, name):
    if ended.code == 0:
        return
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
    first = ended.failure
    if first is None and ended.signal:
        raise SignalException(f"Process {os.getpid()} got signal: {ended.signal}", ended.signal)
    if first is None:
        sys.exit(ended.code)  # ddprun has said why
    files = sorted(ended.files.glob(f"attempt_*/{first['local_rank']}/error.json"))
    error_file = str(files[-1]) if files else "<N/A>"
    code = -first["signal"] if first["signal"] else first["exit_code"]
    failure = ProcessFailure(first["local_rank"], first["pid"], code, error_file)
    failure.timestamp = first["when_ms"] // 1000
    if not files and first["lines"]:
        failure.message = "\n".join(first["lines"])
    raise ChildFailedError(name=name, failures={first["rank"]: failure})
