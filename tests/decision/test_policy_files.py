"""Policies in files: read, written, and errors that name the path of what is wrong."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from langchain_groundedness import ConfigurationError, DecisionPolicy
from langchain_groundedness.decision import Range

YAML = """\
# What the help desk does.
contradicted: block
rules:
  - when:
      query_class: [sensitive, null]
      unverifiable: {at_least: 1}
    action: review
    reason: a person looks at what is not found
  - when:
      risk_tier: low
      trust_score:
        at_least: 0.8
    action: pass
    excuses: [untrusted]
    final: true
"""
RULES: list[Any] = [
    {
        "when": {"query_class": ["sensitive", None], "unverifiable": {"at_least": 1}},
        "action": "review",
        "reason": "a person looks at what is not found",
    },
    {
        "when": {"risk_tier": "low", "trust_score": {"at_least": 0.8}},
        "action": "pass",
        "excuses": ["untrusted"],
        "final": True,
    },
]
POLICY = DecisionPolicy(contradicted="block", rules=RULES)


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["policy.yaml", "policy.yml", "policy.YAML"])
def test_a_policy_is_read_from_a_yaml_file(tmp_path: Path, name: str) -> None:
    assert DecisionPolicy.load(written(tmp_path, name, YAML)) == POLICY


def test_a_policy_is_read_from_a_json_file(tmp_path: Path) -> None:
    text = json.dumps({"contradicted": "block", "rules": RULES}, indent=2)
    assert DecisionPolicy.load(str(written(tmp_path, "policy.json", text))) == POLICY


@pytest.mark.parametrize("name", ["policy.yaml", "policy.json"])
def test_a_policy_that_was_saved_is_read_back(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    POLICY.save(path)
    assert DecisionPolicy.load(path) == POLICY
    assert path.read_text(encoding="utf-8").endswith("\n")


def test_a_file_that_begins_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    assert DecisionPolicy.load(written(tmp_path, "policy.yaml", "\ufeff" + YAML)) == POLICY


def test_a_saved_policy_is_read_by_people_too() -> None:
    assert POLICY.to_yaml().startswith("contradicted: block\nuntrusted: flag\n")
    assert yaml.safe_load(POLICY.to_yaml())["rules"][1] == {
        "when": {"trust_score": {"at_least": 0.8}, "risk_tier": ["low"]},
        "action": "pass",
        "excuses": ["untrusted"],
        "final": True,
    }


def error_of(call: Any, *arguments: Any) -> str:
    with pytest.raises(ConfigurationError) as caught:
        call(*arguments)
    assert caught.value.__cause__ is None or isinstance(caught.value.__cause__, OSError)
    return str(caught.value)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (
            ("contradicted: block", "contradicted: blokc"),
            (
                "policy: contradicted: Input should be 'pass', 'flag', 'block' "
                "or 'review', got 'blokc'"
            ),
        ),
        (
            ("contradicted:", "contradictions:"),
            (
                "policy: contradictions: there is no such key; accepted: "
                "contradicted, untrusted, conflicting, unchecked, no_claims, nothing_checkable, "
                "empty_answer, rules, at_most"
            ),
        ),
        (
            ("at_least: 1", "at_least: -1"),
            (
                "policy: rules[0].when.unverifiable.at_least: Input should be "
                "greater than or equal to 0, got -1"
            ),
        ),
        (
            ("{at_least: 1}", "{more_than: 1}"),
            (
                "policy: rules[0].when.unverifiable.more_than: there is no such "
                "key; accepted: at_least, at_most, share_at_least, share_below; "
            ),
        ),
        (
            ("{at_least: 1}", "1"),
            "policy: rules[0].when.unverifiable: Input should be a mapping",
        ),
        (
            ("{at_least: 1}", "{}"),
            (
                "policy: rules[0].when.unverifiable: give at_least, at_most, "
                "share_at_least or share_below"
            ),
        ),
        (
            ("at_least: 0.8", "at_least: .nan"),
            (
                "policy: rules[1].when.trust_score.at_least: Input should be a "
                "finite number, got nan"
            ),
        ),
        (
            ("at_least: 0.8", "at_least: '0.8'"),
            (
                "policy: rules[1].when.trust_score.at_least: Input should be a "
                "valid number, got '0.8'"
            ),
        ),
        (
            ("risk_tier: low", "risk_tier: no"),
            "policy: rules[1].when.risk_tier: Input should be a list, got False",
        ),
        (
            ("risk_tier: low", "risk_tier:"),
            "policy: rules[1].when.risk_tier: has no value; leave the key out",
        ),
        (
            ("[untrusted]", "[untrusted, all]"),
            "policy: rules[1].excuses[1]: Input should be 'contradicted'",
        ),
        (
            ("    action: review\n", ""),
            "policy: rules[0].action: Field required",
        ),
        (
            ("[sensitive, null]", "[sensitive"),
            "policy: line 6, column 19: while parsing a flow sequence, expected ',' or ']'",
        ),
        (
            ("    action: pass", "\taction: pass"),
            "policy: line 13, column 1: while scanning for the next token, found character",
        ),
        (
            ("contradicted: block", "contradicted: block\ncontradicted: pass"),
            "policy: line 2, column 1: the key 'contradicted' is given twice",
        ),
        (
            ("contradicted: block", "contradicted: &a block\nuntrusted: *a"),
            "policy: line 3, column 12: an alias is not accepted",
        ),
        (
            ("contradicted: block", "contradicted: !!python/name:os.system block"),
            "policy: line 2, column 15: could not determine a constructor for the tag",
        ),
        (("contradicted: block", "3: block"), "policy: line 2, column 1: a key must be a text"),
        (
            ("contradicted: block", "contradicted: !!python/tuple [block]"),
            "policy: line 2, column 15: could not determine a constructor for the tag",
        ),
        (
            ("risk_tier: low", "risk_tier: 2020-13-45"),
            "policy: not YAML (month must be in 1..12)",
        ),
        (("low", "l\x00w"), "policy: a character that a text file must not contain"),
    ],
)
def test_errors_in_yaml_name_the_path_what_came_and_what_is_accepted(
    change: tuple[str, str], error: str
) -> None:
    assert YAML.count(change[0]) >= 1
    said = error_of(DecisionPolicy.from_yaml, YAML.replace(*change, 1))
    assert f"{said}; ".startswith(error)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            '{"rules": [\n  {"when": {"trust_score": {"below": "x"}},\n   "action": "stop"}]}',
            (
                "policy: rules[0].when.trust_score.below: Input should be a "
                "valid number, got 'x'; rules[0].action: Input should be "
                "'pass', 'flag', 'block' or 'review', got 'stop'"
            ),
        ),
        (
            '{"rules": [\n  {"when": {"trust_score": {"below": NaN}}, "action": "flag"}]}',
            ("policy: rules[0].when.trust_score.below: Input should be a finite number, got nan"),
        ),
        (
            '{"rules": [{"when": {"risk_tier": "a,b:[{}]\\""}, "action": "flag"},\n3]}',
            "policy: rules[1]: Input should be a mapping",
        ),
        ('{"unchecked": "pass" 1}', "policy: not JSON (Expecting ',' delimiter: line 1 column 22"),
        (
            '{"unchecked": "pass",\n "unchecked": "block"}',
            "policy: not JSON (the key 'unchecked' is given twice)",
        ),
        ('{"reason": null}', "policy: reason: has no value"),
        ('["pass"]', "policy: expected a mapping of options, got a list"),
        ("", "policy: not JSON (Expecting value: line 1 column 1"),
        ('{"at_most": ' + "9" * 5000 + "}", "policy: not JSON (Exceeds the limit"),
        ("[" * 100_000, "policy: too many nested mappings and lists"),
    ],
)
def test_errors_in_json_name_the_path_too(text: str, error: str) -> None:
    assert error_of(DecisionPolicy.from_json, text).startswith(error)


@pytest.mark.parametrize(
    ("text", "came"), [("", "nothing"), ("# only this", "nothing"), ("- a", "a list"), ("3", "a s")]
)
def test_a_file_without_a_mapping_is_no_policy(text: str, came: str) -> None:
    error = error_of(DecisionPolicy.from_yaml, text)
    assert error.startswith(f"policy: expected a mapping of options, got {came}")
    assert DecisionPolicy.from_yaml("{}") == DecisionPolicy()


def test_deep_nesting_is_an_error_and_no_crash() -> None:
    assert "too many nested mappings" in error_of(DecisionPolicy.from_yaml, "[" * 5000)


def test_errors_come_in_the_order_of_the_file_and_no_more_than_a_few() -> None:
    text = "\n".join(f"k{number}: 1" for number in range(8))
    error = error_of(DecisionPolicy.from_yaml, text)
    places = [error.index(f"k{number}: there is no such key") for number in range(5)]
    assert places == sorted(places)
    assert error.endswith("; and 3 more")


def test_errors_do_not_repeat_long_values_or_those_of_unknown_keys() -> None:
    value = "sk-0123456789"
    assert value not in error_of(DecisionPolicy.from_yaml, f"api_key: {value}")
    assert value not in error_of(DecisionPolicy.from_yaml, f"unchecked: {value * 5}")


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("gone.yaml", None, "gone.yaml: No such file or directory"),
        ("policy.toml", b"", "policy.toml: the name of a policy file must end in .yaml, .yml"),
        ("policy.json", b"\xff{}", "policy.json: not UTF-8 text (byte 0); convert it first"),
        ("policy.yaml", b"rules: 3", "policy.yaml: rules: Input should be a lis"),
    ],
)
def test_errors_name_the_file(tmp_path: Path, name: str, content: bytes | None, error: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    assert error in error_of(DecisionPolicy.load, path)


def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    assert "No such file" in error_of(POLICY.save, tmp_path / "no" / "policy.yaml")
    assert "must end in .yaml" in error_of(POLICY.save, tmp_path / "policy")


def plain() -> st.SearchStrategy[Any]:
    leaves = st.none() | st.booleans() | st.integers() | texts()
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts(), inner, max_size=3),
        max_leaves=10,
    )


def texts() -> st.SearchStrategy[str]:
    return st.text("ab é日😀:,[]{}\"'\\#-&*!|>%@`~0\n", max_size=6)


@given(data=st.dictionaries(texts(), plain(), max_size=4), indent=st.sampled_from([None, 2]))
def test_every_json_object_is_a_policy_or_an_error(data: dict[str, Any], indent: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^policy: "):
        DecisionPolicy.from_json(json.dumps({**data, "no such key": 1}, indent=indent))


@given(data=st.dictionaries(texts(), plain(), max_size=4), flow=st.booleans())
def test_every_yaml_mapping_is_a_policy_or_an_error(data: dict[str, Any], *, flow: bool) -> None:
    class Plain(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

    text = yaml.dump(
        {**data, "no such key": 1}, Dumper=Plain, default_flow_style=flow, allow_unicode=True
    )
    with pytest.raises(ConfigurationError, match=r"^policy: ") as caught:
        DecisionPolicy.from_yaml(text)
    assert "given twice" not in str(caught.value)


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("trust_score: {at_least: 80}", "trust_score: at_least must be from 0 to 1, got 80"),
        ("trust_score: {below: -0.1}", "trust_score: below must be from 0 to 1"),
        ("lowest_supported_probability: {below: 90}", "below must be from 0 to 1, got 90"),
        ("highest_unsupported_probability: {at_least: 2}", "at_least must be from 0 to 1, got 2"),
        ("retrieval_score: {below: 1.5}", "retrieval_score: below must be from -1 to 1"),
        ("trust_score: 0.5", r"trust_score: Input should be a mapping, such as \{at_least: 0.5\}"),
        ("contradicted: 1", r"contradicted: Input should be a mapping, such as \{at_least: 1\}"),
        ("verdict: hallucinated", "when.verdict: Input should be .*, got 'hallucinated'"),
        ("risk_tier: 1", "when.risk_tier: Input should be a valid string"),
    ],
)
def test_conditions_that_cannot_hold_are_refused(condition: str, said: str) -> None:
    text = f"rules: [{{when: {{{condition}}}, action: block}}]"
    with pytest.raises(ConfigurationError, match=said) as caught:
        DecisionPolicy.from_yaml(text)
    assert "rules[0].when" in str(caught.value)
    assert "'h'" not in str(caught.value)


def test_one_value_stands_for_a_list_of_one_everywhere() -> None:
    policy = DecisionPolicy.from_yaml(
        "rules: [{when: {retrieval_score: {at_least: -1, below: 1}, verdict: unchecked, "
        "risk_tier: low, query_class: null_}, action: pass, excuses: contradicted}]"
    )
    [rule] = policy.rules
    assert (rule.excuses, rule.when.verdict) == (("contradicted",), ("unchecked",))


def test_an_option_of_no_name_is_not_made_up() -> None:
    with pytest.raises(ConfigurationError, match=r"^Range: give at_least") as caught:
        Range()
    assert "options:" not in str(caught.value)


def test_only_a_policy_can_be_monitored() -> None:
    with pytest.raises(ConfigurationError, match=r"DecisionPolicy\.strict\(\), got str"):
        DecisionPolicy.monitor_only("strict")  # type: ignore[arg-type]  # wrong on purpose
