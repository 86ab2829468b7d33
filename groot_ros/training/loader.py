"""Batches in time: workers make them, a thread moves and finishes the next one while the device computes."""

from __future__ import annotations

import multiprocessing
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing.context import BaseContext
from typing import Any

import cv2
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from groot_ros.errors import TrainingError
from groot_ros.training.batches import FAILURE, Batch, BatchMaker
from groot_ros.training.device import DevicePreparation
from groot_ros.training.order import BatchNumbers, SampleOrder

PREFETCHED_BATCHES = 2
WORKER_LOST = "DataLoader worker"  # how torch begins its message
_END = object()


class BatchLoader:
    """The batches of a training, from any batch on.

    Args:
        maker: Makes them.
        order: Which samples.
        end: Number of the batch after the last one.
        device: Where batches are wanted.
        workers: Processes that make batches; 0 makes them in the thread.
        first: Says with which batch an iteration begins.
        waited: Is told how many seconds the consumer waited for a batch.

    """

    def __init__(
        self,
        maker: BatchMaker,
        order: SampleOrder,
        *,
        end: int,
        device: torch.device,
        workers: int,
        first: Callable[[], int] = lambda: 0,
        waited: Callable[[float], None] = lambda _seconds: None,
    ) -> None:
        self.dataset = maker
        self._first = first
        self._waited = waited
        self._order = order
        self._end = end
        self._device = device
        self._workers = workers
        self._preparation = DevicePreparation(maker.processor.geometry, maker.processor.patches)
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None  # type: ignore[no-untyped-call]

    def __len__(self) -> int:
        """Return the number of batches of the whole training."""
        return self._end

    def __iter__(self) -> Iterator[Batch]:
        """Iterate over the batches on the device.

        Raises:
            TrainingError: A batch cannot be made, or a worker was killed.

        """
        ready: queue.Queue[Any] = queue.Queue(maxsize=1)
        stop = threading.Event()
        producer = threading.Thread(target=self._produce, args=(ready, stop), name="next-batch", daemon=True)
        producer.start()
        try:
            while True:
                asked = time.perf_counter()
                batch = ready.get()
                self._waited(time.perf_counter() - asked)
                if batch is _END:
                    return
                if isinstance(batch, BaseException):
                    raise batch
                yield self._handed_over(batch)
        finally:
            stop.set()
            producer.join()

    def _produce(self, ready: queue.Queue[Any], stop: threading.Event) -> None:
        def put(item: object) -> bool:
            while not stop.is_set():
                try:
                    ready.put(item, timeout=0.1)
                except queue.Full:
                    continue
                return True
            return False

        try:
            for batch in self._made():
                if not put(self._finished(batch)):
                    return
            put(_END)
        except BaseException as error:  # noqa: BLE001 - the consumer raises it
            put(error)

    def _made(self) -> Iterator[Batch]:
        try:
            yield from self._loader()
        except (ConnectionError, EOFError, FileNotFoundError) as error:
            if "Caught" in str(error):  # what a worker itself raised
                raise
            # A worker that dies while it hands a batch over is only seen by the broken connection.
            msg = f"{WORKER_LOST} died while it handed over a batch"
            raise RuntimeError(msg) from error

    def _loader(self) -> DataLoader[Batch]:
        return DataLoader(
            self.dataset,
            batch_sampler=BatchNumbers(self._order, self._first(), self._end),
            collate_fn=_as_made,
            num_workers=self._workers,
            pin_memory=self._device.type == "cuda",
            prefetch_factor=PREFETCHED_BATCHES if self._workers else None,
            worker_init_fn=_begin_worker,
            multiprocessing_context=_fresh_processes() if self._workers else None,
            # The seed of the workers is taken from here and not from the generator that dropout uses.
            generator=torch.Generator(),
        )

    def _finished(self, batch: Batch) -> Batch:
        if FAILURE in batch:
            raise TrainingError(batch[FAILURE])
        with torch.no_grad():
            if self._stream is None:
                return self._prepared(batch)
            with torch.cuda.stream(self._stream):
                prepared = self._prepared(_moved(batch, self._device))
                self._stream.synchronize()
                return prepared

    def _prepared(self, batch: Batch) -> Batch:
        rest = {key: value for key, value in batch.items() if key not in ("images", "crop_boxes")}
        return {**rest, "pixel_values": self._preparation.pixel_values(batch["images"], batch.get("crop_boxes"))}

    def _handed_over(self, batch: Batch) -> Batch:
        """Tell the allocator that the computing stream uses what the other stream has made."""
        if self._stream is not None:
            computing = torch.cuda.current_stream(self._device)
            for value in batch.values():
                value.record_stream(computing)
        return batch


def _as_made(batch: Any) -> Batch:  # noqa: ANN401 - torch's type of it is a list
    made: Batch = batch
    return made


def _fresh_processes() -> BaseContext:
    """Workers begin without this process's threads: a plain fork copies their locks, but not who would open them."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([BatchMaker.__module__])
    return context


def _begin_worker(_worker: int) -> None:
    cv2.setNumThreads(1)
    torch.set_num_threads(1)
    threading.Thread(target=_end_with_the_training, daemon=True).start()


def _end_with_the_training() -> None:
    """A training that is killed takes its workers with it: nobody else tells them, and they would wait for ever."""
    training = multiprocessing.parent_process()
    if training is not None:
        training.join()
        os._exit(1)


def _moved(batch: Batch, device: torch.device) -> Batch:
    def move(value: Tensor | tuple[Tensor, ...]) -> Tensor | tuple[Tensor, ...]:
        if isinstance(value, tuple):
            return tuple(camera.to(device, non_blocking=True) for camera in value)
        return value.to(device, non_blocking=True)

    return {key: value if key == "crop_boxes" else move(value) for key, value in batch.items()}
