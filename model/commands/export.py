"""Our translators in the tools of others: as a MarianMT folder of Hugging Face's, or as a CTranslate2 folder.

    python -m model.commands.export --checkpoint en-de --format marian --out DIR [--alignment report.json]

Whatever reads Marian models of the transformers library reads the first. The second is written directly: CTranslate2's
own converter of Marian models takes a zero vector for the start token, which ours learned. Both compute what our model
does, up to rounding. It ends with a program that translates with the folder. What it needs are
transformers (model/checkpoints/huggingface-requirements.txt) or ctranslate2 (model/commands/export-requirements.txt).
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from model.checkpoints.store import DEFAULT_CHECKPOINT, check_own, load_checkpoint
from model.checkpoints.tokenizer import Tokenizer
from model.checkpoints.translator import Translator
from model.command_line import command_parser, run_command
from model.network.attention import MultiHeadAttention
from model.network.config import BOS, EOS, PAD, SPECIAL_TOKENS, UNK, TransformerConfig
from model.network.encoder_decoder import Transformer
from model.network.layers import DecoderLayer, EncoderLayer
from model.network.residual import Residual

if TYPE_CHECKING:
    from transformers import MarianMTModel

FORBIDDEN = (PAD, UNK, BOS)
"""What no translation holds: as in model/generation/search.py."""


def check_exportable(config: TransformerConfig) -> None:
    """Both formats know the paper's arrangement alone.

    Raises:
        ValueError: another arrangement.
    """
    paper = config.classic and config.norm == "post" and config.positions == "sinusoidal" and config.tie_embeddings
    if not (
        paper and config.scale_scores and config.scale_embeddings and config.d_k * config.n_heads == config.d_model
    ):
        raise ValueError(
            "only models with the paper's parts can be exported: post-norm, sinusoids, tied embeddings, scaled scores"
        )


def marian_weights(model: Transformer) -> dict[str, Tensor]:
    """State dictionary of a MarianMTModel that computes what `model` computes.

    Marian computes its own positions, first all sines, then all cosines, where the paper alternates them: so the
    dimensions of the residual stream are reordered, everywhere alike.
    """
    stream = torch.arange(model.config.d_model).view(-1, 2).T.flatten()
    tokens = model.output.weight[:, stream]
    weights = {"model.shared.weight": tokens, "lm_head.weight": tokens}
    weights["final_logits_bias"] = tokens.new_zeros(1, len(tokens))
    for side, stack, embedding in _sides(model):
        weights[f"model.{side}.embed_tokens.weight"] = tokens
        weights[f"model.{side}.embed_positions.weight"] = embedding.positions[:, stream]
        for number, layer in enumerate(stack.layers):
            for name, module in _marian_modules(layer):
                reads = name.endswith(("q_proj", "k_proj", "v_proj", "fc1"))
                for kind, tensor in module.state_dict().items():
                    ordered = tensor if reads and kind == "bias" else tensor[:, stream] if reads else tensor[stream]
                    weights[f"model.{side}.layers.{number}.{name}.{kind}"] = ordered
    return weights


def _marian_modules(layer: EncoderLayer | DecoderLayer) -> Iterator[tuple[str, nn.Module]]:
    attentions = {"self_attn": (layer.self_attn, layer.self_attn_residual)}
    if isinstance(layer, DecoderLayer):
        attentions["encoder_attn"] = (layer.cross_attn, layer.cross_attn_residual)
    for name, (attention, residual) in attentions.items():
        for theirs, ours in (("q_proj", "w_q"), ("k_proj", "w_k"), ("v_proj", "w_v"), ("out_proj", "w_o")):
            yield f"{name}.{theirs}", getattr(attention, ours)
        yield f"{name}_layer_norm", residual.norm
    yield from (("fc1", layer.feed_forward.w_1), ("fc2", layer.feed_forward.w_2))
    yield "final_layer_norm", layer.feed_forward_residual.norm


def to_marian(model: Transformer) -> "MarianMTModel":
    """The same network in Hugging Face's code, in evaluation mode, with our rules for what it may generate."""
    from transformers import GenerationConfig, MarianConfig, MarianMTModel

    check_exportable(model.config)
    config, tokens = model.config, {"pad_token_id": PAD, "bos_token_id": BOS, "eos_token_id": EOS}
    sizes = {f"{side}_attention_heads": config.n_heads for side in ("encoder", "decoder")}
    sizes |= {f"{side}_ffn_dim": config.d_ff for side in ("encoder", "decoder")}
    theirs = MarianMTModel(
        MarianConfig(
            vocab_size=config.vocab_size,
            d_model=config.d_model,
            encoder_layers=config.n_encoder_layers,
            decoder_layers=config.n_decoder_layers,
            max_position_embeddings=config.max_len,
            activation_function=config.activation,
            scale_embedding=True,
            share_encoder_decoder_embeddings=True,
            decoder_start_token_id=BOS,
            forced_eos_token_id=None,
            **tokens,
            **sizes,
        )
    )
    theirs.load_state_dict(marian_weights(model))
    rules = {"decoder_start_token_id": BOS, "suppress_tokens": list(FORBIDDEN), "max_length": config.max_len}
    theirs.generation_config = GenerationConfig(**rules, **tokens)
    return theirs.eval().requires_grad_(False)


@dataclass(frozen=True)
class Alignment:
    """Which heads of cross-attention align words, as `python -m model.commands.alignment --json` writes it."""

    heads: tuple[tuple[int, int], ...]
    """(layer, head) each, best first: alignment_heads of a generation configuration, as Whisper's has them"""
    layer: int = -1
    first_heads: int = 1
    """CTranslate2's translators average so many heads of this layer, the first ones; these are its defaults"""

    @classmethod
    def read(cls, path: Path) -> "Alignment":
        """Read a report.

        Raises:
            ValueError: it is none, or is damaged.
        """
        try:
            content = json.loads(path.read_text(encoding="utf-8-sig"))
            heads = tuple((int(layer), int(head)) for layer, head in content["alignment_heads"])
            chosen = content["ctranslate2"]
            return cls(heads, int(chosen["alignment_layer"]), int(chosen["alignment_heads"]))
        except (TypeError, KeyError, ValueError) as error:
            raise ValueError(
                f"{path} is no report of model.commands.alignment --json, or it is damaged ({error!r})"
            ) from error

    def check(self, config: TransformerConfig) -> None:
        """Refuse the report of a model of another size.

        Raises:
            ValueError: it names a head that there is not.
        """
        places = (*self.heads, (self.layer % config.n_decoder_layers, self.first_heads - 1))
        for layer, head in places:
            if not (0 <= layer < config.n_decoder_layers and 0 <= head < config.n_heads):
                raise ValueError(
                    f"the report names layer {layer}, head {head}; the model has {config.n_decoder_layers} layers of "
                    f"{config.n_heads} heads: make it again with this checkpoint"
                )


def save_as_marian(model: Transformer, tokenizer: Tokenizer, folder: Path, alignment: Alignment | None = None) -> None:
    """Write what MarianMTModel and MarianTokenizer open: weights in float32, SentencePiece model, vocabulary."""
    from transformers import MarianTokenizer

    theirs = to_marian(model)
    if alignment:
        theirs.generation_config.alignment_heads = [list(place) for place in alignment.heads]
    theirs.save_pretrained(folder)
    pieces = tokenizer.tokens(range(len(tokenizer)))
    for name in ("source.spm", "target.spm"):
        (folder / name).write_bytes(tokenizer.serialized)
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    (folder / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False), encoding="utf-8")
    files = {"source_spm": "source.spm", "target_spm": "target.spm", "vocab": "vocab.json"}
    special = {"unk_token": SPECIAL_TOKENS[UNK], "eos_token": SPECIAL_TOKENS[EOS], "pad_token": SPECIAL_TOKENS[PAD]}
    theirs = MarianTokenizer(
        **{argument: str(folder / name) for argument, name in files.items()},
        **special,
        model_max_length=model.config.max_len,
    )
    theirs.save_pretrained(folder)


def ctranslate2_weights(model: Transformer) -> dict[str, np.ndarray]:
    """Variables of a CTranslate2 TransformerSpec that computes what `model` computes, by path."""
    tokens = model.output.weight
    tensors = {
        "encoder/embeddings_0/weight": tokens,
        "decoder/embeddings/weight": tokens,
        "decoder/projection/weight": tokens,
    }
    for side, stack, embedding in _sides(model):
        tensors[f"{side}/position_encodings/encodings"] = embedding.positions
        for number, layer in enumerate(stack.layers):
            for name, tensor in _ctranslate2_layer(layer):
                tensors[f"{side}/layer_{number}/{name}"] = tensor
    return {path: tensor.detach().cpu().float().numpy() for path, tensor in tensors.items()}


def _ctranslate2_layer(layer: EncoderLayer | DecoderLayer) -> Iterator[tuple[str, Tensor]]:
    attention = layer.self_attn
    yield from _linear("self_attention/linear_0", attention.w_q, attention.w_k, attention.w_v)
    yield from _after_heads("self_attention", 1, attention, layer.self_attn_residual)
    if isinstance(layer, DecoderLayer):
        # The memory's keys and values are projected once for all steps, the queries at each.
        attention = layer.cross_attn
        yield from _linear("attention/linear_0", attention.w_q)
        yield from _linear("attention/linear_1", attention.w_k, attention.w_v)
        yield from _after_heads("attention", 2, attention, layer.cross_attn_residual)
    yield from _linear("ffn/linear_0", layer.feed_forward.w_1)
    yield from _linear("ffn/linear_1", layer.feed_forward.w_2)
    yield from _norm("ffn", layer.feed_forward_residual)


def _after_heads(
    name: str, number: int, attention: MultiHeadAttention, residual: Residual
) -> Iterator[tuple[str, Tensor]]:
    yield from _linear(f"{name}/linear_{number}", attention.w_o)
    yield from _norm(name, residual)


def _linear(name: str, *projections: nn.Linear) -> Iterator[tuple[str, Tensor]]:
    """Several projections of the same input become one matrix, one below the other."""
    yield f"{name}/weight", torch.cat([projection.weight for projection in projections])
    yield f"{name}/bias", torch.cat([projection.bias for projection in projections])


def _norm(name: str, residual: Residual) -> Iterator[tuple[str, Tensor]]:
    yield f"{name}/layer_norm/gamma", residual.norm.weight
    yield f"{name}/layer_norm/beta", residual.norm.bias


def _sides(model: Transformer) -> tuple[tuple[str, nn.Module, nn.Module], ...]:
    return ("encoder", model.encoder, model.src_embedding), ("decoder", model.decoder, model.tgt_embedding)


def save_for_ctranslate2(
    model: Transformer, tokenizer: Tokenizer, folder: Path, alignment: Alignment | None = None
) -> None:
    """Write into an existing folder what ctranslate2.Translator opens: the weights in float32 and the pieces, with the
    SentencePiece model that cuts a text into them."""
    from ctranslate2.specs import TransformerSpec, common_spec

    check_exportable(model.config)
    config = model.config
    activation = {"relu": common_spec.Activation.RELU, "gelu": common_spec.Activation.GELU}[config.activation]
    layers = (config.n_encoder_layers, config.n_decoder_layers)
    aligned = alignment or Alignment(())
    spec = TransformerSpec.from_config(
        layers,
        config.n_heads,
        pre_norm=False,
        activation=activation,
        alignment_layer=aligned.layer,
        alignment_heads=aligned.first_heads,
    )
    for path, array in ctranslate2_weights(model).items():
        _set_variable(spec, path, array)
    pieces = tokenizer.tokens(range(len(tokenizer)))
    spec.register_source_vocabulary(pieces)
    spec.register_target_vocabulary(pieces)
    spec.config.bos_token, spec.config.eos_token = SPECIAL_TOKENS[BOS], SPECIAL_TOKENS[EOS]
    spec.config.unk_token, spec.config.decoder_start_token = SPECIAL_TOKENS[UNK], SPECIAL_TOKENS[BOS]
    spec.config.add_source_eos = True
    spec.validate()
    spec.optimize()
    spec.save(str(folder))
    (folder / "tokenizer.model").write_bytes(tokenizer.serialized)


def _set_variable(spec: object, path: str, array: np.ndarray) -> None:
    """`layer_3/ffn/...`: the third of the list `layer`; its last part is the attribute to set."""
    *parts, attribute = path.split("/")
    for part in parts:
        name, _, number = part.rpartition("_")
        listed = number.isdigit() and isinstance(getattr(spec, name, None), list)
        spec = getattr(spec, name)[int(number)] if listed else getattr(spec, part)
    if not hasattr(spec, attribute):
        raise AttributeError(f"CTranslate2 has no variable {path}")
    setattr(spec, attribute, array)


FORMATS = {"marian": save_as_marian, "ctranslate2": save_for_ctranslate2}
EXAMPLES = {
    "marian": """\
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained({folder!r})
translator = AutoModelForSeq2SeqLM.from_pretrained({folder!r})
written = translator.generate(**tokenizer("The cat sat on the mat.", return_tensors="pt"))
print(tokenizer.decode(written[0], skip_special_tokens=True))
""",
    "ctranslate2": """\
import ctranslate2, sentencepiece

tokenizer = sentencepiece.SentencePieceProcessor(model_file={folder!r} + "/tokenizer.model")
translator = ctranslate2.Translator({folder!r})
tokens = tokenizer.encode("The cat sat on the mat.", out_type=str)
(result,) = translator.translate_batch([tokens], beam_size=1)
print(tokenizer.decode(result.hypotheses[0]))
""",
}
"""of each format, a program that translates with the folder"""


def main(arguments: list[str] | None = None) -> None:
    """Write a translator into a new folder, and print a program that translates with it."""
    parser = command_parser("commands.export", "A translator for other tools.")
    parser.add_argument("--checkpoint", default=DEFAULT_CHECKPOINT, help="name or folder (default: %(default)s)")
    parser.add_argument("--format", choices=FORMATS, default="marian", help="(default: %(default)s)")
    parser.add_argument("--out", type=Path, required=True, help="folder that does not exist, or is empty")
    parser.add_argument(
        "--alignment",
        type=Path,
        metavar="FILE",
        help="what model.commands.alignment --json wrote: heads that align words",
    )
    args = parser.parse_args(arguments)
    if args.out.exists() and (not args.out.is_dir() or any(args.out.iterdir())):
        parser.error(f"{args.out} exists already and is not an empty folder")
    try:
        opened = load_checkpoint(args.checkpoint, "cpu")
        if not isinstance(opened, Translator):
            parser.error(f"{args.checkpoint} is no translator: both formats are for encoder-decoder models")
        check_own(opened, "The export")
        check_exportable(opened.model.config)
        alignment = Alignment.read(args.alignment) if args.alignment else None
        if alignment:
            alignment.check(opened.model.config)
        args.out.mkdir(parents=True, exist_ok=True)
        FORMATS[args.format](opened.model, opened.tokenizer, args.out, alignment)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    size = sum(path.stat().st_size for path in args.out.iterdir()) / 1e6
    print(f"# {args.out}: {args.checkpoint} as {args.format}, {size:,.0f} MB. In Python:\n")
    print(EXAMPLES[args.format].format(folder=str(args.out)))


if __name__ == "__main__":
    run_command(main)
