"""The exceptions of the package: each carries one plain sentence for the person at the robot."""


class GrootError(Exception):
    """Base of every error that a user can mend.

    The message says what, where, what was found, what is allowed and how to mend it. Command-line tools print it
    without a traceback; nodes log it once and put it into ``/diagnostics``.
    """


class CheckpointError(GrootError):
    """A checkpoint directory is missing, damaged, of another version, or does not fit what is asked of it."""


class ContractError(GrootError):
    """The robot contract is wrong, or does not fit the checkpoint or the robot."""


class MessageError(GrootError):
    """A ROS message cannot be turned into arrays: wrong encoding, truncated, non-finite, or with missing joints."""


class ObservationError(GrootError):
    """An observation does not fit what the policy was trained on."""


class ProcessingError(GrootError):
    """Model inputs cannot be made from an observation, or actions cannot be decoded."""


class ModelError(GrootError):
    """The network cannot be built or run as asked."""


class DeviceError(GrootError):
    """The device that was asked for is not there."""


class MotionError(GrootError):
    """A chunk must not be executed: expired, beyond a limit, or for a plan that was reset."""


class DatasetError(GrootError):
    """A dataset or bag is missing, damaged, or does not fit the contract."""


class RecordingError(GrootError):
    """An episode cannot be recorded, or a broken one not be recovered."""


class TrainingError(GrootError):
    """Fine-tuning cannot start or go on."""


class EvaluationError(GrootError):
    """A replay or its report cannot be made."""


class ParityError(GrootError):
    """Parity artifacts are missing or do not belong to the checkpoint."""
