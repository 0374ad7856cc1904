"""The pages of the app. A page is one file here and one entry in PAGES; menu, cards and tests follow from it.

The menu is a path: what a head computes comes before the model that it is a part of, and that before changes of it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from model.needs import Need

if TYPE_CHECKING:
    from pages.views import View


@dataclass(frozen=True)
class Page:
    """A page as it appears in the menu, in the home page's cards and in its own header."""

    path: str
    """of its file, relative to app.py"""
    title: str
    """a noun, in the menu"""
    icon: str
    """Material symbol, `:material/name:`"""
    summary: str
    """what one does and sees there, for the card"""
    look_for: str
    """one sentence: where to look first; the heading's tooltip"""
    question: str = ""
    """that the page answers: its heading; empty: the title"""
    needs: tuple[Need, ...] = ()
    """what the opened model must have"""
    ignores: tuple[str, ...] = ()
    """keys of the sidebar's controls that change nothing on the page"""
    views_module: str = ""
    """the module of its views, if it has any"""
    tabs_key: str = "part"
    """of its open tab in the link"""
    first_kind: str = ""
    """of attention, while nobody has chosen another; empty: the model's first"""
    stacked: bool = False
    """whether its views stand one below the other; else each is a tab"""
    first_tab: str = ""
    """title of the tab that is open at first; empty: the first one"""

    @property
    def name(self) -> str:
        """With which the keys of its pictures, and the names of its files, begin."""
        return Path(self.path).stem

    @property
    def heading(self) -> str:
        """What stands above the page."""
        return self.question or self.title

    @property
    def views(self) -> Sequence["View"]:
        """Its views, imported now: importing them loads the model's code."""
        if not self.views_module:
            return ()
        from pages.views import views_of

        return views_of(self.views_module)

    @property
    def answer(self) -> "View | None":
        """The view that answers its question in one line, if it has one."""
        if not self.views_module:
            return None
        from pages.views import answer_of

        view = answer_of(self.views_module)
        return view and replace(view, needs=self.needs)


@cache
def page_of(file: str) -> Page:
    """The entry of PAGES for a page's `__file__`."""
    return next(page for pages in PAGES.values() for page in pages if page.path.endswith(f"/{Path(file).name}"))


def first_page_for(features: Collection[Need]) -> Page | None:
    """The first page of which a model with these features lacks nothing."""
    pages = (page for section in PAGES.values() for page in section)
    return next((page for page in pages if set(page.needs) <= set(features)), None)


def next_page(page: Page, features: Collection[Need]) -> Page | None:
    """The page that follows in the menu, of which a model with these features lacks nothing; None after the last."""
    pages = [one for section in PAGES.values() for one in section]
    following = pages[pages.index(page) + 1 :]
    return next((one for one in following if set(one.needs) <= set(features)), None)


PAGES: Mapping[str, tuple[Page, ...]] = MappingProxyType(
    {
        "Explore": (
            Page(
                path="pages/translate.py",
                stacked=True,
                views_module="pages.views.explore.translate",
                title="Translate",
                question="How is this translated?",
                icon=":material/translate:",
                summary="Type a sentence, read its translation, and see how sure the model was of every token.",
                look_for="A Transformer translates your sentence. Click a word: here is how one of its heads looks at "
                "the others, number by number.",
                needs=(Need.CROSS_ATTENTION, Need.LOGITS),
            ),
            Page(
                path="pages/continue_text.py",
                views_module="pages.views.explore.continue_text",
                title="Continue a text",
                question="What does the model write next?",
                icon=":material/edit_note:",
                summary="Type the beginning of a text, let a language model continue it, and see how sure it was of "
                "every token.",
                look_for="A language model predicts the next token from those before it, and writes by doing so again "
                "and again. Below: how probable each token was, yours and its own, and what else it considered.",
                needs=(Need.LANGUAGE_MODEL,),
            ),
            Page(
                path="pages/fill_in.py",
                views_module="pages.views.explore.fill_in",
                title="Fill in",
                question="Which word fits the gap?",
                icon=":material/edit_square:",
                summary="Hide words in a text, let a masked language model guess them from both sides, and see where "
                "it looked.",
                look_for="Click a word to hide it. The model reads what comes before and after it, and gives each "
                "token of its vocabulary a probability for that place.",
                needs=(Need.MASKED_MODEL, Need.LOGITS),
            ),
        ),
        "Attention": (
            Page(
                path="pages/attention_step_by_step.py",
                views_module="pages.views.attention.attention_step_by_step",
                title="Queries, keys and values",
                question="How does a head get from words to weights?",
                icon=":material/footprint:",
                summary="Follow one head from queries and keys to its output, down to each multiplication and sum.",
                look_for="Step through the seven stages of one head: each matrix is computed from the previous one.",
                needs=(
                    Need.FULL_ROWS,
                    Need.MATRICES,
                ),
            ),
            Page(
                path="pages/temperature.py",
                views_module="pages.views.attention.temperature",
                title="Softmax and temperature",
                question="How sharp is attention, and what decides it?",
                icon=":material/thermostat:",
                summary="Make attention sharper or flatter, live, and see why the paper divides the scores by √dₖ.",
                look_for="Lower τ and each row concentrates on one key; raise it and the row spreads over all keys.",
                needs=(Need.FULL_ROWS,),
            ),
            Page(
                path="pages/masks.py",
                first_kind="decoder_self",
                views_module="pages.views.attention.masks",
                title="Masks",
                question="What can each token see?",
                icon=":material/visibility_off:",
                summary="What a token may not attend to, why masking comes before the softmax, and what leaks "
                "without it.",
                look_for="In decoder self-attention the upper half of the matrix is masked, and each row's weights sum "
                "to 1 over the remaining cells. The paper's encoder hides nothing but padding.",
                needs=(
                    Need.FULL_ROWS,
                    Need.LOGITS,
                ),
            ),
            Page(
                path="pages/three_families.py",
                views_module="pages.views.attention.three_families",
                tabs_key="families_part",
                title="Three families",
                question="What tells the three families apart?",
                icon=":material/family_history:",
                summary="Encoder-decoder, encoder-only, decoder-only: the same attention, masked in three ways.",
                look_for="All attention of the translator in one matrix, the source's tokens first. Look at what is "
                "missing: no source token attends to the target.",
                needs=(Need.DECODER, Need.CROSS_ATTENTION),
                ignores=("kind",),
            ),
            Page(
                path="pages/heads_and_layers.py",
                views_module="pages.views.attention.heads_and_layers",
                tabs_key="heads_part",
                title="Heads and layers",
                question="What does each head do?",
                icon=":material/grid_view:",
                summary="See every head of every layer at once, open one, and measure what it does.",
                look_for="Each small square is one head. A diagonal stripe means that every token attends to a "
                "neighbour; a bright column means that all tokens attend to the same one. Click a square to open "
                "it.",
                needs=(Need.MATRICES,),
            ),
            Page(
                path="pages/positional_encoding.py",
                views_module="pages.views.attention.positional_encoding",
                title="Positions",
                question="How does the model know the order of words?",
                icon=":material/waves:",
                summary="How a model that reads all tokens at once knows their order.",
                look_for="Shuffle the words: attention alone would not notice. What is added to the embeddings, or "
                "done to queries and keys, tells it their order.",
            ),
        ),
        "Model": (
            Page(
                path="pages/whole_model.py",
                views_module="pages.views.model.whole_model",
                tabs_key="whole_tab",
                title="The whole model",
                question="How does a token get through the model?",
                icon=":material/schema:",
                summary="Figure 1 of the paper, brought to life: send a token through every box, see what each adds, "
                "and switch boxes off.",
                look_for="Press Play, or step with the arrow keys: the token goes through every box, and the lines are "
                "as thick as the vectors that they carry.",
                needs=(
                    Need.FULL_ROWS,
                    Need.STREAM,
                    Need.LOGITS,
                ),
                ignores=("kind", "layer", "head"),
            ),
            Page(
                path="pages/tokens_and_embeddings.py",
                views_module="pages.views.model.tokens_and_embeddings",
                tabs_key="tokens_tab",
                title="Tokens and embeddings",
                question="What does the model read?",
                icon=":material/token:",
                summary="Split a sentence into tokens, see the vector behind each, and find its nearest neighbours.",
                look_for="Choose a token: its row of the embedding matrix, plus the encoding of its position where the "
                "model adds one, is all that the model ever sees of it.",
                ignores=("kind", "layer", "head"),
            ),
            Page(
                path="pages/layer_by_layer.py",
                views_module="pages.views.model.layer_by_layer",
                tabs_key="layers_tab",
                title="Layer by layer",
                question="What does each layer add?",
                icon=":material/layers:",
                summary="Follow one token's residual stream through every sub-layer: what is added, what the norm "
                "does, what it predicts.",
                look_for="Follow the chosen token from left to right: each sub-layer adds a vector to its residual "
                "stream, and on the whole the stream drifts away from the input embedding.",
                needs=(Need.STREAM,),
                ignores=("kind", "layer", "head"),
            ),
            Page(
                path="pages/decoding.py",
                views_module="pages.views.model.decoding",
                first_tab="Beam",
                title="Decoding",
                question="How is the text chosen, token by token?",
                icon=":material/account_tree:",
                summary="How a translation or a continuation is generated token by token: greedy decoding, the beam "
                "search tree, sampling, and the key-value cache.",
                look_for="Follow the thick path through the tree: at each step beam search keeps a few prefixes and "
                "drops the rest, and only the finished ones show which was best.",
                needs=(Need.DECODER, Need.LOGITS),
                ignores=("kind",),
            ),
            Page(
                path="pages/training.py",
                views_module="pages.views.model.training",
                tabs_key="training",
                title="Training",
                question="How did the model learn this?",
                icon=":material/trending_up:",
                summary="How the model was trained: loss and score, learning rate, label smoothing, one head's "
                "weights at several steps; and what each choice is worth, in small training runs of our own.",
                look_for="Watch the development loss fall and the score improve. The tabs show the learning "
                "rate, the smoothed targets, and one head at several training steps.",
                needs=(Need.LOGITS,),
            ),
            Page(
                path="pages/gradients.py",
                views_module="pages.views.model.gradients",
                title="Gradients",
                question="How does an error reach every layer?",
                icon=":material/undo:",
                summary="How the loss flows back through the model: with and without residual connections and √dₖ, "
                "through the softmax, over distance; and whether attention explains a prediction.",
                look_for="The gradient says how much the loss, −log p of the target, would change with each number of "
                "the run. Follow it from the top layer down to the input, and see how it shrinks "
                "or grows without the model's parts.",
                needs=(Need.LOGITS,),
            ),
            Page(
                path="pages/model_card.py",
                views_module="pages.views.model.model_card",
                tabs_key="card",
                title="Model card",
                question="What model is this?",
                icon=":material/id_card:",
                summary="What this model is: scores, size compared with the paper's, cost of attention, data and "
                "licence.",
                look_for="Compare the bars: the parameters of the embeddings, of attention and of the feed-forward "
                "networks. The tabs show every score with its signature, the configuration beside the paper's, "
                "and the work that this sentence takes.",
            ),
            Page(
                path="pages/verification.py",
                views_module="pages.views.model.verification",
                tabs_key="claims",
                title="Verification",
                question="Is the picture what the model computed?",
                icon=":material/verified:",
                summary="Twenty-one claims that tie every picture to the running model, measured on your sentence.",
                look_for="Circles are the errors of this run. Diamonds, with this project's models, are those of the "
                "same run in double precision: if the diamond is nine orders of magnitude smaller, the error was "
                "rounding; a bug would not shrink.",
            ),
        ),
        "Experiment": (
            Page(
                path="pages/what_if.py",
                views_module="pages.views.experiment.what_if",
                title="What if",
                question="What if a part of the model were different?",
                icon=":material/science:",
                summary="Change the running model: switch off heads, edit masks and weights, remove positions; see how "
                "the translation changes.",
                look_for="Change something and compare: how probable the old text still is, what the model "
                "writes instead, and where its attention weights changed.",
                needs=(Need.LOGITS,),
            ),
            Page(
                path="pages/who_chose.py",
                views_module="pages.views.experiment.who_chose",
                title="Who chose this word?",
                icon=":material/person_search:",
                summary="Which head, through which token, raised a word above its rivals; and what happens when that "
                "head is off.",
                look_for="The logit of a word is a sum over all parts of the model. Find the tallest bar, switch its "
                "head off, and see whether the word falls.",
                needs=(
                    Need.MATRICES,
                    Need.STREAM,
                    Need.LOGITS,
                ),
            ),
            Page(
                path="pages/side_by_side.py",
                views_module="pages.views.experiment.side_by_side",
                title="Side by side",
                question="How do two heads, texts or models differ?",
                icon=":material/compare:",
                summary="Compare two heads, two sentences or two models on one colour scale, with their difference.",
                look_for="Left is what the sidebar selects, right is what you choose here. In the third map, red cells "
                "have more weight on the right, blue cells more on the left.",
            ),
        ),
        "Learn": (
            Page(
                path="pages/learn.py",
                views_module="pages.views.learn.learn",
                title="Learn",
                question="What do you want to understand?",
                icon=":material/school:",
                summary="Lessons on real runs, from a dot product to today's models: at each station something to do, "
                "something to look for, and a question that the run itself answers; plus exercises and interview "
                "questions.",
                look_for="Each station sets a sentence and a head, and asks a question. The answer is computed from "
                "the run on screen: change the sentence and it changes too.",
            ),
            Page(
                path="pages/paper.py",
                views_module="pages.views.learn.paper",
                tabs_key="paper",
                title="The paper, line by line",
                question="What does the paper say, and what does this model show?",
                icon=":material/article:",
                summary="“Attention Is All You Need” in its own order: short quotes, equations, figures and tables, "
                "each beside this run's number; the whole program in one file.",
                look_for="Open the paper beside this page. Each sentence has this run's number, what to look for, and "
                "a link to where it is shown.",
            ),
            Page(
                path="pages/often_told_wrong.py",
                views_module="pages.views.learn.often_told_wrong",
                tabs_key="said",
                title="Often told wrong",
                question="Is it true what people say about attention?",
                icon=":material/fact_check:",
                summary="What explanations get wrong, what is right, and common claims to test on your own sentence.",
                look_for="Decide whether you believe a statement, then press its button. A result on one text and one "
                "model is an example, not a proof.",
                ignores=("kind", "layer", "head"),
            ),
            Page(
                path="pages/glossary.py",
                views_module="pages.views.learn.glossary",
                tabs_key="glossary",
                title="Glossary",
                question="What does this word mean?",
                icon=":material/menu_book:",
                summary="Every term in plain words, with its formula, its other names, and a link to where it is live.",
                look_for="Look up a word, and follow its link to see it on your own sentence.",
                ignores=("kind", "layer", "head"),
            ),
        ),
        "Beyond": (
            Page(
                path="pages/why_attention.py",
                views_module="pages.views.beyond.why_attention",
                tabs_key="why",
                title="Why attention",
                question="Why attention and not recurrence?",
                icon=":material/speed:",
                summary="What a layer costs and how far information travels in it: attention, recurrence and "
                "convolution, counted and timed; two LSTMs beside a Transformer, step by step; and Mamba beside "
                "attention.",
                look_for="Find your sentence on the lines: left of the circle, at n < d, the n² d of self-attention in "
                "Table 1 is less than the n d² of recurrence, and at any length it connects any two tokens in "
                "one step.",
            ),
            Page(
                path="pages/since_2017.py",
                views_module="pages.views.beyond.since_2017",
                tabs_key="since",
                title="Since 2017",
                question="What has changed since 2017?",
                icon=":material/update:",
                summary="RoPE, RMSNorm, pre-norm, SwiGLU, shared keys and values: what replaced the paper's parts, "
                "on the open model's own numbers.",
                look_for="Five parts of the 2017 layer have been replaced in most models since. The table says which "
                "of them this model has, in bold; each tab shows one on the numbers of this run.",
                needs=(Need.STREAM,),
            ),
            Page(
                path="pages/family_tree.py",
                views_module="pages.views.beyond.family_tree",
                tabs_key="family",
                title="Family tree",
                question="What became of the Transformer?",
                icon=":material/account_tree:",
                summary="Models since 2017, computed from their published sizes and drawn to scale; one sentence cut "
                "in three ways; training then and now; trained, fine-tuned, prompted.",
                look_for="Each circle is a model. Click one: it is drawn to scale beside the one that is open, which "
                "may be smaller than a pixel.",
                ignores=("kind", "layer", "head"),
            ),
            Page(
                path="pages/efficient_attention.py",
                views_module="pages.views.beyond.efficient_attention",
                tabs_key="efficient",
                title="Efficient attention",
                question="How can attention do with less than n × n?",
                icon=":material/view_comfy:",
                summary="FlashAttention tile by tile and linear attention on the open model's own q, k and v, sparse "
                "patterns in the whole model; what each kind of attention costs up to a million tokens.",
                look_for="The scores are an n × n matrix. FlashAttention keeps one tile of it at a time, linear "
                "attention replaces it with sums of features, patterns leave cells out, and “Cost over n” counts and "
                "times what that saves.",
                needs=(
                    Need.FULL_ROWS,
                    Need.MATRICES,
                ),
            ),
        ),
    }
)
