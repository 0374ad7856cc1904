"""The results of the paper (Vaswani et al. 2017, Tables 2 and 4), and who came after, as their authors report them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Translation:
    """One system on newstest2014: tokenised BLEU, not comparable with sacreBLEU on detokenised text."""

    system: str
    en_de: float | None
    """BLEU, English to German"""
    en_fr: float | None
    """BLEU, English to French"""
    en_de_operations: float | None = None
    """floating-point operations of its training; None: not stated"""
    en_fr_operations: float | None = None


TABLE_2 = (
    Translation("ByteNet", 23.75, None),
    Translation("Deep-Att + PosUnk", None, 39.2, None, 1.0e20),
    Translation("GNMT + RL", 24.6, 39.92, 2.3e19, 1.4e20),
    Translation("ConvS2S", 25.16, 40.46, 9.6e18, 1.5e20),
    Translation("MoE", 26.03, 40.56, 2.0e19, 1.2e20),
    Translation("Deep-Att + PosUnk, ensemble", None, 40.4, None, 8.0e20),
    Translation("GNMT + RL, ensemble", 26.30, 41.16, 1.8e20, 1.1e21),
    Translation("ConvS2S, ensemble", 26.36, 41.29, 7.7e19, 1.2e21),
    Translation("Transformer, base", 27.3, 38.1, 3.3e18, 3.3e18),
    Translation("Transformer, big", 28.4, 41.8, 2.3e19, 2.3e19),
)
LATER = (
    Translation("Ott et al. 2018, big in half precision on 128 GPUs", 29.3, 43.2),
    Translation("Edunov et al. 2018, with back-translated text", 35.0, 45.6),
    Translation("Wu et al. 2019, dynamic convolutions, no self-attention", 29.7, 43.2),
    Translation("Liu et al. 2020, 60 encoder and 12 decoder layers", 30.1, 43.8),
)


@dataclass(frozen=True)
class Parse:
    """One parser on section 23 of the Wall Street Journal."""

    parser: str
    training: str
    f1: float


TABLE_4 = (
    Parse("Vinyals, Kaiser et al. (2014)", "WSJ only, discriminative", 88.3),
    Parse("Petrov et al. (2006)", "WSJ only, discriminative", 90.4),
    Parse("Zhu et al. (2013)", "WSJ only, discriminative", 90.4),
    Parse("Dyer et al. (2016)", "WSJ only, discriminative", 91.7),
    Parse("Transformer, 4 layers", "WSJ only, discriminative", 91.3),
    Parse("Zhu et al. (2013)", "semi-supervised", 91.3),
    Parse("Huang and Harper (2009)", "semi-supervised", 91.3),
    Parse("McClosky et al. (2006)", "semi-supervised", 92.1),
    Parse("Vinyals, Kaiser et al. (2014)", "semi-supervised", 92.1),
    Parse("Transformer, 4 layers", "semi-supervised", 92.7),
    Parse("Luong et al. (2015)", "multi-task", 93.0),
    Parse("Dyer et al. (2016)", "generative", 93.3),
)
