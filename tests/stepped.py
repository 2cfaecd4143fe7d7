"""Long work taken a report at a time, as a test that stops it in the middle needs it."""

import threading

from napari_mamamia.core.progress import Cancelled, listening


class Stepped:
    """Iterate over the reports of ``function(*args, **named)``, which goes on only when asked.

    The work runs in a thread that waits at each report. `close` cancels it there and waits for its
    end; what it returns is `result` after the last step. What it raises comes from `next`.
    """

    def __init__(self, function, *args, **named):
        self._work = lambda: function(*args, **named)
        self._go = threading.Semaphore(0)
        self._came = threading.Semaphore(0)
        self._thread = None
        self._step = self._error = self.result = None
        self._is_stopped = self._is_over = False

    def __iter__(self):
        return self

    def __next__(self):
        if self._is_over:
            raise StopIteration
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()
        else:
            self._go.release()
        self._came.acquire()
        if not self._is_over:
            return self._step
        self._thread.join()
        if self._error is not None:
            raise self._error
        raise StopIteration(self.result)

    def __call__(self):
        """Go on to the end; return the result."""
        for _ in self:
            pass
        return self.result

    def close(self):
        """Cancel the work where it stands, if it was begun and is not over."""
        self._is_stopped = True
        if self._thread is None or self._is_over:
            self._is_over = True
            return
        self._go.release()
        self._came.acquire()
        self._thread.join()
        if self._error is not None and not isinstance(self._error, Cancelled):
            raise self._error

    def _run(self):
        try:
            with listening(self._wait):
                self.result = self._work()
        except BaseException as error:  # noqa: BLE001 - raised by `next`
            self._error = error
        finally:
            self._is_over = True
            self._came.release()

    def _wait(self, step):
        if self._is_stopped:
            raise Cancelled
        self._step = step
        self._came.release()
        self._go.acquire()
        if self._is_stopped:
            raise Cancelled
