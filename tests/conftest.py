"""What every test starts from: one thread, a fixed seed."""

import sys

import pytest
import torch

torch.set_num_threads(1)

# Before Python 3.11 the line of an operation is known and not its place in the line: there these are
# refused, or written plainer, or told by the report instead.
NEEDS_COLUMNS = (
    "test_bert_with_a_mask_of_ones_says_that_it_decided_and_refuses_padding",
    "test_a_size_that_leaves_arithmetic_is_on_record[a literal]",
    "test_a_small_model_survives[Items]",
    "test_a_dtype_that_is_given_on_is_read_again",
    "test_one_turn_of_a_loop[lins.1_2-insert-lines5]",
    "test_only_a_loop_of_bare_layers_is_shortened[named]",
    "test_a_layer_in_the_middle_of_a_loop_that_carries_several_values",
    "test_language_models_between_and_inside_their_blocks[t5]",
    "test_a_result_that_nobody_reads_is_told",
    "test_a_value_read_under_two_names_is_told",
    "test_a_layer_before_one_that_writes_into_what_is_read_again",
    "test_random_recipe_holds[4]",
)


def pytest_collection_modifyitems(items):
    """Leave out what a Python without columns cannot do."""
    if sys.version_info < (3, 11):
        for item in items:
            if item.name in NEEDS_COLUMNS:
                item.add_marker(pytest.mark.skip(reason="needs Python 3.11's columns"))


@pytest.fixture(autouse=True)
def _seed():
    """Every test draws the same numbers, alone or among others."""
    torch.manual_seed(0)
