"""Weights: safetensors alone, whole, named, and finite."""

import json
import shutil
import struct

import numpy as np
import pytest
import torch
from checkpoint.conftest import edit_json
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file
from safetensors.torch import save_file as save_torch_file
from support.golden import TINY_SHARDED, TINY_SINGLE

from groot_ros.checkpoint import WeightFiles, open_checkpoint
from groot_ros.checkpoint.parameters import check_parameters, parameter_shapes
from groot_ros.errors import CheckpointError, GrootError, ModelError
from groot_ros.model.loading import load_model
from groot_ros.model.model import GrootN17

LM_HEAD = "backbone.model.lm_head.weight"
EMBEDDINGS = "backbone.model.model.language_model.embed_tokens.weight"
SHARD = "model-00002-of-00005.safetensors"


def change_tensors(checkpoint, change):
    tensors = load_file(checkpoint / "model.safetensors")
    change(tensors)
    save_file(tensors, checkpoint / "model.safetensors", metadata={"format": "pt"})


def network(checkpoint):
    return load_model(
        checkpoint.config,
        checkpoint.backbone.config,
        checkpoint.weights().tensors(),
        device="cpu",
        dtype=torch.float32,
    )


def test_single_and_sharded_files_hold_the_same_values():
    single = dict(WeightFiles(TINY_SINGLE).tensors())
    sharded = dict(WeightFiles(TINY_SHARDED).tensors())
    assert single.keys() == sharded.keys()
    assert {tensor.dtype for tensor in sharded.values()} == {torch.bfloat16}
    assert all(torch.equal(single[name], sharded[name].float()) for name in single)


def test_names_are_the_networks_parameters_known_without_torch():
    checkpoint = open_checkpoint(TINY_SINGLE)
    implied = parameter_shapes(checkpoint.config, checkpoint.backbone.config)
    with torch.device("meta"):
        model = GrootN17(checkpoint.config, checkpoint.backbone.config)
    assert implied == {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    assert implied == checkpoint.weights().names()


def test_only_the_tensors_with_a_prefix_are_read():
    names = [name for name, _ in WeightFiles(TINY_SHARDED).tensors("action_head.vlln.")]
    assert sorted(names) == ["action_head.vlln.bias", "action_head.vlln.weight"]


def test_the_unused_output_layer_is_left_out(single):
    change_tensors(single, lambda tensors: tensors.update({LM_HEAD: tensors[EMBEDDINGS].copy()}))
    assert LM_HEAD not in WeightFiles(single).names()
    network(open_checkpoint(single))


def test_a_file_that_keeps_the_tied_embeddings_under_the_output_layers_name_is_read(single):
    expected = load_file(TINY_SINGLE / "model.safetensors")[EMBEDDINGS]
    change_tensors(single, lambda tensors: tensors.update({LM_HEAD: tensors.pop(EMBEDDINGS)}))
    weights = WeightFiles(single)
    assert weights.names() == WeightFiles(TINY_SINGLE).names()
    assert np.array_equal(dict(weights.tensors(EMBEDDINGS))[EMBEDDINGS].numpy(), expected)


@pytest.mark.parametrize("kept", [0, 4, 8, 20, 5000, -1])
def test_a_truncated_file_is_refused(single, kept):
    path = single / "model.safetensors"
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(CheckpointError, match=r"model\.safetensors .*incomplete or damaged, copy or download it again"):
        open_checkpoint(single).weights()


def test_a_file_that_is_too_long_is_refused(single):
    with (single / "model.safetensors").open("ab") as file:
        file.write(b"\0")
    with pytest.raises(CheckpointError, match=r"bytes of tensors, but its header says"):
        open_checkpoint(single).weights()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_flipped_bit_in_the_header_is_refused_or_changes_a_name(data, tmp_path):
    path = tmp_path / "model.safetensors"
    content = bytearray(SMALL)
    position = data.draw(st.integers(0, SMALL_HEADER - 1))
    content[position] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(content)
    try:
        found = {name: (info.shape, info.dtype) for name, info in _infos(tmp_path).items()}
    except CheckpointError:
        return
    # What is still well formed is found by the comparison with the configuration: a name, a type or blank space.
    assert found != SMALL_TENSORS or json.loads(content[8:SMALL_HEADER]) == json.loads(SMALL[8:SMALL_HEADER])


def _infos(directory):
    weights = WeightFiles(directory)
    return {name: weights[name] for name in weights.names()}


SMALL_TENSORS = {"a.weight": ((2, 3), "F32"), "b.bias": ((4,), "F32")}


def _small():
    entries = {
        "a.weight": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
        "b.bias": {"dtype": "F32", "shape": [4], "data_offsets": [24, 40]},
    }
    header = json.dumps(entries).encode()
    return struct.pack("<Q", len(header)) + header + bytes(40), 8 + len(header)


SMALL, SMALL_HEADER = _small()


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"dtype": "F31", "shape": [10], "data_offsets": [0, 40]}, r"damaged header \(tensor t\)"),
        ({"dtype": "F32", "shape": [11], "data_offsets": [0, 40]}, r"damaged header \(tensor t\)"),
        ({"dtype": "F32", "shape": [-10], "data_offsets": [0, 40]}, r"damaged header \(tensor t\)"),
        ({"dtype": "F32", "shape": [9], "data_offsets": [4, 40]}, r"a gap or an overlap at byte 0"),
        ({"dtype": "F32", "shape": [9], "data_offsets": [0, 36]}, r"holds 40 bytes of tensors, but its header says 36"),
        ([1, 2], r"damaged header \(tensor t\)"),
    ],
)
def test_a_header_that_contradicts_itself_is_refused(tmp_path, entry, message):
    header = json.dumps({"t": entry}).encode()
    (tmp_path / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(40))
    with pytest.raises(CheckpointError, match=message):
        WeightFiles(tmp_path)


def test_missing_tensors_are_named(single):
    change_tensors(single, lambda tensors: tensors.pop("action_head.vlln.bias"))
    checkpoint = open_checkpoint(single)
    message = r"1 missing: action_head\.vlln\.bias"
    with pytest.raises(CheckpointError, match=message):
        check_parameters(checkpoint.weights().names(), checkpoint.config, checkpoint.backbone.config, "here")
    with pytest.raises(ModelError, match=message):
        network(checkpoint)


def test_surplus_tensors_are_named(single):
    change_tensors(single, lambda tensors: tensors.update({"action_head.extra.weight": np.zeros(3, np.float32)}))
    checkpoint = open_checkpoint(single)
    message = r"1 surplus: action_head\.extra\.weight"
    with pytest.raises(CheckpointError, match=message):
        check_parameters(checkpoint.weights().names(), checkpoint.config, checkpoint.backbone.config, "here")
    with pytest.raises(ModelError, match=message):
        network(checkpoint)


def test_tensors_of_another_shape_are_named(single):
    change_tensors(single, lambda tensors: tensors.update({"action_head.vlln.bias": np.zeros(3, np.float32)}))
    checkpoint = open_checkpoint(single)
    with pytest.raises(
        CheckpointError, match=r"of another shape: action_head\.vlln\.bias \(found \(3,\), expected \(48,"
    ):
        check_parameters(checkpoint.weights().names(), checkpoint.config, checkpoint.backbone.config, "here")


def test_nan_weights_are_refused(single):
    def damage(tensors):
        tensors["action_head.vlln.bias"][3] = np.nan

    change_tensors(single, damage)
    with pytest.raises(GrootError, match=r"action_head\.vlln\.bias .*not finite"):
        network(open_checkpoint(single))


def test_a_missing_shard_is_named(sharded):
    (sharded / SHARD).unlink()
    with pytest.raises(CheckpointError, match=rf"{SHARD} is missing: copy the whole checkpoint folder"):
        open_checkpoint(sharded).weights()


def test_shards_and_index_must_agree(sharded):
    index = sharded / "model.safetensors.index.json"
    edit_json(index, lambda data: data["weight_map"].pop("action_head.vlln.bias"))
    with pytest.raises(
        CheckpointError, match=r"1 tensors are in the files but not in the index, first action_head\.vlln"
    ):
        open_checkpoint(sharded).weights()
    edit_json(index, lambda data: data["weight_map"].update({"action_head.vlln.bias": SHARD, "ghost": SHARD}))
    with pytest.raises(CheckpointError, match=r"tensors are not in the file that it names, first "):
        open_checkpoint(sharded).weights()


@pytest.mark.parametrize("name", ["../model.safetensors", "/etc/passwd", "weights.bin"])
def test_the_index_cannot_lead_out_of_the_folder_or_to_another_kind_of_file(sharded, name):
    edit_json(sharded / "model.safetensors.index.json", lambda data: data["weight_map"].update(x=name))
    with pytest.raises(CheckpointError, match=r"but only safetensors files in the same folder are read"):
        open_checkpoint(sharded).weights()


def test_pickled_weights_are_not_read(single):
    (single / "model.safetensors").rename(single / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match=r"only pytorch_model\.bin, which can run code when it is read"):
        open_checkpoint(single).weights()


def test_a_file_that_disappears_while_it_is_read_is_named(single):
    weights = open_checkpoint(single).weights()
    (single / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"model\.safetensors cannot be read"):
        next(weights.tensors())


def test_of_a_tensor_only_the_wanted_row_is_read():
    weights = WeightFiles(TINY_SINGLE)
    name = "action_head.state_encoder.layer1.W"
    whole = dict(weights.tensors(name))[name]
    for row in (0, 2, whole.shape[0] - 1):
        assert torch.equal(dict(weights.tensors(name, rows={name: row}))[name], whole[row : row + 1])
    with pytest.raises(CheckpointError, match=rf"the tensor {name} of shape .* has no row 32"):
        list(weights.tensors(name, rows={name: 32}))


def test_a_file_that_shrinks_after_it_was_opened_is_named(tmp_path):
    shutil.copytree(TINY_SINGLE, tmp_path / "checkpoint")
    weights = WeightFiles(tmp_path / "checkpoint")
    file = tmp_path / "checkpoint" / "model.safetensors"
    with file.open("r+b") as stream:
        stream.truncate(file.stat().st_size - 10)
    with pytest.raises(CheckpointError, match=r"model.safetensors cannot be read \(it ends inside the tensor"):
        list(weights.tensors())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.uint8, torch.bool])
def test_every_type_of_tensor_is_read_as_it_was_written(tmp_path, dtype):
    values = {
        "a": torch.arange(6).view(2, 3).to(dtype),
        "b": torch.tensor(1).to(dtype),
        "c": torch.zeros(0, 4).to(dtype),
    }
    save_torch_file(values, tmp_path / "model.safetensors")
    found = dict(WeightFiles(tmp_path).tensors())
    assert found.keys() == values.keys()
    for name, tensor in values.items():
        assert found[name].dtype == dtype
        assert torch.equal(found[name], tensor)
