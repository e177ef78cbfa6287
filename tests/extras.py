"""Which tests need a package that `pip install tidewolf` does not bring.

Where it is missing they are skipped, and the reason names the extra. Everything else must pass
without any extra, which `make bare` shows. Tests are listed here, not found by the import that
fails: a package that the library itself should do without must never turn into a skip.
"""

import re
from importlib import import_module
from importlib.metadata import requires
from importlib.util import find_spec
from typing import Any

import pytest

DECLARED = [re.match(r"([\w-]+).*extra == .(?!ci\b)(\w+)", line) for line in requires("tidewolf")]
EXTRA = {found[1].replace("-", "_"): found[2] for found in reversed(DECLARED) if found}
"""The first extra that brings each package."""

NEEDS = {
    "test_allocator.py": "skfolio",
    "test_archive.py::test_a_graph_of_too_much_text_is_refused": "networkx",
    "test_archive.py::test_no_bomb_takes_more_than_it_may": "pyarrow",
    "test_archive.py::test_what_packs_well_and_is_small_is_read": "pandas",
    "test_autograd.py::test_a_learner_on_torch_plays_them": "torch",
    "test_autograd.py::test_few_programs_serve_any_number_of_rounds": "jax",
    "test_backup.py": "httpx",
    "test_browser.py": "playwright",
    "test_cli.py": "typer",
    "test_charts.py": "matplotlib",
    "test_client.py": "httpx",
    "test_compare.py::test_nothing_given_becomes_markup": "matplotlib",
    "test_compare.py::test_pandas_has_a_row_for_each_run": "pandas",
    "test_compare.py::test_the_command_prints_a_table_and_fills_a_folder": "typer",
    "test_compare.py::test_the_command_prints_json_alone_or_nothing": "typer",
    "test_compare.py::test_the_page_stands_alone_and_says_every_standing": "matplotlib",
    "test_decision_files.py": "pandas",
    "test_description.py": "pydantic",
    "test_haproxy.py": "fastapi",
    "test_incumbent.py": "pandas",
    "test_round_reader.py": "pydantic",
    "test_fixtures.py::test_an_interrupted_run_of_another_machine_resumes": "pydantic",
    "test_decisions.py::test_a_table_has_a_column_an_entry_under_the_round_or_its_time": "pandas",
    "test_docs.py::test_the_shell_says_of_your_own_set_what_is_shown": "typer",
    "test_experiments.py": "pandas",
    "test_experiments.py::test_new_writes_once": "typer",
    "test_folder.py": "typer",
    "test_frames.py": "polars",
    "test_front_doors.py::test_every_public_callable_has_a_door": "networkx",
    "test_front_doors.py::test_front_doors_show_no_foreign_exception_on_a_slice": "networkx",
    "test_limit_files.py": "pandas",
    "test_live.py": "typer",
    "test_networks.py::test_networkx_graphs": "networkx",
    "test_from_cvxpy.py": "cvxpy",
    "test_gallery.py": "nbclient",
    "test_proximal_bundle.py::test_a_conic_solver_agrees": "cvxpy",
    "test_postgres.py": "psycopg",
    "test_postgres_sessions.py": "psycopg",
    "test_preview.py": "typer",
    "test_public.py::test_every_module_opens_with_what_it_is": "matplotlib",
    "test_dates.py": "pandas",
    "test_dates.py::test_parquet_with_a_zone_is_in_utc_already": "pyarrow",
    "test_files.py": "openpyxl",
    "test_outputs_page.py": "pandas",
    "test_own_data.py": "pandas",
    "test_own_data_pages.py": "typer",
    "test_refusals.py": "fastapi",
    "test_report.py": "matplotlib",
    "test_report_network.py": "matplotlib",
    "test_release.py": "hatchling",
    "test_service_docs.py": "httpx",
    "test_serve_faults.py": "fastapi",
    "test_hosted_session.py": "orjson",
    "test_service_fixtures.py": "orjson",
    "test_storm.py": "fastapi",
    "test_serve_fuzz.py": "fastapi",
    "test_service.py": "fastapi",
    "test_serve_security.py": "fastapi",
    "test_container.py": "prometheus_client",
    "test_serve_metrics.py": "prometheus_client",
    "test_serve_page.py": "prometheus_client",
    "test_site.py": "sphinx",
    "test_sweep.py": "joblib",
    "test_torch.py": "torch",
    "test_tournament.py": "typer",
    "test_arrays.py::test_a_long_seed_goes_through_a_run_folder_and_back": "pyarrow",
    "test_arrays.py::test_a_table_names_the_line_and_the_column": "typer",
    "test_arrays.py::test_absurd_numbers_are_refused_in_the_shell": "typer",
    "test_arrays.py::test_long_numbers_go_through_a_sweep_and_back": "pyarrow",
    "test_arrays.py::test_memory_that_is_not_there_is_a_sentence": "typer",
}
"""File, or file::test without its parameters, and a package it needs."""


def reason(name: str) -> str | None:
    """Why this file or test is skipped here; None where it is not."""
    package = NEEDS.get(name)
    if package is None or find_spec(package) is not None:
        return None
    return f'{package} is not installed; pip install "tidewolf[{EXTRA[package]}]" runs this'


class Later:
    """A package that takes seconds to import: by the worker that runs its tests alone, when they
    first ask for something of it, and not by each that collects them.
    """

    def __init__(self, package: str) -> None:
        self.package = package

    def __getattr__(self, name: str) -> Any:
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
