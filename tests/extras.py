"""Which tests need a package that `pip install tidewolf` does not bring.

Where it is missing they are skipped, and the reason names the extra. Everything else must pass
without any extra, which `make bare` shows. Tests are listed here, not found by the import that
fails: a package that the library itself should do without must never turn into a skip.
"""

import re
from importlib import import_module
from importlib.metadata import requires
from importlib.util import find_spec

import pytest

DECLARED = [re.match(r"([\w-]+).*extra == .(?!ci\b)(\w+)", line) for line in requires("tidewolf")]
EXTRA = {found[1].replace("-", "_"): found[2] for found in reversed(DECLARED) if found}
"""The first extra that brings each package."""

TESTS = {
    "cvxpy": "test_from_cvxpy.py test_proximal_bundle.py::test_a_conic_solver_agrees",
    "fastapi": "test_haproxy.py test_refusals.py test_serve_faults.py "
    "test_serve_security.py test_service.py test_storm.py",
    "hatchling": "test_release.py",
    "httpx": "test_backup.py test_client.py test_service_docs.py",
    "jax": "test_autograd.py::test_few_programs_serve_any_number_of_rounds",
    "joblib": "test_sweep.py",
    "matplotlib": "test_compare.py::test_nothing_given_becomes_markup "
    "test_compare.py::test_the_page_stands_alone_and_says_every_standing "
    "test_public.py::test_every_module_opens_with_what_it_is test_report.py",
    "nbclient": "test_gallery.py",
    "networkx": "test_archive.py::test_a_graph_of_too_much_text_is_refused "
    "test_front_doors.py::test_every_public_callable_has_a_door "
    "test_front_doors.py::test_front_doors_show_no_foreign_exception_on_a_slice "
    "test_networks.py::test_networkx_graphs",
    "openpyxl": "test_files.py",
    "orjson": "test_hosted_session.py test_service_fixtures.py",
    "pandas": "test_archive.py::test_what_packs_well_and_is_small_is_read "
    "test_compare.py::test_pandas_has_a_row_for_each_run test_dates.py "
    "test_decision_files.py "
    "test_evaluation.py::test_a_table_has_a_column_an_entry_under_the_round_or_its_time "
    "test_experiments.py test_incumbent.py test_outputs_page.py "
    "test_own_data.py",
    "playwright": "test_browser.py",
    "polars": "test_frames.py",
    "prometheus_client": "test_container.py test_serve_metrics.py test_serve_page.py",
    "psycopg": "test_postgres.py test_postgres_sessions.py",
    "pyarrow": "test_archive.py::test_no_bomb_takes_more_than_it_may "
    "test_arrays.py::test_a_long_seed_goes_through_a_run_folder_and_back "
    "test_arrays.py::test_long_numbers_go_through_a_sweep_and_back "
    "test_dates.py::test_parquet_with_a_zone_is_in_utc_already",
    "pydantic": "test_description.py "
    "test_fixtures.py::test_an_interrupted_run_of_another_machine_resumes "
    "test_round_reader.py",
    "skfolio": "test_allocator.py",
    "sphinx": "test_site.py",
    "torch": "test_autograd.py::test_a_learner_on_torch_plays_them test_torch.py",
    "typer": "test_arrays.py::test_a_table_names_the_line_and_the_column "
    "test_arrays.py::test_absurd_numbers_are_refused_in_the_shell "
    "test_arrays.py::test_memory_that_is_not_there_is_a_sentence test_cli.py "
    "test_compare.py::test_the_command_prints_a_table_and_fills_a_folder "
    "test_compare.py::test_the_command_prints_json_alone_or_nothing "
    "test_docs.py::test_the_shell_says_of_your_own_set_what_is_shown "
    "test_experiments.py::test_new_writes_once test_folder.py test_live.py "
    "test_own_data_pages.py test_preview.py test_tournament.py",
}
NEEDS = {name: package for package, names in TESTS.items() for name in names.split()}
"""File, or file::test without its parameters, and a package it needs."""


def reason(name):
    """Why this file or test is skipped here; None where it is not."""
    package = NEEDS.get(name)
    if package is None or find_spec(package) is not None:
        return None
    return f'{package} is not installed; pip install "tidewolf[{EXTRA[package]}]" runs this'


class Later:
    """A package that takes seconds to import: by the worker that runs its tests alone, when they
    first ask for something of it, and not by each that collects them.
    """

    def __init__(self, package):
        self.package = package

    def __getattr__(self, name):
        if name.startswith(("_", "pytest")):  # pytest looks for its own marks
            raise AttributeError(name)
        return getattr(import_module(self.package), name)


class _Skipped(pytest.Module):
    """A file whose imports would fail."""

    def collect(self):
        pytest.skip(reason(self.path.name), allow_module_level=True)


def pytest_pycollect_makemodule(module_path, parent):
    return _Skipped.from_parent(parent, path=module_path) if reason(module_path.name) else None


def pytest_collection_modifyitems(items):
    for item in items:
        if why := reason(f"{item.path.name}::{getattr(item, 'originalname', item.name)}"):
            item.add_marker(pytest.mark.skip(reason=why))
