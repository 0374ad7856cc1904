"""The pages of the app. A page is one file here and one line in PAGES; menu, cards and tests follow from it."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Page:
    """One page, as the menu, the home page's cards and the page's own header show it."""

    path: str
    """of its file, from the folder of app.py"""
    title: str
    icon: str
    """Material symbol, `:material/name:`"""
    summary: str
    """what the person does and sees there, for the card"""
    look_for: str
    """one sentence under the title: where to look first"""


PAGES: Mapping[str, tuple[Page, ...]] = MappingProxyType(
    {
        "See": (
            Page(
                path="pages/translate.py",
                title="Translate",
                icon=":material/translate:",
                summary="Type a sentence, read the translation, and see how sure the model was of every word.",
                look_for="Type an English sentence in the sidebar: a small Transformer, the model of “Attention Is All "
                "You Need”, translates it into German, and every number below was read out of that run.",
            ),
            Page(
                path="pages/attention_step_by_step.py",
                title="Attention, step by step",
                icon=":material/footprint:",
                summary="Follow one head from queries and keys to its output, down to every product and sum.",
                look_for="Go through the seven steps of one head: each step's matrix is made from the one before it.",
            ),
            Page(
                path="pages/heads_and_layers.py",
                title="Heads and layers",
                icon=":material/grid_view:",
                summary="See every head of every layer at once, open one, and find out by numbers what it does.",
                look_for="Each small square is one head: stripes beside the diagonal look at neighbours, columns at "
                "one word from everywhere; click a square to open it.",
            ),
        ),
        "Understand": (
            Page(
                path="pages/tokens_and_embeddings.py",
                title="Tokens and embeddings",
                icon=":material/token:",
                summary="Cut a sentence into pieces, see the numbers that stand for each, and who its neighbours are.",
                look_for="Choose a token: its row of the embedding matrix and the row of its position are added, "
                "number by number, and that sum is all that the model ever reads of it.",
            ),
            Page(
                path="pages/positional_encoding.py",
                title="Positional encoding",
                icon=":material/waves:",
                summary="How a model that sees all words at once learns which one came first.",
                look_for="Each position gets its own pattern of waves: fast ones on the left, slow ones on the right.",
            ),
            Page(
                path="pages/masks.py",
                title="Masks",
                icon=":material/visibility_off:",
                summary="What a word may not look at, why it is hidden before the softmax, and what leaks otherwise.",
                look_for="Choose decoder self-attention: half of its square is hatched, and the weights of each row "
                "are shared among the cells that remain.",
            ),
            Page(
                path="pages/temperature.py",
                title="Temperature",
                icon=":material/thermostat:",
                summary="Make attention sharper or flatter, live, and see why the scores are divided by √d_k.",
                look_for="Pull τ to the left and each row's weight runs together on one key; pull it to the right and "
                "it spreads over all of them.",
            ),
            Page(
                path="pages/layer_by_layer.py",
                title="Layer by layer",
                icon=":material/layers:",
                summary="Follow one token through every sub-layer: what is added, what the norm does, what it says.",
                look_for="Follow the chosen token from left to right: each sub-layer adds a vector to it, and step by "
                "step less is left of the word that went in.",
            ),
            Page(
                path="pages/decoding.py",
                title="Decoding",
                icon=":material/account_tree:",
                summary="How a sentence comes out, token by token: greedy, beam search as a tree, sampling, and the "
                "cache that makes it fast.",
                look_for="Follow the thick path through the tree: at each step beam search keeps a few prefixes, drops "
                "the others, and only the finished sentences show which was best.",
            ),
        ),
        "Experiment": (
            Page(
                path="pages/what_if.py",
                title="What if",
                icon=":material/science:",
                summary="Change the running model: silence heads, edit masks and weights, drop positions; see what the "
                "translation does.",
                look_for="Change something, and compare: how probable the old translation still is, what the model "
                "writes instead, and where its attention weights moved.",
            ),
            Page(
                path="pages/side_by_side.py",
                title="Side by side",
                icon=":material/compare:",
                summary="Put two heads, two sentences or two models beside each other, on one colour scale, with the "
                "difference.",
                look_for="Left is what the sidebar says, right is what you choose here: in the third map, red cells "
                "have more weight on the right, blue ones more on the left.",
            ),
        ),
        "Background": (
            Page(
                path="pages/training.py",
                title="Training",
                icon=":material/trending_up:",
                summary="How the model learned: its loss and score, its learning rate, what it aimed at, and a head "
                "while it formed.",
                look_for="Follow the development loss down and BLEU up; the tabs below show what steered them, and "
                "what one head looked like on the way.",
            ),
            Page(
                path="pages/why_attention.py",
                title="Why attention",
                icon=":material/speed:",
                summary="What a layer costs and how far information travels in it: attention beside recurrence and "
                "convolution, counted and timed.",
                look_for="Find your sentence on the lines: left of the circle, where n = d, self-attention takes fewer "
                "operations than recurrence, and at any length it joins any two words in one step.",
            ),
            Page(
                path="pages/verification.py",
                title="How it is known",
                icon=":material/verified:",
                summary="Twenty claims that make every picture here the model's own, measured on your sentence.",
                look_for="Circles are this run's errors, diamonds the same run in double precision: where the diamond "
                "lies nine digits further left, the circle was rounding; a mistake would not have moved.",
            ),
            Page(
                path="pages/model_card.py",
                title="Model card",
                icon=":material/id_card:",
                summary="What this model is: scores, size beside the paper's, what attention costs, data and terms.",
                look_for="One curve is steeper than the others: attention's own work grows with the square of the "
                "sentence's length, all the rest in step with it.",
            ),
        ),
    }
)
