"""Started by a launcher: trains with sharded weights (FSDP) on a CPU, where accelerate offers that on GPUs alone."""

import os
import sys

from accelerate.state import AcceleratorState
from accelerate.utils import DistributedType, FullyShardedDataParallelPlugin

from groot_ros.cli.finetune import main
from groot_ros.training.trainer import FinetuneTrainer

# What `accelerate launch --use_fsdp --fsdp_version 2` passes on.
os.environ.update(
    ACCELERATE_USE_FSDP="true",
    FSDP_VERSION=os.environ.get("FSDP_VERSION", "2"),
    FSDP_AUTO_WRAP_POLICY="TRANSFORMER_BASED_WRAP",
    FSDP_STATE_DICT_TYPE="FULL_STATE_DICT",
)
begin, training_step = AcceleratorState.__init__, FinetuneTrainer.training_step


def begin_sharded(self: AcceleratorState, *arguments: object, **options: object) -> None:
    """Shard where accelerate would only copy."""
    begin(self, *arguments, **options)
    if self.distributed_type is DistributedType.MULTI_CPU:
        self.distributed_type = DistributedType.FSDP
        self.fsdp_plugin = FullyShardedDataParallelPlugin()


def checked_step(self: FinetuneTrainer, *arguments: object, **options: object) -> object:
    """Train a step, if the weights are sharded at all."""
    kinds = {type(parameter).__name__ for parameter in self.model.parameters()}
    assert kinds == {"DTensor"}, kinds
    return training_step(self, *arguments, **options)


AcceleratorState.__init__ = begin_sharded
FinetuneTrainer.training_step = checked_step

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
