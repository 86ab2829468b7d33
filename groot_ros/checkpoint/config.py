"""``config.json``: the dimensions and switches of the N1.7 network, typed, with the original's defaults."""

from __future__ import annotations

from dataclasses import dataclass, field


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
