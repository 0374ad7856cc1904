"""Folders of tiny models in transformers' format, with vocabularies learned from a few sentences."""

import json
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path

import pytest
import sentencepiece
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    AutoModel,
    GenerationConfig,
    M2M100Config,
    M2M100ForConditionalGeneration,
    M2M100Tokenizer,
    MarianConfig,
    MarianMTModel,
    MarianTokenizer,
    MBart50Tokenizer,
    MBartConfig,
    MBartForConditionalGeneration,
    MBartTokenizer,
    NllbTokenizer,
    PreTrainedTokenizerFast,
)

from model.checkpoints.files import CheckpointError
from model.checkpoints.huggingface import open_model
from tests.model.checkpoints.huggingface.families import _BOTH, FAMILIES, randomised, tiny_model
from tests.model.tiny import SENTENCES

VOCABULARY = 320
_TEXTS = [text for pair in SENTENCES for text in pair]


def change_json(path: Path, **values: object) -> None:
    """Set values in a file of settings, which need not be there."""
    found = json.loads(path.read_text("utf-8")) if path.exists() else {}
    path.write_text(json.dumps(found | values), "utf-8")


def refusal(folder: Path) -> str:
    """What is said of a folder that does not open."""
    with pytest.raises(CheckpointError) as error:
        open_model(folder)
    return str(error.value)


def byte_level_tokenizer(start: str = "") -> PreTrainedTokenizerFast:
    """As GPT-2's: pieces of bytes, so that any text can be written; `start`: a token before every text, as Llama's."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", *([start] if start else [])]
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_TEXTS, trainer)
    if start:
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{start} $A", special_tokens=[(start, tokenizer.token_to_id(start))]
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=start or "<|endoftext|>", eos_token="<|endoftext|>"
    )


def word_piece_tokenizer() -> PreTrainedTokenizerFast:
    """As BERT's: [CLS] and [SEP] around every text, ## before pieces that continue a word."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(vocab_size=VOCABULARY, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(_TEXTS, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **dict(zip(names, special, strict=True)))


def save_family(folder: Path, name: str, head: bool = True, **options: str) -> Path:
    """Write the tiny model of a family, with a fitting vocabulary, as `save_pretrained` does.

    Without `head` it gives vectors, as models of whole sentences do, and no logits; `options` are those of
    `save_pretrained`.
    """
    model = tiny_model(name, vocab_size=VOCABULARY)
    model = model if head else randomised(lambda: AutoModel.from_config(model.config))
    if FAMILIES[name][0].endswith("ForMaskedLM"):
        tokenizer = word_piece_tokenizer()
    else:
        tokenizer = byte_level_tokenizer("" if name == "GPT-2" else "<s>")
    model.config.bos_token_id, model.config.eos_token_id = tokenizer.bos_token_id, tokenizer.eos_token_id
    model.save_pretrained(folder, **options)
    tokenizer.save_pretrained(folder)
    return folder


CHAT_TEMPLATE = (
    "{{ bos_token }}<|system|>You help.<|end|>"
    "{% for message in messages %}<|{{ message.role }}|>\n{{ message.content | trim }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)


def save_chat_model(folder: Path) -> Path:
    """A tiny Llama whose tokenizer has a chat template, with a start token, a system message and tokens of its own."""
    tokenizer = byte_level_tokenizer("<s>")
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|system|>", "<|user|>", "<|assistant|>", "<|end|>"]})
    tokenizer.chat_template = CHAT_TEMPLATE
    model = tiny_model("Llama, grouped", vocab_size=len(tokenizer))
    model.config.bos_token_id, model.config.eos_token_id = tokenizer.bos_token_id, tokenizer.eos_token_id
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_marian(folder: Path) -> Path:
    """Write what the folder of an opus-mt model has: a SentencePiece model for each language, one vocabulary for both
    with <pad> last, swish, a bias of the logits, sines and cosines in two halves, and <pad> as the decoder's start."""
    folder.mkdir(parents=True)
    pieces = {}
    for side, texts in zip(("source", "target"), zip(*SENTENCES, strict=True), strict=True):
        (folder / f"{side}.spm").write_bytes(_sentence_pieces(texts))
        model = sentencepiece.SentencePieceProcessor(model_file=str(folder / f"{side}.spm"))
        pieces |= dict.fromkeys(model.id_to_piece(i) for i in range(len(model)) if not model.is_control(i))
    pieces = [piece for piece in pieces if piece != "<unk>"]
    vocabulary = {piece: i for i, piece in enumerate(["</s>", "<unk>", *pieces, "<pad>"])}
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    files = {"source_spm": "source.spm", "target_spm": "target.spm", "vocab": "vocab.json"}
    MarianTokenizer(**{name: str(folder / file) for name, file in files.items()}).save_pretrained(folder)
    pad = vocabulary["<pad>"]
    sizes = {f"{stack}_{name}": n for stack in ("encoder", "decoder") for name, n in _MARIAN_SIZES.items()}
    special = {"pad_token_id": pad, "eos_token_id": 0, "decoder_start_token_id": pad, "forced_eos_token_id": 0}
    config = MarianConfig(
        vocab_size=len(vocabulary),
        d_model=32,
        max_position_embeddings=128,
        activation_function="swish",
        scale_embedding=True,
        **sizes,
        **special,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(2)
        model = MarianMTModel(config).eval()
        for name, parameter in model.named_parameters():
            if "embed_positions" not in name and parameter.dim() > 1:
                parameter.data.mul_(25)
            elif "embed_positions" not in name:
                parameter.data.add_(torch.randn_like(parameter), alpha=0.05)
        model.final_logits_bias.normal_(std=0.3)
    model.generation_config = GenerationConfig(bad_words_ids=[[pad]], num_beams=4, max_length=128, **special)
    model.save_pretrained(folder)
    return folder


_MARIAN_SIZES = {"layers": 2, "attention_heads": 4, "ffn_dim": 48}


def save_many_languages(folder: Path, name: str) -> Path:
    """Write what the folder of a translator of many languages has: a token for each of them.

    M2M100 and NLLB write it before a text, mBART after it, and its decoder reads it first.
    """
    folder.mkdir(parents=True)
    data = _sentence_pieces(_TEXTS)
    (folder / "pieces.model").write_bytes(data)
    model = sentencepiece.SentencePieceProcessor(model_proto=data)
    pieces = [model.id_to_piece(i) for i in range(3, len(model))]
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    if name == "M2M100":
        (folder / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate([*special, *pieces])}))
        tokenizer = M2M100Tokenizer(str(folder / "vocab.json"), str(folder / "pieces.model"))
    elif name == "NLLB":
        characters = sorted({character for text in _TEXTS for character in text.replace(" ", "▁")} | {"▁"})
        tokenizer = NllbTokenizer({piece: i for i, piece in enumerate([*special, *characters])}, [])
    else:
        scored = [("<unk>", 0.0), ("<s>", 0.0), ("</s>", 0.0), *((piece, -float(i)) for i, piece in enumerate(pieces))]
        tokenizer = (MBartTokenizer if name == "mBART" else MBart50Tokenizer)(scored)
    tokenizer.save_pretrained(folder)
    kinds = (MBartForConditionalGeneration, MBartConfig), (M2M100ForConditionalGeneration, M2M100Config)
    model, config = kinds["mBART" not in name]
    ids = getattr(tokenizer, "lang_code_to_id", {}).values()
    size = max(len(tokenizer), 1 + max(ids, default=0))
    settings = _BOTH | {"vocab_size": size, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
    randomised(lambda: model(config(**settings))).save_pretrained(folder)
    return folder


def _sentence_pieces(texts: Iterable[str]) -> bytes:
    written = BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_writer=written, vocab_size=120, hard_vocab_limit=False, minloglevel=2
    )
    return written.getvalue()
