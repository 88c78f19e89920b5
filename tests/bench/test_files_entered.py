"""Tests of the calls that `bench.files_entered` counts."""

import sys
from types import SimpleNamespace

from bench.files_entered import FOLDERS, CallProfile
from hybrid.core.types import base_id

PRODUCT = f"{FOLDERS[0]}core/types.py"


def frame(path: str, name: str = "f", back: object = None) -> SimpleNamespace:
    """Return a stack frame of the function `name` in the file at `path`."""
    return SimpleNamespace(f_code=SimpleNamespace(co_filename=path, co_name=name, co_qualname=name), f_back=back)


def test_a_function_of_the_product_counts_with_its_file():
    profile = CallProfile()
    sys.setprofile(profile)
    try:
        base_id("a")
    finally:
        sys.setprofile(None)
    assert {(path.removeprefix(FOLDERS[0]), *functions) for path, functions in profile.functions.items()} == {
        ("core/types.py", "base_id")
    }


def test_a_call_between_files_is_a_pair_and_one_within_a_file_is_not():
    profile = CallProfile()
    caller = frame(f"{FOLDERS[0]}core/files.py")
    profile(frame(PRODUCT, back=frame(PRODUCT, back=caller)), "call", None)
    assert not profile.pairs
    profile(frame(PRODUCT, back=caller), "call", None)
    assert dict(profile.pairs) == {(caller.f_code.co_filename, PRODUCT): 1}


def test_what_runs_at_import_and_outside_the_product_does_not_count():
    profile = CallProfile()
    profile(frame(PRODUCT, "SomeClass", frame(PRODUCT, "<module>")), "call", None)
    profile(frame("/elsewhere/module.py"), "call", None)
    profile(frame(PRODUCT), "return", None)
    assert not profile.functions
