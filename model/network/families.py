"""The network of each family."""

from model.network.config import TransformerConfig
from model.network.decoder_only import DecoderOnly
from model.network.encoder_decoder import Transformer
from model.network.encoder_only import EncoderOnly
from model.network.network import Network

FAMILIES: dict[str, type[Network]] = {"encoder_decoder": Transformer, "decoder": DecoderOnly, "encoder": EncoderOnly}


def new_network(config: TransformerConfig) -> Network:
    """A network of the configuration's family, with random weights."""
    return FAMILIES[config.family](config)
