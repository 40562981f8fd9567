# What a worker runs with --run-path, in front of the script and its arguments. No dollar sign may
# stand here: arguments of workers have macros.
import runpy
import sys


def leave_error_file(error):
    """As torch's @record does, without importing torch. A file that the script has left stays."""
    import json
    import os
    import time
    import traceback

    path = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if not path or os.path.exists(path):
        return
    extra = {"py_callstack": traceback.format_exc(), "timestamp": str(int(time.time()))}
    message = {"message": f"{type(error).__name__}: {error}", "extraInfo": extra}
    try:
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"message": message}, file)
    except OSError as why:
        print(f"cannot write {path}: {why.strerror}", file=sys.stderr)


def run():
    sys.argv = sys.argv[1:]
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except Exception as error:
        leave_error_file(error)
        raise


run()
