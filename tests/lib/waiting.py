"""How tests wait: for what comes, with patience; and for what a promise says comes in time.

    wait_for(lambda: server.sql("...") == "1")       # gives the first true value; only a fault reaches the deadline
    in_time(5, lambda: seconds_until(condition))     # a figure of a promise
"""
import time

PATIENCE_SECONDS = 90


def wait_for(what, seconds=PATIENCE_SECONDS, said=None):
    """The first true value of what()."""
    deadline = time.monotonic() + seconds
    while True:
        value = what()
        if value:
            return value
        if time.monotonic() > deadline:
            told = said() if callable(said) else said or what.__doc__ or "it did not come true"
            raise AssertionError(f"not within {seconds} s: {told}")
        time.sleep(0.02)


def seconds_until(what):
    """How long it took until what() was true."""
    begun = time.monotonic()
    wait_for(what)
    return time.monotonic() - begun


def in_time(seconds, attempt, tries=3):
    """attempt() does the thing anew and gives the seconds that it took; what is promised holds for one of a few tries.

    It must come true each time. A machine that stands still for a moment is late once; what is slow is late each time.
    """
    took = []
    while len(took) < tries:
        took.append(attempt())
        if took[-1] <= seconds:
            return
    raise AssertionError(f"promised within {seconds} s, took {', '.join(f'{one:.1f}' for one in took)} s")
