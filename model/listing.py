"""An opened model as one Python file, which needs PyTorch, safetensors and SentencePiece and nothing of this project.

The file is made from the classes that run, `model/network`: their source, with each choice decided as the opened model
has it, and without what only this app needs: hook points, caches, the fused attention, random initialisation.
"""

import ast
import copy
import inspect
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import FunctionType
from typing import Any

import torch.nn.functional as F
from torch import nn

from model.hooks import HookPoint
from model.network.config import TransformerConfig
from model.network.network import Network

GIVEN: Mapping[str, Any] = {"cache": None, "start": 0}
"""parameters that no call of the file passes -> their value"""
DECIDED: Mapping[str, bool] = {"self._explicit_needed(q)": True, "self.temperature.observed": False}
"""tests that depend on who looks -> as they are when every step is written out"""
LEFT_OUT = {"let_calls_be_kept", "initialise"}
"""functions that only this app calls"""
STANDS_FOR = {"Dropout": "nn.Dropout"}
"""our class -> PyTorch's, which does the same when nothing is trained"""
STEPS = {"encoder_decoder": "translate", "decoder": "continue_text", "encoder": "fill_in"}
"""family -> the function of the file that runs the model"""

SHORT_LINE = 88
"""characters of a line that two are joined to"""

_PASSED = re.compile("[;,] [^;,.:]*`(?:" + "|".join(GIVEN) + ")`[^;.:]*")
"""what a docstring says about a parameter that is not passed"""
_IMPORTS = {
    "math": "import math",
    "sys": "import sys",
    "Callable": "from collections.abc import Callable",
    "dataclass": "from dataclasses import dataclass",
    "Path": "from pathlib import Path",
    "": "",
    "torch": "import torch",
    "F": "import torch.nn.functional as F",
    "load_file": "from safetensors.torch import load_file",
    "SentencePieceProcessor": "from sentencepiece import SentencePieceProcessor",
    "nn": "from torch import Tensor, nn",
}
"""a name -> where it comes from, in the order of the file"""

_LOAD = '''
def load(folder: Path) -> tuple[{network}, SentencePieceProcessor]:
    """The trained weights in the network, and the vocabulary."""
    model, weights = {network}(TransformerConfig()).eval(), load_file(folder / "model.safetensors")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(weights[name])
    return model, SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))
'''
_ENDS = {
    "translate": '''
@torch.inference_mode()
def translate(model: Transformer, vocabulary: SentencePieceProcessor, text: str) -> str:
    """The most probable token each time, until the end token (greedy search)."""
    src, tgt = torch.tensor([[*vocabulary.encode(text), EOS]]), [BOS]
    while len(tgt) <= 2 * src.shape[1] + 10:
        logits = model(src, torch.tensor([tgt]))[0, -1]
        logits[:EOS] = -torch.inf
        tgt.append(int(logits.argmax()))
        if tgt[-1] == EOS:
            break
    return vocabulary.decode([token for token in tgt if token not in (BOS, EOS)])
''',
    "continue_text": '''
@torch.inference_mode()
def continue_text(model: DecoderOnly, vocabulary: SentencePieceProcessor, text: str) -> str:
    """The text, and the most probable token after it each time, until the end token or for 30 tokens."""
    tokens = [BOS, *vocabulary.encode(text)]
    for _ in range(30):
        logits = model(torch.tensor([tokens]))[0, -1]
        logits[:EOS] = -torch.inf
        if int(logits.argmax()) == EOS:
            break
        tokens.append(int(logits.argmax()))
    return vocabulary.decode(tokens[1:])
''',
    "fill_in": '''
@torch.inference_mode()
def fill_in(model: EncoderOnly, vocabulary: SentencePieceProcessor, text: str) -> str:
    """The text with the most probable token at each place: <mask> gets a guess, most other tokens stay."""
    logits = model(torch.tensor([[BOS, *vocabulary.encode(text), EOS]]))[0, 1:-1]
    logits[:, : EOS + 2] = -torch.inf
    return vocabulary.decode(logits.argmax(dim=-1).tolist())
''',
}
_MAIN = """
if __name__ == "__main__":
    print({step}(*load(Path(sys.argv[1])), sys.argv[2]))
"""


def whole_program(network: Network, name: str) -> str:
    """The file, as text.

    Args:
        network: of this project.
        name: of its checkpoint, for the file's first line.

    Raises:
        ValueError: the network is not one of this project.
    """
    family = network.config.family
    if not type(network).__module__.startswith("model.network."):
        raise ValueError(f"{type(network).__name__} is not a network of this project")
    step = STEPS[family]
    parts = _Parts(network)
    parts.add(type(network))
    definitions = list(parts.sources.values())
    end = "\n\n".join(text.strip() for text in (_LOAD.format(network=type(network).__name__), _ENDS[step]))
    main = _MAIN.format(step=step).strip()
    body = "\n\n\n".join([*definitions, end.replace("\n\n@", "\n\n\n@"), main])
    constants = {one: value for one, value in parts.constants.items() if one in _names(ast.parse(body))}
    config = _config(network.config, body)
    body = "\n\n\n".join([f"{', '.join(constants)} = {', '.join(map(repr, constants.values()))}", config, body])
    used = _names(ast.parse(body))
    imports = "\n".join(line for one, line in _IMPORTS.items() if not one or one in used)
    head = f'"""{name}: the whole model, in one file. Run: python FILE FOLDER "text". FOLDER is the checkpoint\'s."""'
    return f"{head}\n\n{imports}\n\n{body}\n"


def _config(config: TransformerConfig, body: str) -> str:
    """The values of the configuration that are read in a text of Python, as a class."""
    read = [
        node.attr
        for node in ast.walk(ast.parse(body))
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("config", "self.config")
    ]
    fields = {one: getattr(config, one) for one in dict.fromkeys(read)}
    lines = [f"    {one}: {type(value).__name__} = {value!r}" for one, value in fields.items()]
    return "\n".join(["@dataclass", "class TransformerConfig:", *lines])


class _Parts:
    """The classes and functions of the file, each after those that it needs."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.sources: dict[str, str] = {}
        self.constants: dict[str, Any] = {"PAD": 0, "BOS": 2, "EOS": 3}
        self._begun: set[str] = set()

    def add(self, item: type | FunctionType) -> None:
        """Add a class or a function, and first what it needs."""
        if item.__name__ in self._begun:
            return
        self._begun.add(item.__name__)
        node = self._class(item) if isinstance(item, type) else self.function(item)
        scope = vars(sys.modules[item.__module__])
        bases = {base.__name__: base for base in getattr(item, "__bases__", ())}
        for one in sorted(_names(node)):
            needed = bases.get(one, scope.get(one))
            ours = getattr(needed, "__module__", "").startswith("model.network.")
            if ours and isinstance(needed, type | FunctionType) and needed is not TransformerConfig:
                self.add(needed)
            elif one.isupper() and isinstance(needed, int | float):
                self.constants[one] = needed
        self.sources[item.__name__] = "\n".join(map(_plain, ast.unparse(node).split("\n")))

    def function(self, item: FunctionType) -> ast.FunctionDef:
        """The function, with its tests decided."""
        node = ast.parse(inspect.getsource(item)).body[0]
        node = _Decided(self.network, (), vars(sys.modules[item.__module__])).visit(node)
        _join_lines(node)
        return node

    def _class(self, item: type) -> ast.ClassDef:
        """The class with the methods that the file calls, and without attributes that none of them reads."""
        instances = [module for module in self.network.modules() if isinstance(module, item)]
        decided = _Decided(self.network, instances, vars(sys.modules[item.__module__]))
        node = ast.parse(inspect.getsource(item)).body[0]
        methods = {one.name: one for one in node.body if isinstance(one, ast.FunctionDef)}
        if issubclass(item, Network):
            _join_output(node, methods["__init__"])
        entries = [name for name in ("__init__", "forward") if name in methods]
        waiting, reached = list(entries), set[str]()
        while waiting:
            name = waiting.pop()
            reached.add(name)
            waiting += _called(decided.visit(methods[name]), methods) - reached
        methods = {name: one for name, one in methods.items() if name in reached}
        _inline_expressions(methods)
        kept = _reachable(methods, entries)
        body: list[ast.stmt] = [methods[one] for one in methods if one in kept]
        read = {text for one in body for text in _attributes_read(one)}
        for one in body:
            _Unread(read, instances).visit(one)
            names = {part.id for part in ast.walk(one) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)}
            one.body = [statement for statement in one.body if not _is_idle(statement, names)] or [ast.Pass()]
            _join_lines(one)
        node.body = [ast.Expr(ast.Constant(_first_paragraph(item))), *body]
        return node


def _join_output(node: ast.ClassDef, start: ast.FunctionDef) -> None:
    """Write into a network's __init__ what it inherits: the configuration, and the projection to the vocabulary."""
    method = _tree(Network._add_output)
    output = [one for one in method.body if not _is_docstring(one)]
    (call,) = (one for one in start.body if ast.unparse(one).startswith("self._add_output("))
    (tokens,) = call.value.args
    text = "\n".join(map(ast.unparse, output)).replace("self.config", "config")
    text = text.replace("tokens.weight", f"{ast.unparse(tokens)}.weight")
    place = start.body.index(call)
    start.body[place : place + 1] = ast.parse(text).body
    start.body[0] = ast.parse("super().__init__()").body[0]
    start.body.insert(1, ast.parse("self.config = config").body[0])
    node.bases = [_expression("nn.Module")]


def _tree(function: FunctionType) -> ast.FunctionDef:
    return ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]


class _Decided(ast.NodeTransformer):
    """Decides each test as it comes out in all instances of a class, and unwraps hook points."""

    def __init__(self, network: Network, instances: Sequence[nn.Module], scope: Mapping[str, Any]) -> None:
        self.network, self.instances, self.scope = network, instances, scope
        self.given: dict[str, Any] = dict(GIVEN)
        if not any(kind.crosses for kind in network.kinds):
            self.given["cross"] = False

    def _values(self, node: ast.expr) -> list[Any]:
        """What an expression is in each instance; nothing where it cannot be told before a run."""
        text = ast.unparse(node)
        if text in DECIDED:
            return [DECIDED[text]]
        try:
            code = compile(text, "<listing>", "eval")
            names = {"config": self.network.config, **self.given}
            return [eval(code, {"__builtins__": {}}, names | {"self": one}) for one in self.instances or (None,)]
        except (NameError, AttributeError, TypeError):
            return []

    def _truth(self, test: ast.expr) -> bool | None:
        truths = {bool(value) for value in self._values(test) if not hasattr(value, "shape")}
        return truths.pop() if len(truths) == 1 else None

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.given = {name: value for name, value in self.given.items() if name in (*GIVEN, "cross")}
        given = set(self.given)
        arguments = node.args
        defaults = dict(zip([one.arg for one in arguments.args][::-1], arguments.defaults[::-1], strict=False))
        arguments.args = [one for one in arguments.args if one.arg not in given]
        arguments.defaults = [defaults[one.arg] for one in arguments.args if one.arg in defaults]
        node.body = self._statements(node.body) or [ast.Pass()]
        if node.name == "__init__":
            node.body = [one for one in node.body if not _is_docstring(one)]
        elif text := ast.get_docstring(node):
            node.body[0] = ast.Expr(ast.Constant(_PASSED.sub("", text.split("\n\n")[0].replace("\n", " "))))
        return node

    def _statements(self, body: Iterable[ast.stmt]) -> list[ast.stmt]:
        """Visited, up to the first return."""
        decided: list[ast.stmt] = []
        for one in body:
            visited = self.visit(one)
            decided += visited if isinstance(visited, list) else [visited] if visited else []
            if decided and isinstance(decided[-1], ast.Return):
                break
        return decided

    def visit_If(self, node: ast.If) -> Any:
        truth = self._truth(node.test)
        if truth is not None:
            return self._statements(node.body if truth else node.orelse)
        node.test = self.visit(node.test)
        node.body, node.orelse = self._statements(node.body), self._statements(node.orelse)
        return node if node.body else None

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        truth = self._truth(node.test)
        return self.generic_visit(node) if truth is None else self.visit(node.body if truth else node.orelse)

    def visit_For(self, node: ast.For) -> Any:
        parts = node.iter.args if isinstance(node.iter, ast.Call) and ast.unparse(node.iter.func) == "zip" else []
        if len(parts) == 2 and _names(parts[1]) & set(self.given):
            node.target, (node.iter, _), unused = node.target.elts[0], parts, node.target.elts[1]
            self.given[unused.id] = None
        node.iter, node.body = self.visit(node.iter), self._statements(node.body)
        return node if node.body else None

    def visit_Assign(self, node: ast.Assign) -> Any:
        values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
        if all(ast.unparse(value) == "HookPoint()" for value in values):
            return None
        node = self.generic_visit(node)
        (target,) = node.targets
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
        if all(isinstance(one, ast.Constant) for one in values) and all(isinstance(one, ast.Name) for one in names):
            self.given |= {name.id: value.value for name, value in zip(names, values, strict=True)}
            return None
        return node

    def visit_Expr(self, node: ast.Expr) -> Any:
        called = isinstance(node.value, ast.Call) and ast.unparse(node.value.func).rpartition(".")[2]
        empty = called == "register_buffer" and self._values(node.value.args[1]) == [None] * len(self.instances)
        return None if called in LEFT_OUT or empty else self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> Any:
        if self._is_hook(node.func):
            return self.visit(node.args[0])
        if ast.unparse(node.func) != "self.register_buffer":
            while node.args and ast.unparse(node.args[-1]) in self.given:
                node.args.pop()
        node.keywords = [one for one in node.keywords if ast.unparse(one.value) not in self.given]
        node = self.generic_visit(node)
        name = ast.unparse(node.func)
        if inlined := self._inlined(self.scope.get(name), node):
            return inlined
        if name in STANDS_FOR:
            node.func = _expression(STANDS_FOR[name])
        if name.endswith(".repeat_interleave") and set(self._values(node.args[0])) == {1}:
            # The same numbers in the same layout: another layout is summed up in another order, and rounds otherwise.
            return ast.Call(ast.Attribute(node.func.value, "contiguous", ast.Load()), [], [])
        return node

    def _inlined(self, function: Any, call: ast.Call) -> ast.expr | None:
        """What a function of this project returns, if that is one expression of names that the caller has, too."""
        if not isinstance(function, FunctionType) or not function.__module__.startswith("model.network."):
            return None
        parameters = list(inspect.signature(function).parameters)
        body = _Parts(self.network).function(function).body
        alone = isinstance(body[-1], ast.Return) and len([one for one in body if not _is_docstring(one)]) == 1
        return body[-1].value if alone and parameters == [ast.unparse(one) for one in call.args] else None

    def _is_hook(self, function: ast.expr) -> bool:
        """Whether a call is one of a hook point, or of another module that returns what it gets."""
        if isinstance(function, ast.Attribute) and ast.unparse(function.value) == "self":
            found = [getattr(one, function.attr) for one in self.instances if hasattr(one, function.attr)]
        elif isinstance(function, ast.Call) and ast.unparse(function).startswith("getattr(self, f"):
            ending = function.args[1].values[-1].value
            found = [part for one in self.instances for name, part in one.named_children() if name.endswith(ending)]
        else:
            return False
        return bool(found) and all(isinstance(one, HookPoint | nn.Identity) for one in found)

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        node = self.generic_visit(node)
        if isinstance(node.op, ast.Add) and ast.unparse(node.left) == "0":
            return node.right
        window = isinstance(node.op, ast.BitAnd) and ast.unparse(node.right).startswith("window_mask(")
        return node.left if window and not self.network.config.window else node

    def visit_Slice(self, node: ast.Slice) -> ast.Slice:
        node = self.generic_visit(node)
        node.lower = None if node.lower and ast.unparse(node.lower) == "0" else node.lower
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        known = node.id in self.given and isinstance(node.ctx, ast.Load)
        return ast.Constant(self.given[node.id]) if known else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if ast.unparse(node.value) == "config" and isinstance(value := getattr(self.network.config, node.attr), bool):
            return ast.Constant(value)
        return self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        table = self.scope.get(ast.unparse(node.value))
        if isinstance(table, dict) and (keys := self._values(node.slice)):
            return _expression(next(f"F.{one}" for one in dir(F) if getattr(F, one) is table[keys[0]]))
        return self.generic_visit(node)


class _Unread(ast.NodeTransformer):
    """Removes assignments to attributes that nothing reads and that hold no weights."""

    def __init__(self, read: set[str], instances: Sequence[nn.Module]) -> None:
        self.read, self.instances = read, instances

    def _is_kept(self, target: ast.expr) -> bool:
        text = ast.unparse(target)
        if not text.startswith("self.") or text.count(".") > 1:
            return True
        parts = [getattr(one, text[5:], None) for one in self.instances]
        holds = any(isinstance(one, nn.Module | nn.Parameter) and not isinstance(one, nn.Identity) for one in parts)
        return holds or text in self.read

    def visit_Assign(self, node: ast.Assign) -> Any:
        (target,) = node.targets
        if not isinstance(target, ast.Tuple):
            return node if self._is_kept(target) else None
        if not isinstance(node.value, ast.Tuple):
            return node
        pairs = [pair for pair in zip(target.elts, node.value.elts, strict=True) if self._is_kept(pair[0])]
        if not pairs:
            return None
        targets, values = ([pair[side] for pair in pairs] for side in (0, 1))
        node.targets = [ast.Tuple(targets) if targets[1:] else targets[0]]
        node.value = ast.Tuple(values) if values[1:] else values[0]
        return node

    def visit_If(self, node: ast.If) -> Any:
        node = self.generic_visit(node)
        return node if node.body else None


def _inline_expressions(methods: Mapping[str, ast.FunctionDef]) -> None:
    """Replace calls of methods of our own that return one expression of their arguments by that expression."""
    short = {f"self.{name}": one for name, one in methods.items() if name.startswith("_") and _returned(one)}

    class Inline(ast.NodeTransformer):
        def visit_Call(self, node: ast.Call) -> Any:
            node = self.generic_visit(node)
            method = short.get(ast.unparse(node.func))
            if method is None:
                return node
            names = [one.arg for one in method.args.args if one.arg != "self"]
            given = dict(zip(names, node.args, strict=False))
            return _Filled(given).visit(copy.deepcopy(_returned(method)))

    for one in methods.values():
        Inline().visit(one)


def _returned(method: ast.FunctionDef) -> ast.expr | None:
    """What a method returns if it is one expression that has each parameter once at most."""
    body = [one for one in method.body if not _is_docstring(one)]
    if len(body) != 1 or not isinstance(body[0], ast.Return):
        return None
    used = [one.id for one in ast.walk(body[0]) if isinstance(one, ast.Name)]
    return body[0].value if all(used.count(one.arg) <= 1 for one in method.args.args if one.arg != "self") else None


class _Filled(ast.NodeTransformer):
    """Puts expressions in the place of names."""

    def __init__(self, values: Mapping[str, ast.expr]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.values.get(node.id, node) if isinstance(node.ctx, ast.Load) else node


def _join_lines(function: ast.FunctionDef) -> None:
    """Write what a name stands for in its place, if only the next line reads it and is still short then."""
    read = [one.id for one in ast.walk(function) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)]
    for place in range(len(function.body) - 2, -1, -1):
        one, following = function.body[place : place + 2]
        target = one.targets[0] if isinstance(one, ast.Assign) else None
        if not isinstance(target, ast.Name) or read.count(target.id) != 1 or isinstance(following, ast.For | ast.If):
            continue
        joined = _Filled({target.id: one.value}).visit(copy.deepcopy(following))
        repeated = any(isinstance(part, ast.Lambda | ast.comprehension) for part in ast.walk(following))
        changed = ast.dump(joined) != ast.dump(following)
        if changed and not repeated and len(ast.unparse(joined)) <= SHORT_LINE:
            function.body[place : place + 2] = [joined]


def _called(method: ast.FunctionDef, methods: Mapping[str, ast.FunctionDef]) -> set[str]:
    """The names of those of `methods` that a method calls."""
    return {text.removeprefix("self.") for text in _attributes_read(method)} & set(methods)


def _reachable(methods: Mapping[str, ast.FunctionDef], entries: Iterable[str]) -> set[str]:
    """The names of the methods that are called, directly or not."""
    kept, waiting = set[str](), list(entries)
    while waiting:
        kept.add(name := waiting.pop())
        waiting += _called(methods[name], methods) - kept
    return kept


def _attributes_read(node: ast.AST) -> Iterator[str]:
    for one in ast.walk(node):
        if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Load) and ast.unparse(one.value) == "self":
            yield ast.unparse(one)


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _names(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def _is_idle(statement: ast.stmt, read: set[str]) -> bool:
    """Whether a statement assigns a name to itself, or to a name that nothing reads."""
    if not isinstance(statement, ast.Assign):
        return False
    target = statement.targets[0]
    unread = isinstance(target, ast.Name) and target.id not in read
    return unread or ast.unparse(target) == ast.unparse(statement.value)


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _plain(line: str) -> str:
    """A line without the brackets that `unparse` puts around tuples, and with spaces around defaults."""
    if line.strip().startswith("def "):
        return re.sub(r"(: [\w.| ]+)=", r"\1 = ", line)
    line = re.sub(r"\(\((.* for .*)\)\)$", r"(\1)", line)
    bare = re.sub(r"^(\s*(?:return|[\w., ]+ =)) \((.*)\)$", r"\1 \2", line)
    try:
        same = ast.dump(ast.parse(bare.strip())) == ast.dump(ast.parse(line.strip()))
    except SyntaxError:
        return line
    return bare if same else line


def _first_paragraph(item: type) -> str:
    return " ".join((inspect.getdoc(item) or "").split("\n\n")[0].split())
