"""An instruction to the token ids that the network reads, images included."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from groot_ros.errors import ObservationError, ProcessingError
from groot_ros.processing.chat_template import IMAGE_TOKEN, ChatTemplate
from groot_ros.processing.tokenizer import load_tokenizer, special_token, token_id

REMEMBERED_PROMPTS = 64


def formalize(instruction: str) -> str:
    """The words as GR00T N1.7 was trained on them: lower case, without anything but letters, digits, _ and spaces."""
    return re.sub(r"[^\w\s]", "", instruction.lower())


class PromptEncoder:
    """Prompts of one checkpoint, by the tokenizer and chat template in the backbone's folder.

    Args:
        directory: The backbone's folder.
        formalize_language: Whether instructions are formalised first, as ``processor_config.json`` says.

    """

    def __init__(self, directory: Path, *, formalize_language: bool) -> None:
        self.formalize_language = formalize_language
        self._tokenizer = load_tokenizer(directory)
        self._template = ChatTemplate(directory)
        self.image_token_id = token_id(self._tokenizer, IMAGE_TOKEN, directory)
        self.pad_token_id = token_id(self._tokenizer, special_token(directory, "pad_token"), directory)
        self._control_tokens = sorted(token.content for token in self._tokenizer.get_added_tokens_decoder().values())
        self._turn_ids = lru_cache(maxsize=REMEMBERED_PROMPTS)(self._tokenize_turn)

        self._directory = directory

    def __reduce__(self) -> tuple[Callable[[], PromptEncoder], tuple[()]]:
        """Travel to another process as what it was made of; remembered prompts stay behind."""
        return partial(PromptEncoder, self._directory, formalize_language=self.formalize_language), ()

    def text(self, instruction: str) -> str:
        """The words that stand in the prompt."""
        return formalize(instruction) if self.formalize_language else instruction

    def chat_text(self, instruction: str, images: int) -> str:
        """The whole user turn, one placeholder per image."""
        return self._template.render(self.text(instruction), images)

    def refuse_control_tokens(self, instruction: str) -> None:
        """Let no words through that the tokenizer would read as control tokens.

        Raises:
            ObservationError: The instruction holds a control token.

        """
        text = self.text(instruction)
        found = [token for token in self._control_tokens if token in text]
        if found:
            msg = (
                f"instruction {instruction!r}: {', '.join(found)} would be read as a control token of the language "
                "model, not as words; write the task without it"
            )
            raise ObservationError(msg)

    def token_ids(self, instruction: str, tokens_per_image: Sequence[int]) -> NDArray[np.int64]:
        """Ids of one prompt, each image's placeholder repeated for the tokens that the image takes.

        Args:
            instruction: The task in words.
            tokens_per_image: Tokens of every image, in the order of the images.

        Raises:
            ProcessingError: The instruction itself holds image placeholders.

        """
        ids = self._turn_ids(instruction, len(tokens_per_image))
        repeats = np.ones(len(ids), dtype=np.int64)
        placeholders = np.flatnonzero(ids == self.image_token_id)
        if len(placeholders) != len(tokens_per_image):
            msg = (
                f"instruction {instruction!r}: the prompt has {len(placeholders)} image placeholders for "
                f"{len(tokens_per_image)} images; write the task without {IMAGE_TOKEN}"
            )
            raise ProcessingError(msg)
        repeats[placeholders] = tokens_per_image
        return np.repeat(ids, repeats)

    def pad_left(self, prompts: Sequence[NDArray[np.int64]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """``input_ids`` and ``attention_mask`` ``(B, L)`` of prompts of any lengths, padding before the words."""
        length = max(len(prompt) for prompt in prompts)
        input_ids = np.full((len(prompts), length), self.pad_token_id, dtype=np.int64)
        attention_mask = np.zeros((len(prompts), length), dtype=np.int64)
        for row, prompt in enumerate(prompts):
            input_ids[row, length - len(prompt) :] = prompt
            attention_mask[row, length - len(prompt) :] = 1
        return input_ids, attention_mask

    def _tokenize_turn(self, instruction: str, images: int) -> NDArray[np.int64]:
        ids = np.array(self._tokenizer.encode(self.chat_text(instruction, images)).ids, dtype=np.int64)
        ids.flags.writeable = False
        return ids
