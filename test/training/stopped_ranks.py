"""Started by a launcher: trains, and Ctrl-C reaches the second of two processes alone, in its second step."""

import os
import signal
import sys

from groot_ros.cli.finetune import main
from groot_ros.training.trainer import FinetuneTrainer

RANK = int(os.environ["RANK"])
after_step = FinetuneTrainer.after_step


def interrupted(self: FinetuneTrainer) -> None:
    """Do what is due after a step, and press the key."""
    after_step(self)
    print(f"rank {RANK} has done step {self.state.global_step}", flush=True)
    if RANK == 1 and self.state.global_step == 2:
        os.kill(os.getpid(), signal.SIGINT)


FinetuneTrainer.after_step = interrupted

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
