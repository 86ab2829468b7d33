"""Images that are shaped side by side: the order stays, a failure is heard, and a process that was forked goes on."""

from __future__ import annotations

import multiprocessing
import threading

import pytest
import torch

from groot_ros.processing.threads import in_parallel


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_results_come_in_the_order_of_the_items_and_work_goes_on_at_the_same_time(two_threads):
    together = threading.Barrier(2, timeout=20)

    def work(item: int) -> int:
        together.wait()  # nobody passes alone
        return 10 * item

    assert in_parallel(work, [3, 1]) == [30, 10]


def test_what_one_item_raises_is_raised(two_threads):
    with pytest.raises(ZeroDivisionError):
        in_parallel(lambda item: 1 / item, [1, 0, 2])


def test_with_one_thread_everything_happens_here():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        assert in_parallel(lambda _item: threading.current_thread(), [1, 2]) == [threading.current_thread()] * 2
    finally:
        torch.set_num_threads(before)


def in_a_child(answers) -> None:
    answers.put(in_parallel(lambda item: item + 1, [1, 2, 3]))


def test_a_forked_process_makes_threads_of_its_own(two_threads):
    in_parallel(lambda item: item, [1, 2])
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=in_a_child, args=(answers,))
    child.start()
    try:
        assert answers.get(timeout=30) == [2, 3, 4]
    finally:
        child.join(10)
