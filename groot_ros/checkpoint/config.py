"""``config.json``: the dimensions and switches of the N1.7 network, typed, with the original's defaults."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from groot_ros.checkpoint.fields import Fields
from groot_ros.checkpoint.versions import refuse_other_versions
from groot_ros.errors import CheckpointError


@dataclass(frozen=True, kw_only=True)
class DiTConfig:
    """``diffusion_model_cfg``: the diffusion transformer of the action head."""

    num_layers: int = 16
    num_attention_heads: int = 32
    attention_head_dim: int = 48
    output_dim: int = 1024
    dropout: float = 0.2
    final_dropout: bool = True
    interleave_self_attention: bool = True
    norm_type: str = "ada_norm"
    positional_embeddings: str | None = None

    @property
    def inner_dim(self) -> int:
        """Width of the transformer's hidden states."""
        return self.num_attention_heads * self.attention_head_dim


@dataclass(frozen=True, kw_only=True)
class VLSelfAttentionConfig:
    """``vl_self_attention_cfg``: self-attention over the vision-language features."""

    num_layers: int = 4
    num_attention_heads: int = 32
    attention_head_dim: int = 64
    dropout: float = 0.2
    final_dropout: bool = True
    positional_embeddings: str | None = None


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The network as ``config.json`` describes it. Absent keys take the defaults of the original's code."""

    model_name: str = "nvidia/Cosmos-Reason2-2B"
    select_layer: int = 12
    backbone_embedding_dim: int = 2048
    hidden_size: int = 1024
    input_embedding_dim: int = 1536
    max_state_dim: int = 132
    max_action_dim: int = 132
    action_horizon: int = 40
    state_history_length: int = 1
    max_seq_len: int = 1024
    max_num_embodiments: int = 32
    use_vlln: bool = True
    add_pos_embed: bool = True
    use_alternate_vl_dit: bool = True
    attend_text_every_n_blocks: int = 2
    num_inference_timesteps: int = 4
    num_timestep_buckets: int = 1000
    noise_beta_alpha: float = 1.5
    noise_beta_beta: float = 1.0
    noise_s: float = 0.999
    state_dropout_prob: float = 0.8
    diffusion_model_cfg: DiTConfig = field(default_factory=DiTConfig)
    vl_self_attention_cfg: VLSelfAttentionConfig | None = None
    tune_top_llm_layers: int = 0
    tune_llm: bool = False
    tune_visual: bool = False
    tune_projector: bool = True
    tune_diffusion_model: bool = True
    tune_vlln: bool = True


# Keys that the original writes or that transformers adds to every configuration, and that change nothing at inference:
# the processing keys act only through processor_config.json.
_HARMLESS = frozenset(
    """
    architectures auto_map dtype torch_dtype model_dtype transformers_version model_revision use_flash_attention
    load_bf16 backbone_trainable_params_fp32 attn_dropout rtc_ramp_rate rtc_max_delay_steps use_cache
    image_crop_size image_target_size shortest_image_edge crop_fraction letter_box_transform random_rotation_angle
    color_jitter_params use_albumentations_transforms use_albumentations extra_augmentation_config
    formalize_language apply_sincos_state_encoding use_percentiles use_relative_action exclude_state use_mean_std
    clip_outliers return_dict output_hidden_states output_attentions torchscript use_bfloat16 pruned_heads
    tie_word_embeddings chunk_size_feed_forward is_encoder_decoder is_decoder cross_attention_hidden_size
    add_cross_attention tie_encoder_decoder id2label label2id problem_type finetuning_task task_specific_params
    name_or_path _name_or_path _attn_implementation_autoset attn_implementation _attn_implementation
    gradient_checkpointing tokenizer_class prefix bos_token_id pad_token_id eos_token_id sep_token_id
    decoder_start_token_id
    """.split()  # noqa: SIM905 - a list would take sixty lines
)


def parse_model_config(data: dict[str, Any], where: str) -> ModelConfig:
    """Read the content of ``config.json``.

    Args:
        data: The parsed JSON.
        where: The file, for the messages.

    Raises:
        CheckpointError: A value has the wrong type, dimensions contradict each other, the file is of another GR00T
            version, or a key is unknown or has a value that would change the numbers.

    """
    refuse_other_versions(data, where)
    fields = Fields(data, where)
    default = ModelConfig()
    fields.value("model_type")
    fields.only("backbone_model_type", ("qwen",), "qwen")
    fields.only("reproject_vision", (False,), default=False)
    # Set by newly trained models only: it masks padded actions, so the numbers differ from the released networks'.
    fields.only("strict_action_padding_mask", (False,), default=False)
    vl_self_attention = None
    if fields.value("vl_self_attention_cfg"):
        vl_self_attention = _vl_self_attention_config(fields.inner("vl_self_attention_cfg"))
    config = ModelConfig(
        model_name=fields.text("model_name", default.model_name),
        select_layer=fields.integer("select_layer", default.select_layer, minimum=1),
        backbone_embedding_dim=fields.integer("backbone_embedding_dim", default.backbone_embedding_dim, minimum=1),
        hidden_size=fields.integer("hidden_size", default.hidden_size, minimum=1),
        input_embedding_dim=fields.integer("input_embedding_dim", default.input_embedding_dim, minimum=1),
        max_state_dim=fields.integer("max_state_dim", default.max_state_dim, minimum=1),
        max_action_dim=fields.integer("max_action_dim", default.max_action_dim, minimum=1),
        action_horizon=fields.integer("action_horizon", default.action_horizon, minimum=1),
        state_history_length=fields.integer("state_history_length", default.state_history_length, minimum=1),
        max_seq_len=fields.integer("max_seq_len", default.max_seq_len, minimum=1),
        max_num_embodiments=fields.integer("max_num_embodiments", default.max_num_embodiments, minimum=1),
        use_vlln=fields.boolean("use_vlln", default.use_vlln),
        add_pos_embed=fields.boolean("add_pos_embed", default.add_pos_embed),
        use_alternate_vl_dit=fields.boolean("use_alternate_vl_dit", default.use_alternate_vl_dit),
        attend_text_every_n_blocks=fields.integer(
            "attend_text_every_n_blocks", default.attend_text_every_n_blocks, minimum=1
        ),
        num_inference_timesteps=fields.integer("num_inference_timesteps", default.num_inference_timesteps, minimum=1),
        num_timestep_buckets=fields.integer("num_timestep_buckets", default.num_timestep_buckets, minimum=1),
        noise_beta_alpha=fields.number("noise_beta_alpha", default.noise_beta_alpha),
        noise_beta_beta=fields.number("noise_beta_beta", default.noise_beta_beta),
        noise_s=fields.fraction("noise_s", default.noise_s),
        state_dropout_prob=fields.fraction("state_dropout_prob", default.state_dropout_prob),
        diffusion_model_cfg=(
            _dit_config(fields.inner("diffusion_model_cfg")) if "diffusion_model_cfg" in fields else DiTConfig()
        ),
        vl_self_attention_cfg=vl_self_attention,
        tune_top_llm_layers=fields.integer("tune_top_llm_layers", default.tune_top_llm_layers),
        tune_llm=fields.boolean("tune_llm", default.tune_llm),
        tune_visual=fields.boolean("tune_visual", default.tune_visual),
        tune_projector=fields.boolean("tune_projector", default.tune_projector),
        tune_diffusion_model=fields.boolean("tune_diffusion_model", default.tune_diffusion_model),
        tune_vlln=fields.boolean("tune_vlln", default.tune_vlln),
    )
    fields.refuse_unknown(_HARMLESS)
    _check_dimensions(config, where)
    return config


def _transformer_options(fields: Fields) -> None:
    """Check the options that the original's transformers share. Absent ones take the defaults of its classes."""
    fields.only("positional_embeddings", (None,), "sinusoidal")
    fields.only("attention_bias", (True,), default=True)
    fields.only("activation_fn", ("gelu-approximate",), "gelu-approximate")
    fields.only("upcast_attention", (False,), default=False)
    fields.only("norm_elementwise_affine", (False,), default=False)
    fields.only("norm_eps", (1e-5,), 1e-5)


_UNUSED_TRANSFORMER_OPTIONS = frozenset(
    {"num_embeds_ada_norm", "max_num_positional_embeddings", "compute_dtype", "cross_attention_dim"}
)


def _dit_config(fields: Fields) -> DiTConfig:
    _transformer_options(fields)
    fields.only("norm_type", ("ada_norm",), "ada_norm")
    fields.only("interleave_self_attention", (True,), default=False)
    config = DiTConfig(
        num_layers=fields.integer("num_layers", minimum=1),
        num_attention_heads=fields.integer("num_attention_heads", minimum=1),
        attention_head_dim=fields.integer("attention_head_dim", minimum=1),
        output_dim=fields.integer("output_dim", minimum=1),
        dropout=fields.fraction("dropout", 0.1),
        final_dropout=fields.boolean("final_dropout", default=True),
    )
    fields.refuse_unknown(_UNUSED_TRANSFORMER_OPTIONS)
    return config


def _vl_self_attention_config(fields: Fields) -> VLSelfAttentionConfig:
    _transformer_options(fields)
    config = VLSelfAttentionConfig(
        num_layers=fields.integer("num_layers", minimum=1),
        num_attention_heads=fields.integer("num_attention_heads", minimum=1),
        attention_head_dim=fields.integer("attention_head_dim", minimum=1),
        dropout=fields.fraction("dropout", 0.1),
        final_dropout=fields.boolean("final_dropout", default=True),
    )
    fields.refuse_unknown(_UNUSED_TRANSFORMER_OPTIONS | {"output_dim", "interleave_self_attention", "norm_type"})
    return config


def _check_dimensions(config: ModelConfig, where: str) -> None:
    """Check what the original only finds when two matrices do not fit."""
    dit = config.diffusion_model_cfg
    heads = "num_attention_heads x attention_head_dim"
    pairs = [
        (f"diffusion_model_cfg: {heads}", dit.inner_dim, "input_embedding_dim", config.input_embedding_dim),
        ("diffusion_model_cfg: output_dim", dit.output_dim, "hidden_size", config.hidden_size),
    ]
    if config.vl_self_attention_cfg is not None:
        vl = config.vl_self_attention_cfg
        width = vl.num_attention_heads * vl.attention_head_dim
        pairs.append(
            (f"vl_self_attention_cfg: {heads}", width, "backbone_embedding_dim", config.backbone_embedding_dim)
        )
    for left, left_value, right, right_value in pairs:
        if left_value != right_value:
            msg = f"{where}: {left} is {left_value}, but must equal {right}, which is {right_value}."
            raise CheckpointError(msg)
    if config.add_pos_embed and config.max_seq_len < config.action_horizon:
        msg = (
            f"{where}: max_seq_len is {config.max_seq_len}, but must be at least action_horizon, "
            f"which is {config.action_horizon}: every action row needs a position embedding."
        )
        raise CheckpointError(msg)
