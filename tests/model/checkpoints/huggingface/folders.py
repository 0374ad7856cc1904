"""Folders of tiny models in transformers' format, with vocabularies learned from a few sentences."""

from pathlib import Path

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoModel, PreTrainedTokenizerFast

from tests.model.checkpoints.huggingface.families import FAMILIES, randomised, tiny_model
from tests.model.tiny import SENTENCES

VOCABULARY = 320
_TEXTS = [text for pair in SENTENCES for text in pair]


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
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **dict(zip(names, special, strict=True)))


def save_family(folder: Path, name: str, head: bool = True) -> Path:
    """Write the tiny model of a family, with a fitting vocabulary, as `save_pretrained` does.

    Without `head` it gives vectors, as models of whole sentences do, and no logits.
    """
    model = tiny_model(name, vocab_size=VOCABULARY)
    model = model if head else randomised(lambda: AutoModel.from_config(model.config))
    if FAMILIES[name][0].endswith("ForMaskedLM"):
        tokenizer = word_piece_tokenizer()
    else:
        tokenizer = byte_level_tokenizer("" if name == "GPT-2" else "<s>")
    model.config.bos_token_id, model.config.eos_token_id = tokenizer.bos_token_id, tokenizer.eos_token_id
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
