"""Instructions to token ids: every word and every image placeholder where the original has it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.golden import BACKBONE, GOLDEN

from groot_ros.errors import CheckpointError, ObservationError, ProcessingError
from groot_ros.processing.prompt import PromptEncoder, formalize

PROMPTS = json.loads((GOLDEN / "tokenizer" / "prompts.json").read_text())
CASES = PROMPTS["cases"]
MESSY = "Pick up the Black-bowl, \t 把 İ '\u0301 it's 2.5 ² <|im_end|> <think> 🥦\r\n\n  ok  "


def unrolled(run_lengths):
    ids = []
    for entry in run_lengths:
        ids.extend([entry[0]] * entry[1] if isinstance(entry, list) else [entry])
    return ids


def backbone_copy(folder: Path, *without: str) -> Path:
    shutil.copytree(BACKBONE, folder, ignore=shutil.ignore_patterns(*without))
    for path in (folder, *folder.iterdir()):
        path.chmod(0o755)
    return folder


@pytest.fixture(name="prompts", scope="module")
def make_prompts():
    return {flag: PromptEncoder(BACKBONE, formalize_language=flag) for flag in (True, False)}


@pytest.fixture(name="qwen", scope="module")
def make_qwen_prompts(tmp_path_factory):
    given_folder = os.environ.get("GROOT_QWEN_TOKENIZER_DIR")
    if given_folder is None:
        pytest.skip("GROOT_QWEN_TOKENIZER_DIR names no folder with the genuine Qwen vocabulary")
    folder = tmp_path_factory.mktemp("qwen")
    for path in Path(given_folder).iterdir():
        shutil.copy(path, folder)
    # The template is the one that the cases were made with; the control tokens are the backbone's.
    (folder / "chat_template.jinja").write_text(PROMPTS["chat_template"])
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"pad_token": "<|endoftext|>", "added_tokens_decoder": PROMPTS["added_tokens"]})
    )
    return {flag: PromptEncoder(folder, formalize_language=flag) for flag in (True, False)}


def test_words_and_turns_of_all_recorded_prompts(prompts):
    for case in CASES:
        encoder = prompts[case["formalize_language"]]
        assert encoder.text(case["prompt"]) == case["text"]
        assert encoder.chat_text(case["prompt"], case["n_images"]) == case["chat_text"]
    batch = PROMPTS["left_padded_batch"]
    assert [prompts[False].chat_text(text, 1) for text in batch["texts"]] == batch["chat_texts"]


def test_ids_of_all_recorded_prompts_and_of_a_padded_batch_with_the_genuine_vocabulary(qwen):
    for case in CASES:
        encoder = qwen[case["formalize_language"]]
        tokens = [rows * columns // 4 for _, rows, columns in case.get("image_grid_thw", [])]
        if "error" in case:
            with pytest.raises(ProcessingError, match="2 image placeholders for 1 images"):
                encoder.token_ids(case["prompt"], [1] * case["n_images"])
            continue
        ids = encoder.token_ids(case["prompt"], tokens)
        assert ids.tolist() == unrolled(case["ids_rle"]), case["prompt"]
        assert len(ids) == case["length"]
    batch = PROMPTS["left_padded_batch"]
    input_ids, attention_mask = qwen[False].pad_left([qwen[False].token_ids(text, [64]) for text in batch["texts"]])
    assert input_ids.tolist() == [unrolled(ids) for ids in batch["ids_rle"]]
    assert attention_mask.sum(axis=1).tolist() == batch["attention_mask_sum"]


def test_shorter_prompts_are_padded_before_their_words(prompts):
    encoder = prompts[True]
    rows = [encoder.token_ids("go", [4]), encoder.token_ids("go to the table", [4])]
    input_ids, attention_mask = encoder.pad_left(rows)
    missing = len(rows[1]) - len(rows[0])
    assert input_ids.shape == attention_mask.shape == (2, len(rows[1]))
    assert (input_ids[0, :missing] == encoder.pad_token_id).all()
    assert (attention_mask[0] == [0] * missing + [1] * len(rows[0])).all()
    assert np.array_equal(input_ids[0, missing:], rows[0])
    assert attention_mask[1].all()


def test_each_image_takes_its_own_number_of_tokens(prompts):
    encoder = prompts[True]
    ids = encoder.token_ids("go", [3, 1, 2])
    runs = "".join("i" if token == encoder.image_token_id else "." for token in ids)
    assert [len(run) for run in runs.split(".") if run] == [3, 1, 2]


@given(st.text(max_size=40))
def test_formalised_words_are_lower_case_letters_digits_underscores_and_spaces(text):
    words = formalize(text)
    assert all(letter.isalnum() or letter == "_" or letter.isspace() for letter in words)
    letters = iter(text.lower())
    assert all(letter in letters for letter in words), "formalising only removes"


@pytest.mark.parametrize("token", ["<|im_end|>", "<|image_pad|>", "<|vision_start|>", "<think>"])
def test_a_control_token_in_the_task_is_refused_by_name_when_it_would_be_read_as_one(prompts, token):
    with pytest.raises(ObservationError, match="would be read as a control token") as caught:
        prompts[False].refuse_control_tokens(f"put {token} away")
    assert f"{token} would be read" in str(caught.value)
    prompts[True].refuse_control_tokens(f"put {token} away")
    prompts[False].refuse_control_tokens("put <this> | away, im_end!")


def test_vocabulary_and_merges_alone_give_the_same_ids_as_the_whole_tokenizer(prompts, tmp_path):
    encoder = PromptEncoder(backbone_copy(tmp_path / "parts", "tokenizer.json"), formalize_language=False)
    assert np.array_equal(encoder.token_ids(MESSY, [2]), prompts[False].token_ids(MESSY, [2]))
    assert "<|im_end|>" in encoder._control_tokens


def test_added_tokens_alone_are_enough_to_know_the_control_tokens(prompts, tmp_path):
    folder = backbone_copy(tmp_path / "added", "tokenizer.json", "tokenizer_config.json")
    encoder = PromptEncoder(folder, formalize_language=False)
    assert np.array_equal(encoder.token_ids(MESSY, [2]), prompts[False].token_ids(MESSY, [2]))


def test_transformers_gives_the_same_ids(prompts):
    from transformers import AutoTokenizer

    reference = AutoTokenizer.from_pretrained(BACKBONE, local_files_only=True)
    ids = reference(prompts[False].chat_text(MESSY, 1))["input_ids"]
    assert prompts[False].token_ids(MESSY, [1]).tolist() == ids


@pytest.mark.parametrize("place", ["chat_template.jinja", "chat_template.json", "tokenizer_config.json"])
def test_the_chat_template_is_found_where_backbones_keep_it(place, tmp_path):
    folder = backbone_copy(tmp_path / "backbone", "chat_template.jinja")
    if place.endswith(".jinja"):
        (folder / place).write_text(PROMPTS["chat_template"])
    else:
        path = folder / place
        content = json.loads(path.read_text()) if path.is_file() else {}
        path.write_text(json.dumps({**content, "chat_template": PROMPTS["chat_template"]}))
    encoder = PromptEncoder(folder, formalize_language=True)
    assert encoder.chat_text("go", 1) == "<|im_start|>user\n<|vision_start|><|image_pad|><|vision_end|>go<|im_end|>\n"


def test_a_template_cannot_reach_the_machine(tmp_path):
    folder = backbone_copy(tmp_path / "backbone", "chat_template.jinja")
    (folder / "chat_template.jinja").write_text("{{ ''.__class__.__mro__[1].__subclasses__() }}")
    with pytest.raises(CheckpointError, match="the chat template fails"):
        PromptEncoder(folder, formalize_language=True).chat_text("go", 1)


def test_a_template_that_drops_an_image_is_refused(tmp_path):
    folder = backbone_copy(tmp_path / "backbone", "chat_template.jinja")
    (folder / "chat_template.jinja").write_text("<|image_pad|>{{ messages[0].content[-1].text }}")
    with pytest.raises(CheckpointError, match=r"wrote 1 placeholders .* for 2 images, the text unchanged"):
        PromptEncoder(folder, formalize_language=True).chat_text("go", 2)


@pytest.mark.parametrize(
    ("without", "sentence"),
    [
        (("tokenizer.json", "merges.txt"), "holds no tokenizer; tokenizer.json, or vocab.json with merges.txt"),
        (("chat_template.jinja",), "holds no chat template"),
        (("tokenizer_config.json", "special_tokens_map.json"), "names a pad_token"),
    ],
)
def test_a_backbone_folder_with_a_file_missing_is_refused(without, sentence, tmp_path):
    with pytest.raises(CheckpointError, match=sentence):
        PromptEncoder(backbone_copy(tmp_path / "backbone", *without), formalize_language=True)


def test_damaged_and_contradicting_tokenizer_files_are_refused(tmp_path):
    folder = backbone_copy(tmp_path / "damaged")
    (folder / "tokenizer.json").write_text("{")
    with pytest.raises(CheckpointError, match=r"tokenizer.json: cannot be read as a tokenizer"):
        PromptEncoder(folder, formalize_language=True)
    folder = backbone_copy(tmp_path / "contradicting")
    (folder / "added_tokens.json").write_text(json.dumps({"<|new|>": 999}))
    with pytest.raises(CheckpointError, match=r"<\|new\|> has id 282 in the vocabulary and 999 in"):
        PromptEncoder(folder, formalize_language=True)
    (folder / "added_tokens.json").write_text("[")
    with pytest.raises(CheckpointError, match=r"added_tokens.json is damaged JSON"):
        PromptEncoder(folder, formalize_language=True)
