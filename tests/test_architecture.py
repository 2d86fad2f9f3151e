"""The house: the same doors in every family, mathematics without estimators, no circle.

The rules are those of CONTRIBUTING.md. Each is a function from sources (module name ->
text) to what breaks it, so that a planted violation shows that it can fail.
"""

import ast
import operator
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

from prudent.evaluation.methods import BASELINES, METHODS

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "prudent"
FAMILIES = ("minimax", "optimistic", "imprecise", "calibration", "adversarial")
DOORS = {"learn", "model", "promises"}
#: The scikit-learn half of a family: estimators, and what only makes one.
ESTIMATORS = {
    "classifier",
    "detector",
    "cross_validation",
    "rejection_game",
    "linear_classifier",
    "pairwise",
}
FOREIGN = {"sklearn", "pandas", "polars", "dask", "matplotlib", "narwhals"}
UPPER = {"prudent.estimator_tools", "prudent._compat", "prudent.io", "prudent.dask"}
ESTIMATOR_NAMES = {"estimator", "classifier", "detector", "regressor", "clf", "est"}


@cache
def tree(text):
    return ast.parse(text)


@cache
def nodes(text):
    return tuple(ast.walk(tree(text)))


def sources():
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = path.read_text("utf-8")
    return found


def imported(module, text, modules):
    """Modules that one imports, anywhere in it: annotations count, and functions."""
    for node in nodes(text):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{module}: relative import"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in modules else node.module


# --- doors --------------------------------------------------------------------------


def homes(family, modules):
    """Folders with doors of their own: the family, or its two halves.

    What the halves share lies above them, and has no door.
    """
    inside = {name for name in modules if name.startswith(f"prudent.{family}.")}
    halves = {name.rsplit(".", 1)[0] for name in inside if name.count(".") == 3}
    own = {name for name in inside if name.count(".") == 2} - halves
    has_doors = any(name.rsplit(".", 1)[1] in DOORS for name in own)
    return sorted(halves) + ([f"prudent.{family}"] if has_doors or not halves else [])


def missing_doors(family, texts):
    """Doors that a home of the family lacks."""
    missing = []
    for home in homes(family, texts):
        own = {n.rsplit(".", 1)[1] for n in texts if n.rsplit(".", 1)[0] == home}
        if defines("promises", texts.get(f"{home}.learn", "")):
            own.add("promises")  # short ones stand at the end of `learn`
        missing += [f"{home}.{door}" for door in sorted(DOORS - own)]
        if not own & ESTIMATORS:
            missing.append(f"{home}: no estimator")
        for door in sorted(DOORS & own):
            text = texts.get(f"{home}.{door}")
            if text is not None and not defines(door, text):
                missing.append(f"{home}.{door}: does not define what it is for")
    return missing


def defines(door, text):
    """Whether a door leads to what it is named for."""
    top = tree(text).body
    if door == "learn":
        return any(isinstance(n, ast.FunctionDef) and n.name == "learn" for n in top)
    if door == "model":
        return any(isinstance(n, ast.ClassDef) for n in top)
    return any(
        isinstance(n, ast.FunctionDef)
        and n.returns
        and "Guarantee" in ast.unparse(n.returns)
        for n in top
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_the_doors_exist(family):
    assert missing_doors(family, sources()) == []


def test_a_missing_door_is_found():
    texts = sources()
    del texts["prudent.optimistic.model"]
    assert missing_doors("optimistic", texts) == ["prudent.optimistic.model"]
    texts = sources()
    texts["prudent.imprecise.learn"] = "def fit(): ..."  # nor promises at its end
    texts["prudent.imprecise.half.learn"] = "def learn(): ..."
    found = missing_doors("imprecise", texts)
    assert "prudent.imprecise.learn: does not define what it is for" in found
    assert "prudent.imprecise.promises" in found
    assert "prudent.imprecise.half.model" in found
    assert "prudent.imprecise.half: no estimator" in found
    texts = sources()
    del texts["prudent.minimax.one_class.model"]
    assert missing_doors("minimax", texts) == ["prudent.minimax.one_class.model"]


# --- promises -----------------------------------------------------------------------


HOLDERS = ("conformal", "certification")
#: Where one looks for promises; short ones stand at the end of `learn`.
BEHIND = ("promises", "learn")


def promises_elsewhere(texts):
    """Modules of methods that make a promise, and are not where one looks for it."""
    for name, text in texts.items():
        parts = name.split(".")
        if parts[1:2] and parts[1] in (*FAMILIES, *HOLDERS) and parts[-1] not in BEHIND:
            called = {
                node.func.id
                for node in nodes(text)
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            }
            if "Guarantee" in called:
                yield name


def test_promises_are_made_behind_their_door():
    assert list(promises_elsewhere(sources())) == []


def test_a_promise_made_elsewhere_is_found():
    planted = {"prudent.minimax.solver": "def f():\n    return Guarantee(bound=0.1)"}
    assert list(promises_elsewhere(planted)) == ["prudent.minimax.solver"]


#: What holds the sentences of promises, by name.
SENTENCES = {"assumption", "assumptions", "assumed"}
PROMISES = {"guarantee", "promise", "claim", "wish"}
SEARCHES = {
    *("startswith", "endswith", "partition", "rpartition", "split", "find", "rfind"),
    *("index", "count", "removeprefix", "removesuffix", "replace", "casefold", "lower"),
}


def is_sentence(node, known):
    """Whether an expression is the sentence of a promise, or several."""
    if isinstance(node, ast.Subscript):
        return is_sentence(node.value, known)
    if isinstance(node, ast.Name):
        return node.id in known
    if isinstance(node, ast.Attribute):
        return node.attr in SENTENCES
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute):
        made = {"join", "sentence", *SEARCHES}
        parts = [node.func.value, *node.args]
        return node.func.attr in made and any(is_sentence(p, known) for p in parts)
    parts = [name for arg in node.args for name in ast.walk(arg)]
    of_promise = any(
        getattr(p, "id", getattr(p, "attr", "")) in PROMISES for p in parts
    )
    return isinstance(node.func, ast.Name) and node.func.id == "str" and of_promise


def is_text(node):
    """Whether an expression is text that stands in the code."""
    parts = node.elts if isinstance(node, (ast.Tuple, ast.Set, ast.List)) else [node]
    return any(
        isinstance(part, ast.JoinedStr)
        or (isinstance(part, ast.Constant) and isinstance(part.value, str))
        for part in parts
    )


def sentences_read(texts):
    """Places where code compares, parts or searches the sentence of a promise."""
    for name, text in texts.items():
        known = set(SENTENCES)
        for node in nodes(text):
            if isinstance(node, (ast.For, ast.comprehension)):
                targets, value = [node.target], node.iter
            elif isinstance(node, ast.Assign):
                targets, value = node.targets, node.value
            else:
                continue
            if is_sentence(value, known):
                names = [n for target in targets for n in ast.walk(target)]
                known |= {n.id for n in names if isinstance(n, ast.Name)}
        for node in nodes(text):
            read = False
            if isinstance(node, ast.Compare):
                sides = [node.left, *node.comparators]
                said = [is_sentence(side, known) for side in sides]
                # A member may be looked for among members, text never in a sentence.
                in_calls = [isinstance(side, ast.Call) for side in sides]
                searched = any(map(operator.and_, said, in_calls))
                read = searched or (any(said) and any(map(is_text, sides)))
            elif isinstance(node, ast.Match):
                read = is_sentence(node.subject, known)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                owner = node.func.value
                by_pattern = isinstance(owner, ast.Name) and owner.id == "re"
                read = (node.func.attr in SEARCHES and is_sentence(owner, known)) or (
                    by_pattern and any(is_sentence(a, known) for a in node.args)
                )
            if read:
                yield f"{name}, line {node.lineno}: {ast.unparse(node)}"


def test_no_code_reads_a_sentence():
    assert list(sentences_read(sources())) == []


@pytest.mark.parametrize(
    "planted",
    [
        'any("plug-in" in sentence for sentence in guarantee.assumptions)',
        'any("plug-in" in one for one in guarantee.assumptions)',
        '"rows are independent" in claim.assumptions',
        "assumption.partition(', the covariances')",
        "promise.assumptions[0].startswith(('shrunk', 'regularised'))",
        "str(guarantee) == str(promise)",
        "'on average' in str(row.guarantee)",
        "'normal' in ' and '.join(promise.assumed)",
        "promise.assumptions == ('p is known exactly',)",
        "re.search('plug-in', str(promise))",
        "str(promise).split(', assuming ')",
        "said = str(promise)\nfound = 'plug-in' in said",
        "match assumption:\n    case 'p is known exactly': pass",
    ],
)
def test_a_sentence_that_is_read_is_found(planted):
    assert list(sentences_read({"prudent.evaluation.words": planted}))


@pytest.mark.parametrize(
    "allowed",
    [
        "Assumption.KNOWN_LABEL in claim.assumptions",
        "known is Assumption.DISTRIBUTION_SMOOTHED",
        "' and '.join(guarantee.assumed)",
        "PLUG_IN.isdisjoint(guarantee.assumptions)",
        "print(str(promise))",
    ],
)
def test_values_may_decide(allowed):
    assert list(sentences_read({"prudent.evaluation.words": allowed})) == []


# --- mathematics --------------------------------------------------------------------


def mathematics(texts, families):
    """Modules of `core`, of `rules` and of the families' mathematical half."""
    for name, text in texts.items():
        parts = name.split(".")
        if name.startswith(("prudent.core.", "prudent.rules.")) or (
            len(parts) > 2
            and parts[1] in families
            and parts[-1] not in ESTIMATORS
            and f"{name}.learn" not in texts  # the package of a half
        ):
            yield name, text


def estimator_classes(texts):
    """Names of classes of the package that are scikit-learn estimators."""
    found = {"BaseEstimator", "ClassifierMixin", "OutlierMixin"}
    while True:
        new = {
            node.name
            for text in texts.values()
            for node in nodes(text)
            if isinstance(node, ast.ClassDef)
            and any(isinstance(b, ast.Name) and b.id in found for b in node.bases)
        }
        if new <= found:
            return found
        found |= new


def estimators_in_mathematics(texts, families):
    """Foreign imports, and parameters and fields that are an estimator."""
    classes = estimator_classes(texts)
    word = re.compile(rf"\b({'|'.join(sorted(classes))})\b")
    found = []
    for name, text in mathematics(texts, families):
        found += [
            f"{name} imports {module}"
            for module in imported(name, text, texts)
            if module.split(".")[0] in FOREIGN
            or any(f"{module}.".startswith(f"{upper}.") for upper in UPPER)
        ]
        for node in nodes(text):
            if isinstance(node, ast.ClassDef) and node.name in classes:
                found.append(f"{name}: {node.name} is an estimator")
            named = None
            if isinstance(node, ast.arg):
                named, annotation = node.arg, node.annotation
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                named, annotation = node.target.id, node.annotation
            if named is None:
                continue
            written = ast.unparse(annotation) if annotation else ""
            is_name = written in ("str", "Estimator")  # of a rule for covariances
            if (named in ESTIMATOR_NAMES and not is_name) or word.search(written):
                found.append(f"{name}: parameter {named}")
    return found


def test_mathematics_knows_no_estimator():
    assert estimators_in_mathematics(sources(), FAMILIES) == []


@pytest.mark.parametrize(
    "planted",
    [
        "def learn(estimator, moments): ...",
        "def learn(thing: 'OptimisticScoreClassifier'): ...",
        "class Outcome:\n    detector: Any",
        "def learn():\n    from sklearn.base import clone",
        "import dask",
        "from prudent.estimator_tools import check_rows",
        "class Hidden(BaseEstimator): ...",
    ],
)
def test_an_estimator_in_mathematics_is_found(planted):
    texts = sources()
    texts["prudent.optimistic.theory"] = planted
    found = estimators_in_mathematics(texts, {"optimistic"})
    assert found
    assert all(text.startswith("prudent.optimistic.theory") for text in found)


# --- names of methods ---------------------------------------------------------------

DECIDING = ("evaluation", "comparison", "report", "plots", "cli")
REGISTRIES = {"prudent.evaluation.methods", "prudent.evaluation.detection"}
NAMES = {*METHODS, *BASELINES, "low-density", "best"}


def decisions_by_name(texts):
    """Comparisons with the name of a method, and tables of them outside registries."""
    for name, text in texts.items():
        if name.split(".")[1:2] and name.split(".")[1] in DECIDING:
            for node in nodes(text):
                parts = []
                if isinstance(node, ast.Compare):
                    sides = [node.left, *node.comparators]
                    parts = [part for side in sides for part in ast.walk(side)]
                elif isinstance(node, ast.Dict) and name not in REGISTRIES:
                    parts = node.keys
                elif isinstance(node, ast.MatchValue):
                    parts = [node.value]
                values = {p.value for p in parts if isinstance(p, ast.Constant)}
                if values & NAMES:
                    yield f"{name}:{node.lineno if hasattr(node, 'lineno') else ''}"


def test_no_decision_hangs_on_the_name_of_a_method():
    assert list(decisions_by_name(sources())) == []


@pytest.mark.parametrize(
    "planted",
    [
        'full = method.name == "conformal"',
        'if name in ("lda", "qda"):\n    pass',
        'GRIDS = {"imprecise": [1.0]}',
        'match name:\n    case "boosting":\n        pass',
    ],
)
def test_a_decision_by_name_is_found(planted):
    assert list(decisions_by_name({"prudent.evaluation.frame": planted}))
    assert not list(decisions_by_name({"prudent.conformal.classifier": planted}))


# --- circles ------------------------------------------------------------------------


def circles(texts):
    """Sets of modules that import one another, directly or not (Tarjan 1972)."""
    graph = {
        name: {m for m in imported(name, text, texts) if m in texts and m != name}
        for name, text in texts.items()
    }
    order, lowest, stack, found = {}, {}, [], []

    def visit(node):
        order[node] = lowest[node] = len(order)
        stack.append(node)
        for other in graph[node]:
            if other not in order:
                visit(other)
                lowest[node] = min(lowest[node], lowest[other])
            elif other in stack:
                lowest[node] = min(lowest[node], order[other])
        if lowest[node] == order[node]:
            circle = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(circle) > 1:
                found.append(sorted(circle))

    for node in graph:
        if node not in order:
            visit(node)
    return found


def test_no_import_goes_in_a_circle():
    assert circles(sources()) == []


@pytest.mark.parametrize(
    "planted",
    [
        "from prudent.core.circular import b",
        "if TYPE_CHECKING:\n    from prudent.core.circular import b",
        "def late():\n    import prudent.core.circular",
    ],
)
def test_a_circle_is_found(planted):
    texts = sources() | {
        "prudent.core.circular": "from prudent.core.round import a",
        "prudent.core.round": planted,
    }
    assert ["prudent.core.circular", "prudent.core.round"] in circles(texts)


# --- layers -------------------------------------------------------------------------


def exceptions_in(contracts):
    """Ways in which import-linter is told to look away."""
    found = [
        f"{contract['name']}: {len(contract['ignore_imports'])} ignored imports"
        for contract in contracts["contracts"]
        if contract.get("ignore_imports")
    ]
    if contracts.get("exclude_type_checking_imports"):
        found.append("annotations are excluded")
    return found


def test_layers_have_no_exception():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = settings["tool"]["importlinter"]
    assert exceptions_in(contracts) == []
    planted = [*contracts["contracts"], {"name": "x", "ignore_imports": ["a -> b"]}]
    assert exceptions_in(contracts | {"contracts": planted})
    assert exceptions_in(contracts | {"exclude_type_checking_imports": True})


# --- words --------------------------------------------------------------------------


def test_private_lists_of_names_are_not_kept():
    kept = [
        name
        for name, text in sources().items()
        if name.startswith("prudent.core.") and re.search(r"^__all__", text, re.M)
    ]
    assert kept == []
