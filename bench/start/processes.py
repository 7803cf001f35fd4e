"""Processes that are timed together with those that they start, each in a process group of its own."""
import ctypes
import os
import signal
import subprocess
import tempfile
import threading
import time

SET_CHILD_SUBREAPER = 36  # prctl(2)


class Failed(Exception):
    """A process ended with an error; the text says how."""


def adopt_orphans():
    """Processes whose parent has ended become children of this one, so that their processor time can be read."""
    ctypes.CDLL(None, use_errno=True).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_group(group):
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass


def rest_of(group):
    """Processor seconds of the group's processes that are left, once they have ended."""
    seconds = 0.0
    while True:
        try:
            _, _, usage = os.wait4(-group, 0)
        except ChildProcessError:
            return seconds
        seconds += usage.ru_utime + usage.ru_stime


def timed(command, environment=None, limit_s=600, until_rest=False):
    """Wall milliseconds of the process, processor milliseconds of its group, and what it printed. What it leaves running is killed when it
    has ended, or waited for with `until_rest`; `limit_s` ends all of it."""
    command = [str(c) for c in command]
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        begin = time.perf_counter()
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, start_new_session=True,
                                 env=dict(os.environ, **(environment or {})))
        late = threading.Timer(limit_s, end_group, [child.pid])
        late.start()
        try:
            _, status, usage = os.wait4(child.pid, 0)
            ms = (time.perf_counter() - begin) * 1e3
            child.returncode = os.waitstatus_to_exitcode(status)
            if not until_rest:
                end_group(child.pid)
            processor = usage.ru_utime + usage.ru_stime + rest_of(child.pid)
        except BaseException:
            end_group(child.pid)
            raise
        finally:
            late.cancel()
        output.seek(0)
        errors.seek(0)
        text, problem = output.read().decode(errors='replace'), errors.read().decode(errors='replace').strip()
    if child.returncode != 0:
        how = f'was ended after {limit_s} s' if ms >= limit_s * 1e3 else f'ended with {child.returncode}'
        raise Failed(f"{os.path.basename(command[0])} {how}: {' '.join(problem.splitlines()[-2:])[:300]}")
    return {'ms': ms, 'processor_ms': processor * 1e3}, text
