"""Linear attention on the q and k of a run: the weights of a feature map, without an n x n matrix.

Two feature maps: elu(x) + 1 (Katharopoulos et al. 2020, "Transformers are RNNs", section 3.2), which is another
attention than the softmax, and positive orthogonal random features, which estimate the softmax kernel (Choromanski et
al. 2021, "Rethinking Attention with Performers", FAVOR+). Features are held as logarithms, since those of a trained
head reach from exp(-700) to exp(700).
"""

from dataclasses import dataclass

import numpy as np

from model.analysis.distributions import total_variation
from model.analysis.heads.softmax import softmax
from model.trace import Array, Attention

FEATURES = (4, 8, 16, 32, 64, 128, 256, 512, 1024)
DRAWS = 16
BAND = (10, 50, 90)
"""percentiles over the draws"""
UNDERFLOW = 1e-200
"""row sums below this are computed again, from exponents of that row alone"""


@dataclass(frozen=True)
class FeatureSweep:
    """Errors of one head with random features, for each number of features and each draw."""

    features: Array
    """(size,): m, the numbers of features"""
    weights: Array
    """(draw, size): mean over queries of the total variation between the run's weights and the approximated ones"""
    z: Array
    """(draw, size): ||z - pattern v|| / ||pattern v||, Frobenius norms, pattern and v of the run"""
    weights_band: Array
    """(3, size): 10th, 50th and 90th percentile of `weights` over the draws"""
    z_band: Array
    """(3, size): the same of `z`"""
    weights_limit: float
    """error of the weights that the softmax kernel itself gives from q and k: what no number of features removes"""
    z_limit: float
    """the same of z"""
    distance: float
    """median of ||x + y||^2 over the visible pairs, x = q sqrt(scale / tau) and y = k sqrt(scale / tau)"""

    def enough(self, error: float) -> int | None:
        """The smallest number of features whose median error of z is below `error`; None: none of them is."""
        below = self.features[self.z_band[1] < error]
        return int(below[0]) if len(below) else None

    def deviation(self, size: int) -> float:
        """log10 of the estimate's standard deviation relative to the kernel, for the median pair and `size` features.

        Choromanski et al. 2021, Lemma 2: the relative variance is (exp(||x + y||^2) - 1) / m for independent features;
        orthogonal ones have less.
        """
        # log(exp(d) - 1) without overflow
        logarithm = self.distance + np.log(-np.expm1(-max(self.distance, np.finfo(float).tiny)))
        return float((logarithm - np.log(size)) / 2 / np.log(10))


@dataclass(frozen=True)
class LinearRun:
    """One head with three kinds of weights."""

    exact: Array
    """(query, key): of the run"""
    elu: Array
    """(query, key): of elu(x) + 1"""
    random: Array
    """(query, key): of one draw of random features"""
    weight_errors: Array
    """(2,): mean total variation of `elu` and `random`"""
    z_errors: Array
    """(2,): ||z - pattern v|| / ||pattern v|| of `elu` and `random`"""
    recurrence: float | None
    """largest difference between z from one state, without any matrix of weights, and z from `random`, relative to the
    largest |z|; None where that needs more than adding keys: a window drops keys again, a bias is another for each pair
    """


def linear_attention(attention: Attention, head: int, size: int, draw: int) -> LinearRun:
    """The head's weights as the run has them, with elu(x) + 1, and with `size` random features of one draw."""
    mask, bias, v = attention.mask[head], _bias(attention, head), attention.v[head].astype(np.float64)
    q, k = (x[head].astype(np.float64) for x in (attention.q, attention.k))
    elu = kernel_weights(elu_features(q), elu_features(k), mask, bias)
    omega = draw_omega(max(FEATURES), q.shape[1], draw)[:size]
    log_x, log_y = (positive_features(x, omega) for x in _kernel_inputs(attention, head))
    random = kernel_weights(log_x, log_y, mask, bias)
    errors = [_errors(attention, head, weights) for weights in (elu, random)]
    recurrence = None
    if bias is None and _only_adds(mask):
        z = random @ v
        difference = abs(recurrent_attention(log_x, log_y, v, mask) - z).max()
        recurrence = float(difference / max(abs(z).max(), np.finfo(float).tiny))
    weight_errors, z_errors = np.array(errors).T
    return LinearRun(attention.pattern[head].astype(np.float64), elu, random, weight_errors, z_errors, recurrence)


def sweep_features(attention: Attention, head: int) -> FeatureSweep:
    """The error of each number of features in each of `DRAWS` draws; of a draw, the first m features are used."""
    x, y = _kernel_inputs(attention, head)
    mask, bias = attention.mask[head], _bias(attention, head)
    errors = np.zeros((2, DRAWS, len(FEATURES)))
    for draw in range(DRAWS):
        omega = draw_omega(max(FEATURES), x.shape[1], draw)
        log_x, log_y = positive_features(x, omega), positive_features(y, omega)
        for column, size in enumerate(FEATURES):
            weights = kernel_weights(log_x[:, :size], log_y[:, :size], mask, bias)
            errors[:, draw, column] = _errors(attention, head, weights)
    products = x @ y.T
    scores = np.where(mask, products if bias is None else products + bias, -np.inf)
    weights_limit, z_limit = _errors(attention, head, softmax(scores))
    distances = (x**2).sum(axis=1)[:, None] + 2 * products + (y**2).sum(axis=1)
    return FeatureSweep(
        features=np.array(FEATURES),
        weights=errors[0],
        z=errors[1],
        weights_band=np.percentile(errors[0], BAND, axis=0),
        z_band=np.percentile(errors[1], BAND, axis=0),
        weights_limit=weights_limit,
        z_limit=z_limit,
        distance=float(np.median(distances[mask])) if mask.any() else 0.0,
    )


def elu_features(x: Array) -> Array:
    """log(elu(x) + 1): log(x + 1) above 0, x itself below. (position, d_k) -> (position, d_k)."""
    return np.where(x > 0, np.log1p(np.maximum(x, 0)), x)


def positive_features(x: Array, omega: Array) -> Array:
    """log of exp(omega x - ||x||^2 / 2) / sqrt(m) (Choromanski et al. 2021, Lemma 1).

    Args:
        x: (position, d_k)
        omega: (m, d_k), standard normal rows.

    Returns:
        (position, m); the products of exp of two such rows sum to an unbiased estimate of exp(x . y).
    """
    return x @ omega.T - (x**2).sum(axis=1, keepdims=True) / 2 - np.log(len(omega)) / 2


def draw_omega(size: int, width: int, seed: int) -> Array:
    """(size, width): standard normal rows, those of each block of `width` rows orthogonal to each other.

    Choromanski et al. 2021, section 2.4: random directions from a QR decomposition, lengths of independent normal
    vectors.
    """
    numbers = np.random.default_rng(seed)
    blocks = []
    for _ in range(-(-size // width)):
        directions, r = np.linalg.qr(numbers.standard_normal((width, width)))
        lengths = np.linalg.norm(numbers.standard_normal((width, width)), axis=1)
        # The signs of R's diagonal make the directions uniform.
        blocks.append(lengths[:, None] * (directions * np.sign(np.diag(r))).T)
    return np.concatenate(blocks)[:size]


def kernel_weights(log_q: Array, log_k: Array, mask: Array, bias: Array | None = None) -> Array:
    """(query, key): phi(q_i) . phi(k_j) e^bias, divided by its sum over the visible keys; 0 where masked.

    Args:
        log_q: (query, m), log phi(q).
        log_k: (key, m), log phi(k).
        mask: bool (query, key), True = visible.
        bias: (query, key), added to the logarithm of the kernel; None: nothing is.
    """
    # A factor per feature moves from k to q, and one per query leaves the quotient as it is: nothing overflows.
    highest = log_k.max(axis=0)
    moved = log_q + highest
    products = np.exp(moved - moved.max(axis=1, keepdims=True)) @ np.exp(log_k - highest).T
    added = np.where(mask, 0 if bias is None else bias, -np.inf)
    products *= np.exp(added - added.max(axis=1, keepdims=True, initial=np.finfo(float).min))
    for query in np.flatnonzero(mask.any(axis=1) & (products.sum(axis=1) < UNDERFLOW)):
        exponents = log_q[query] + log_k + added[query][:, None]
        products[query] = np.exp(exponents - exponents.max()).sum(axis=1)
    return products / np.where(mask.any(axis=1), products.sum(axis=1), 1)[:, None]


def recurrent_attention(log_q: Array, log_k: Array, v: Array, mask: Array) -> Array:
    """z from one state: S = sum phi(k_j) v_j^T and s = sum phi(k_j) over the keys seen so far.

    z_i = phi(q_i) S / phi(q_i) s (Katharopoulos et al. 2020, sections 3.3 and 3.4). Each key is added once, when the
    first query sees it: linear in n. As in FlashAttention, the state is rescaled when a key raises the largest exponent
    of a feature.

    Args:
        log_q: (query, m), log phi(q).
        log_k: (key, m), log phi(k).
        v: (key, d_v)
        mask: bool (query, key); a key that one query sees, all later ones see.

    Raises:
        ValueError: a query does not see a key that an earlier one saw.
    """
    if not _only_adds(mask):
        raise ValueError("a query does not see a key that an earlier one saw, so the state cannot be a running sum")
    with_ones = np.concatenate([v, np.ones((len(v), 1))], axis=1)
    state, highest = np.zeros((log_k.shape[1], with_ones.shape[1])), np.full(log_k.shape[1], -np.inf)
    seen, z = np.zeros(len(v), dtype=bool), np.zeros((len(log_q), v.shape[1]))
    for query, row in enumerate(log_q):
        new = mask[query] & ~seen
        if new.any():
            raised = np.maximum(highest, log_k[new].max(axis=0))
            state = np.exp(highest - raised)[:, None] * state + np.exp(log_k[new] - raised).T @ with_ones[new]
            seen, highest = seen | new, raised
        if seen.any():
            exponents = row + highest
            sums = np.exp(exponents - exponents.max()) @ state
            z[query] = sums[:-1] / sums[-1]
    return z


def _only_adds(mask: Array) -> bool:
    return not (mask[:-1] & ~mask[1:]).any()


def _kernel_inputs(attention: Attention, head: int) -> tuple[Array, Array]:
    """x and y, q and k times sqrt(scale / tau): exp(x . y) is the run's kernel before soft cap and bias."""
    factor = np.sqrt(attention.scale / float(attention.temperature[head]))
    q, k = (x[head].astype(np.float64) for x in (attention.q, attention.k))
    return q * factor, k * factor


def _bias(attention: Attention, head: int) -> Array | None:
    """(query, key): the bias divided by the temperature; None where there is none but 0."""
    if attention.bias is None or not attention.bias[head].any():
        return None
    return attention.bias[head].astype(np.float64) / float(attention.temperature[head])


def _errors(attention: Attention, head: int, weights: Array) -> tuple[float, float]:
    """Mean total variation of the weights, and ||weights v - pattern v|| / ||pattern v||."""
    pattern, v = (x[head].astype(np.float64) for x in (attention.pattern, attention.v))
    of_run = pattern @ v
    length = max(float(np.linalg.norm(of_run)), np.finfo(np.float32).tiny)
    return float(total_variation(pattern, weights).mean()), float(np.linalg.norm(weights @ v - of_run) / length)
