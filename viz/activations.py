"""What a feed-forward applies to its neurons, or to their gate, in formulas, in words, and as a curve."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Activation:
    """The names of one function."""

    latex: str
    applied: str
    """to `{}`, as text"""
    curve: str
    """of z, as text"""
    smooth: bool = False


ACTIVATIONS = {
    "relu": Activation(r"\mathrm{ReLU}", "max(0, {})", "max(0, z)"),
    "gelu": Activation(r"\mathrm{GELU}", "GELU({})", "GELU(z) = z Φ(z)", smooth=True),
    "gelu, by tanh": Activation(
        r"\mathrm{GELU}_{\tanh}", "GELU({}) by tanh", "GELU(z), Φ approximated by tanh", smooth=True
    ),
    "silu": Activation(r"\mathrm{Swish}", "Swish({})", "Swish(z) = z σ(z)", smooth=True),
}
UNKNOWN = Activation(r"\mathrm{act}", "act({})", "act(z), through the neurons")


def activation(name: str) -> Activation:
    """The function of a model's feed-forward, of which a gated one has a name of its own: SwiGLU applies Swish."""
    plain = name.removeprefix("gated ").replace("swiglu", "silu").replace("geglu", "gelu")
    return ACTIVATIONS.get(plain, UNKNOWN)
