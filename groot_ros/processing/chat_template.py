"""The backbone's chat template: one user turn with the images first and then the words."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

from jinja2 import Template, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from groot_ros.errors import CheckpointError
from groot_ros.processing.tokenizer import read_if_there

IMAGE_TOKEN = "<|image_pad|>"


class ChatTemplate:
    """Renders the turn that GR00T N1.7 was trained on, by the template in the backbone's folder.

    The template runs in Jinja's sandbox: it can put text together and nothing else.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._template = self._compile(_template_text(directory))

    def render(self, text: str, images: int) -> str:
        """The turn as text, with one image placeholder per image.

        Raises:
            CheckpointError: The template fails, or does not write every image once and the text as it is.

        """
        content: list[dict[str, str]] = [{"type": "image"}] * images + [{"type": "text", "text": text}]
        try:
            turn: str = self._template.render(
                messages=[{"role": "user", "content": content}],
                tools=None,
                documents=None,
                add_generation_prompt=False,
            )
        except TemplateError as error:
            msg = f"{self._directory}: the chat template fails ({error}); copy it again from the backbone's repository"
            raise CheckpointError(msg) from error
        written = turn.count(IMAGE_TOKEN) - text.count(IMAGE_TOKEN)
        if written != images or text not in turn:
            msg = (
                f"{self._directory}: the chat template wrote {written} placeholders {IMAGE_TOKEN} for {images} images, "
                f"the text {'unchanged' if text in turn else 'changed'}; it is not that of a Qwen3-VL backbone"
            )
            raise CheckpointError(msg)
        return turn

    def _compile(self, text: str) -> Template:
        # The options of transformers, for which these templates are written.
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"], autoescape=False
        )
        environment.globals["raise_exception"] = _raise_exception
        try:
            return environment.from_string(text)
        except TemplateError as error:
            msg = (
                f"{self._directory}: the chat template is damaged ({error}); copy it again from the backbone's "
                "repository"
            )
            raise CheckpointError(msg) from error


def _raise_exception(message: str) -> NoReturn:
    raise TemplateError(message)


def _template_text(directory: Path) -> str:
    plain = directory / "chat_template.jinja"
    if plain.is_file():
        return plain.read_text(encoding="utf-8")
    for name in ("chat_template.json", "tokenizer_config.json"):
        found = read_if_there(directory / name).get("chat_template")
        if isinstance(found, str):
            return found
    msg = (
        f"{directory}: holds no chat template; chat_template.jinja, chat_template.json or the key chat_template of "
        "tokenizer_config.json is needed, as in the backbone's repository"
    )
    raise CheckpointError(msg)
