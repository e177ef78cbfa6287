"""The mistakes: a patch of one file each, and the laws of which one must fail.

`PATCHES` are named mistakes, `NUMBERS` the functions of which every number is changed in turn, by a
hundredth. Zeros stay: they are where something starts or is cut off, not constants of a formula.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
SOURCE = Path("src/tidewolf")

GUARANTEES = "tests/test_methods.py"
DRIFT = "tests/test_drift.py::test_bounds_are_those_of_the_file_written_plainly"
PRIMAL_DUAL = "tests/test_primal_dual.py::test_bounds_are_those_of_the_files_written_plainly"
ACROSS = "tests/test_slopes.py"
ADVICE = "tests/test_advice.py"
PLAIN_STEPS = "tests/test_learner_bounds.py::test_steps_are_those_of_the_formulas_written_plainly"
UNKNOWN_CONTEXT = "tests/test_ensemble.py::test_rounds_of_unknown_context_count_by_their_slopes"
PLAIN_BOUNDS = "tests/test_learner_bounds.py::test_bounds_are_those_of_the_formulas_written_plainly"
FACTORED, FACTORS = "tests/test_factored.py", "tests/test_descent.py"
REFERENCES = "tests/test_functions.py::test_batches_agree_with_the_formula"

ENSEMBLE = "tests/test_ensemble.py"
ENSEMBLE_SUMS = f"{ENSEMBLE}::test_its_sums_are_those_of_the_inequality_written_plainly"
ENSEMBLE_VALUES = f"{ENSEMBLE}::test_by_values_its_sums_are_those_of_the_file"
ENSEMBLE_GUARANTEE = f"{ENSEMBLE}::test_a_promise_is_the_formula_of_its_file"
HEDGE = "tests/test_hedge.py"
DATES, CSV = "tests/test_dates.py", "tests/test_files.py"
EXCEL, GAPS = "tests/test_files.py", "tests/test_gaps.py"
GROUP = "tests/test_group.py"
ROUNDS = "tests/test_rounds.py"
RESOLVED = f"{ROUNDS}::test_an_ensemble_that_re_solves_in_the_kernel_is_the_one_without"
NETWORK, ROUND_READER = "tests/test_network.py", "tests/test_round_reader.py"
CVXPY = "tests/test_from_cvxpy.py"
CVXPY_KINDS = f"{CVXPY}::test_each_passes_the_checks_of_functions"
CVXPY_VALUES = f"{CVXPY}::test_values_are_those_of_cvxpy_and_subgradients_lie_below"


class Patch(NamedTuple):
    """A named mistake: `old`, which the file holds once, becomes `new`."""

    name: str
    file: str
    old: str
    new: str
    checks: str


class Numbers(NamedTuple):
    """Every number of a function, or of a method (Class.method)."""

    file: str
    function: str
    checks: str = GUARANTEES


class Mutant(NamedTuple):
    """A whole file with a mistake in it."""

    name: str
    file: Path
    text: str
    checks: str


PATCHES = (
    Patch(
        "dates: formats are named that do not fit every date",
        "files/reading.py",
        "for cell in cells:\n        likely",
        "for cell in cells[:1]:\n        likely",
        DATES,
    ),
    Patch(
        "dates: an hour that comes twice is always summer time",
        "files/reading.py",
        "last = next((each for each in readings if last is None or each > last), first)",
        "last = first",
        DATES,
    ),
    Patch(
        "dates: times with an offset are moved by the time zone again",
        "files/table.py",
        "if dated and not utc and format.timezone is not None:",
        "if dated and format.timezone is not None:",
        DATES,
    ),
    Patch(
        "numbers: a point among decimal commas is let through",
        "files/reading.py",
        'if "_" in cell or (decimal == "," and "." in cell):',
        'if "_" in cell:',
        CSV,
    ),
    Patch(
        "text: UTF-8 is read as an older encoding without a word",
        "files/reading.py",
        "contradicted |= text",
        "contradicted |= False and text",
        CSV,
    ),
    Patch(
        "Excel: formulas without a value are gaps",
        "files/reading.py",
        "if cell is None and formula is not None and number != top:",
        "if False:",
        EXCEL,
    ),
    Patch(
        "Excel: what a sheet claims to have is believed",
        "files/reading.py",
        "sheet.reset_dimensions()",
        "pass",
        EXCEL,
    ),
    Patch(
        "gaps: a round is unseen only where a whole row is missing",
        "files/table.py",
        "missing |= empty.any(axis=1)",
        "missing |= empty.all(axis=1)",
        GAPS,
    ),
    Patch(
        "gaps: times of advice make rounds",
        "files/table.py",
        "leading = [table for name, table in named.items() if name not in absent]",
        "leading = list(named.values())",
        GAPS,
    ),
    Patch(
        "Network: limits of moving demands in another unit than capacities",
        "networks/network.py",
        "frozen(sent / self.unit)",
        "frozen(1.0 * sent)",
        f"{NETWORK}::test_costs_and_limits_are_those_of_the_loads",
    ),
    Patch(
        "Network: costs forget what is sent",
        "networks/network.py",
        "np.ascontiguousarray(sent[:, self.owner] * per_entry)",
        "np.ascontiguousarray(per_entry)",
        f"{NETWORK}::test_costs_and_limits_are_those_of_the_loads",
    ),
    Patch(
        "Network: a link that leads back to an equally far node stays",
        "networks/network.py",
        "if tail in there and place(head) > place(tail)",
        "if tail in there and place(head)[0] >= place(tail)[0]",
        f"{NETWORK}::test_what_leads_outward_has_no_cycle_and_all_that_leads_away",
    ),
    Patch(
        "CapacitatedFlow: a path brings more than its end draws",
        "sets/capacitated_flow.py",
        "weight = min(weight, float(owed[source]), -float(owed[end]))",
        "weight = min(weight, float(owed[source]))",
        f"{NETWORK}::test_paths_carry_what_links_do_but_for_circles",
    ),
    Patch(
        "LoadLimit: of equal demands the first capacities instead of the tightest",
        "functions/loads.py",
        "tightest = capacities.argmin(axis=0)",
        "tightest = 0 * capacities.argmin(axis=0)",
        "tests/test_functions.py",
    ),
    Patch(
        "NetworkFiles: the edge list's capacities count beside the table's",
        "networks/from_files.py",
        "values[:, places], own)",
        "np.minimum(values[:, places], own) if name == 'capacities' else values[:, places], own)",
        ROUND_READER,
    ),
    Patch(
        "Ensemble: the guard keeps the units of an older dual",
        "methods/accounts.py",
        "guard=frozen(self.guard * unit), ",
        "",
        ENSEMBLE_SUMS,
    ),
    Patch(
        "Ensemble: a context that sleeps costs nothing",
        "methods/certificate.py",
        "unknown_loss=self.unknown_loss + K.radius * norm(loss)",
        "unknown_loss=self.unknown_loss",
        UNKNOWN_CONTEXT,
    ),
    Patch(
        "Ensemble: policies are guaranteed what holds for points",
        "learners/core.py",
        "self._weights.bound(state.dual, state.cells)",
        "self._weights.bound(state.dual)",
        f"{ENSEMBLE}::test_seasons_that_exclude_each_other_are_exposed_while_policies_have_a_bound",
    ),
    Patch(
        "Ensemble: nobody counts the calls of advisers",
        "learners/core.py",
        "state.oracle_budget - calls,\n            calls=state.calls + calls,\n            solves",
        "state.oracle_budget,\n            calls=state.calls + calls,\n            solves",
        f"{ENSEMBLE}::test_no_total_exceeds_its_measured_bound",
    ),
    Patch(
        "hedge: weights of those skipped",
        "methods/steps/hedge.py",
        "least, rate = min(there), self.rate",
        "least, rate = float(self.totals.min()), self.rate",
        HEDGE,
    ),
    Patch(
        "hedge: an infinite rate looks at those it trusts alone",
        "methods/steps/hedge.py",
        "mix = float(after.min())",
        "mix = float(losses[behind == 0.0].min())",
        HEDGE,
    ),
    Patch(
        "hedge: half the logarithm",
        "methods/steps/hedge.py",
        "return math.log(max(experts, 2))",
        "return 0.5 * math.log(max(experts, 2))",
        HEDGE,
    ),
    Patch(
        "group: prices forget the shares",
        "methods/steps/adagrad.py",
        "own2 = share * share * norms2",
        "own2 = share * norms2",
        GROUP,
    ),
    Patch(
        "group: what has not moved gives back",
        "methods/steps/group.py",
        "square <= 0.0 or held:",
        "square <= 0.0:",
        GROUP,
    ),
    Patch(
        "pool: a point is padded from the rows that others appended",
        "methods/pool.py",
        "weights = np.zeros(self.count)\n        weights[:seen]",
        "weights = np.zeros(len(self.table))\n        weights[:seen]",
        f"{ENSEMBLE}::test_states_are_saved_to_the_bit_and_branches_do_not_meet",
    ),
    Patch(
        "the fullest link of the wrong pair",
        "functions/loads.py",
        "loads = on.load * demands[0, on.pair] * x[on.path]",
        "loads = on.load * demands[0, on.pair[::-1]] * x[on.path]",
        "tests/test_functions.py::test_examples_keep_every_law",
    ),
    Patch(
        "a sum whose gradient forgets its weights",
        "functions/combined.py",
        "return sum(w * part.subgradient(x, weights) for w, part in self._weighted())",
        "return sum(part.subgradient(x, weights) for w, part in self._weighted())",
        REFERENCES,
    ),
    Patch(
        "a maximum whose gradient is that of the last part",
        "functions/combined.py",
        "mine = first == i\n",
        "mine = first == len(self.parts) - 1 - i\n",
        REFERENCES,
    ),
    Patch(
        "sparse pieces of the first round for all",
        "functions/linear.py",
        "starts = 0 if self._shared else self.b.shape[1] * rounds",
        "starts = 0",
        REFERENCES,
    ),
    Patch(
        "rounds without a limit that are broken",
        "core/batch.py",
        "return -arrays.ones(self.rounds, x)",
        "return arrays.ones(self.rounds, x)",
        REFERENCES,
    ),
    Patch(
        "weights of pieces that do not sum to one",
        "hindsight/task.py",
        "mu = mu / np.where(sums > 0.0, sums, 1.0)[rounds]",
        "mu = mu / np.where(sums > 0.0, 1.0, 1.0)[rounds]",
        "tests/test_lp.py",
    ),
    Patch(
        "equal rows of rounds with other features merged",
        "hindsight/policy.py",
        "key = kinds[i].tobytes() + A.indices",
        "key = A.indices",
        "tests/test_policy.py",
    ),
    Patch(
        "a policy by rounds counted from the start of the part",
        "hindsight/policy.py",
        "features = context.features(stream.info(t), t)",
        "features = context.features(stream.info(t), t - first)",
        "tests/test_policy.py",
    ),
    Patch(
        "a policy whose gradient forgets the features",
        "hindsight/policy.py",
        "total[which] += phi[:, None] * gradient",
        "total[which] += gradient",
        "tests/test_policy.py",
    ),
    Patch(
        "exp-concavity that is never tried",
        "testing/functions.py",
        "require.at_most(above[t], alpha * self.tolerance, what)",
        "require.at_most(above[t], np.inf, what)",
        "tests/test_functions.py",
    ),
    Patch(
        "a restart forgets the violation of past epochs",
        "methods/clock.py",
        "self.violation_of_past_epochs + violation",
        "self.violation_of_past_epochs",
        PRIMAL_DUAL,
    ),
    Patch(
        "a restart forgets the regret of past epochs",
        "methods/clock.py",
        "self.regret_of_past_epochs + regret",
        "self.regret_of_past_epochs",
        PRIMAL_DUAL,
    ),
    Patch(
        "PrimalDual prices growth with the radius instead of the reach",
        "methods/paper.py",
        "return min(2.0 * self.K.radius, self.K.diameter + distance)",
        "return self.K.radius",
        PRIMAL_DUAL,
    ),
    Patch(
        "the theorem's PrimalDual cuts a block's violation",
        "methods/steps/saddle.py",
        "violation, slope = min(block.violation, moderate(K.center)), 1.0",
        "slope = 1.0",
        "tests/test_primal_dual.py::test_the_theorem_is_algorithm_4_written_plainly",
    ),
    Patch(
        "blocks of PrimalDual have another length",
        "methods/paper.py",
        "block_factor: ClassVar = 1.46",
        "block_factor: ClassVar = 1.48",
        GUARANTEES,
    ),
    Patch(
        "theta is another where (C) has no root",
        "methods/steps/saddle.py",
        "_THETA = 0.5",
        "_THETA = 0.505",
        GUARANTEES,
    ),
    Patch(
        "drift: a restart keeps the factors of the last block",
        "learners/drift_plus_penalty.py",
        "return state._replace(tally=state.tally._replace(alpha=0.0, inverse_step=0.0))",
        "return state",
        DRIFT,
    ),
    Patch(
        "drift: growth minus twice what was paid",
        "methods/steps/drift.py",
        "max(0.0, inverse_step - tally.inverse_step)",
        "max(0.0, inverse_step - 2.0 * tally.inverse_step)",
        DRIFT,
    ),
    Patch(
        "drift: climb minus twice what was paid",
        "methods/steps/drift.py",
        "max(0.0, alpha - tally.alpha)",
        "max(0.0, alpha - 2.0 * tally.alpha)",
        "tests/test_drift.py::test_factors_that_grow_cost_their_growth_and_those_that_fall_nothing",
    ),
    Patch(
        "drift: the slop without its square root",
        "methods/steps/drift.py",
        "math.sqrt(2.0 * alpha * found.gap)",
        "2.0 * alpha * found.gap",
        DRIFT,
    ),
    Patch(
        "drift: the slop is the gap alone",
        "methods/steps/drift.py",
        "slop = found.gap + far * min(alpha * found.off, math.sqrt(2.0 * alpha * found.gap))",
        "slop = found.gap",
        DRIFT,
    ),
    Patch(
        "proximal_bundle: the answer is said to be where its certificate is least",
        "methods/steps/penalty.py",
        "return _norm(x - lowest) + _ULPS * size",
        "return _ULPS * size",
        "tests/test_proximal_bundle.py"
        "::test_an_answer_found_before_its_certificate_is_off_from_where_that_is_least",
    ),
    Patch(
        "drift: G_g is a slope across the hull too",
        "learners/drift_plus_penalty.py",
        'slopes_y = tangent_slopes(K, "constraint", constraints, y, G_g)',
        "slopes_y = constraints.slopes(y)",
        ACROSS,
    ),
    Patch(
        "drift: a breach's slope is one across the hull too",
        "learners/drift_plus_penalty.py",
        'slopes_x = tangent_slopes(K, "constraint", constraints, x, G_g)[breached]',
        "slopes_x = constraints.slopes(x)[breached]",
        ACROSS,
    ),
    Patch(
        "drift: a round outside whole blocks costs a slope across the hull too",
        "learners/drift_plus_penalty.py",
        'steepest = float(np.max(tangent_slopes(K, "loss", losses, x, G_f)))',
        "steepest = float(np.max(losses.slopes(x)))",
        ACROSS,
    ),
    Patch(
        "slopes: what is left across the hull stays",
        "methods/steps/slopes.py",
        "along = K.tangent(along)",
        "pass",
        ACROSS,
    ),
    Patch(
        "the step grows again where y comes nearer",
        "methods/steps/adagrad.py",
        "sigma = np.maximum(sums.inverse_steps, needed)",
        "sigma = needed",
        PLAIN_STEPS,
    ),
    Patch(
        "LyapunovDescent steps by the diameter, not by how far y is",
        "learners/core.py",
        "reach = reaches(self._factors, z, own.y, own.distance)",
        "reach = self._factors.diameters",
        PLAIN_STEPS,
    ),
    Patch(
        "factors: one tolerance for all",
        "projection/factored.py",
        "tols = tol * _shares(factors.radii)",
        "tols = np.full(len(factors.radii), tol)",
        FACTORED,
    ),
    Patch(
        "factors: the whole way from y to x",
        "kernels/factored_active_set.py",
        "shift = max(0.0, 1.0 - gap / distance2)",
        "shift = 1.0",
        FACTORED,
    ),
    Patch(
        "factors: the oracle's error is drop",
        "kernels/factored_active_set.py",
        "gap = max(drop + error, 0.0)",
        "gap = max(drop, 0.0)",
        FACTORED,
    ),
    Patch(
        "factors: a step by the diameter, not by how far y is",
        "methods/steps/adagrad.py",
        "far = far + np.sqrt(squares(x - y, factors))",
        "far = far + 0.0 * squares(x - y, factors)",
        GROUP,
    ),
    Patch(
        "factors: given back by shares, not by their squares",
        "methods/steps/group.py",
        "square += part.share**2 * float",
        "square += part.share * float",
        FACTORS,
    ),
    Patch(
        "a bound forgets a block that is still open",
        "methods/clock.py",
        "return self.step(state, state.open) if state.open.rounds else state",
        "return state",
        "tests/test_primal_dual.py",
    ),
    Patch(
        "a bound of LyapunovDescent forgets a block that is still open",
        "learners/lyapunov_descent.py",
        "return self._weights.weigh(state.dual, state.open, state.pool.x(0)).dual",
        "return state.dual",
        "tests/test_learner_bounds.py::test_a_block_that_is_still_open_has_its_bound",
    ),
    Patch(
        "Lyapunov weights: most below what was paid proves nothing",
        "methods/steps/lyapunov.py",
        "if dual.impossible or dual.paid - most > rounding:",
        "if dual.impossible or most <= 0.0:",
        "tests/test_learner_bounds.py"
        "::test_seasons_that_exclude_each_other_are_proved_hopeless_by_what_was_paid",
    ),
    Patch(
        "Lyapunov weights: one absurd breach counts in full",
        "methods/steps/lyapunov.py",
        "violation=dual.violation + min(block.violation, sum(breach for _, breach in found))",
        "violation=dual.violation + block.violation",
        "tests/test_learner_bounds.py::test_one_absurd_breach_does_not_silence_the_losses",
    ),
    Patch(
        "Lyapunov weights: the exponent stands still without a horizon",
        "methods/steps/lyapunov.py",
        "max(t, self.horizon or LEAST_HORIZON)",
        "(self.horizon or LEAST_HORIZON)",
        PLAIN_BOUNDS,
    ),
    Patch(
        "Lyapunov weights: the last ratio of slopes stands for the least",
        "methods/steps/lyapunov.py",
        "rho[i] = min(rho[i], ratios[i])",
        "rho[i] = ratios[i]",
        PLAIN_BOUNDS,
    ),
    Patch(
        "certificate: the regret forgets what limits were paid",
        "methods/certificate.py",
        "over = _least(K, sums, cells, 1.0, c), sums.limit_at - paid",
        "over = _least(K, sums, cells, 1.0, c), sums.limit_at",
        PLAIN_BOUNDS,
    ),
    Patch(
        "certificate: an oracle that errs is believed",
        "methods/certificate.py",
        " - size * answer.error",
        "",
        "tests/test_learner_bounds.py::test_an_oracle_that_errs_adds_its_error",
    ),
    Patch(
        "certificate: sums keep the units of older weights",
        "methods/steps/lyapunov.py",
        "limit=frozen(sums.limit * unit + P)",
        "limit=frozen(sums.limit + P)",
        "tests/test_late.py::test_the_sums_of_a_certificate_are_those_of_what_was_played",
    ),
    Patch(
        "Lyapunov weights: another theta",
        "methods/steps/lyapunov.py",
        "THETA = 0.5",
        "THETA = 0.505",
        GUARANTEES,
    ),
    Patch(
        "Lyapunov weights: another c",
        "methods/steps/lyapunov.py",
        "c: float = 2.0",
        "c: float = 2.02",
        GUARANTEES,
    ),
    Patch(
        "Lyapunov weights: another p",
        "methods/steps/lyapunov.py",
        "p: float = 0.5",
        "p: float = 0.505",
        GUARANTEES,
    ),
    Patch(
        "LyapunovFrankWolfe: another rho, T given",
        "learners/lyapunov_frank_wolfe.py",
        "INFO = 1.055,",
        "INFO = 1.06,",
        GUARANTEES,
    ),
    Patch(
        "LyapunovFrankWolfe: another c, T given",
        "learners/lyapunov_frank_wolfe.py",
        "1.055, 2.65",
        "1.055, 2.66",
        GUARANTEES,
    ),
    Patch(
        "LyapunovFrankWolfe: another rho at any time",
        "learners/lyapunov_frank_wolfe.py",
        "ANYTIME = 1.31,",
        "ANYTIME = 1.32,",
        GUARANTEES,
    ),
    Patch(
        "LyapunovFrankWolfe: another c at any time",
        "learners/lyapunov_frank_wolfe.py",
        "1.31, 3.3",
        "1.31, 3.2",
        GUARANTEES,
    ),
    Patch(
        "Lyapunov weights: the ratio is 0 where losses are flat",
        "methods/steps/lyapunov.py",
        "(loss / G if loss > 0.0 and G > 0.0 else 1.0)",
        "(loss / G if loss > 0.0 and G > 0.0 else 0.0)",
        "tests/test_lyapunov.py",
    ),
    Patch(
        "programs take rows as they come",
        "hindsight/task.py",
        "ACROSS, ROUNDING = 1e-2, 1e3",
        "ACROSS, ROUNDING = 0.0, 1e3",
        ACROSS,
    ),
    Patch(
        "headroom is not kept",
        "hindsight/best_point.py",
        "b=program.b - headroom / program.unit",
        "b=program.b",
        ADVICE,
    ),
    Patch(
        "the worst breach of any size is allowed",
        "hindsight/best_point.py",
        "s = max(0.0, float(worst.v[-1])) + _ROOM",
        "s = 2.0 * max(0.0, float(worst.v[-1])) + _ROOM",
        ADVICE,
    ),
    Patch(
        "a model remembers what it solved before",
        "sets/highs.py",
        "solver.clearSolver()\n            self._set_rows(rows)",
        "self._set_rows(rows)",
        ADVICE,
    ),
    Patch(
        "a model keeps the sizes of an earlier program",
        "sets/highs.py",
        '    "simplex_scale_strategy": 0,\n',
        "",
        ADVICE,
    ),
    Patch(
        "the oracle is asked without the prices of limits",
        "hindsight/columns.py",
        "d = d + (prices if limits.A is None else limits.A.T @ prices)",
        "d = d + 0.0 * (prices if limits.A is None else limits.A.T @ prices)",
        ADVICE,
    ),
    Patch(
        "drops begin too small",
        "experts/recent.py",
        "(1.0 - (1.0 - FORGETTING) ** self.counted)",
        "1.0",
        ADVICE,
    ),
    Patch(
        "gains of slack count as drops",
        "experts/recent.py",
        "np.minimum(np.maximum(drop, 0.0), LARGEST_DROP)",
        "np.minimum(np.abs(drop), LARGEST_DROP)",
        ADVICE,
    ),
    Patch(
        "a period is a round too long",
        "experts/resolve.py",
        "state.recent.place(t - self.data)",
        "state.recent.place(t - self.data - 1)",
        ADVICE,
    ),
    Patch(
        "rounds that are feedback are not copied",
        "experts/recent.py",
        "Linear._unchecked(C=frozen(batch.C.copy()))",
        "Linear._unchecked(C=batch.C)",
        ADVICE,
    ),
    Patch(
        "vertices that nobody uses stay",
        "experts/resolve.py",
        "<= IDLE_ROUNDS)",
        "<= 10**9)",
        ADVICE,
    ),
    Patch(
        "the whole of what entries change by counts as churn",
        "evaluation/tracking.py",
        "churn[0] = 0.5 * float(xp",
        "churn[0] = float(xp",
        "tests/test_trajectory_summary.py",
    ),
    Patch(
        "linear programs of earlier rounds are counted again",
        "evaluation/recording.py",
        "solves_in(played.state) - solves_in(self.state)",
        "solves_in(played.state)",
        "tests/test_experts.py",
    ),
    Patch(
        "the guard of the member that lost most is checked, not the worst",
        "evaluation/certificate.py",
        "over, worst = max(seen",
        "over, worst = min(seen",
        "tests/test_experts.py",
    ),
    Patch(
        "advice that waits for its round is shown without weight",
        "learners/ensemble.py",
        "return tuple(state.accounts.played.tolist())",
        "return tuple(state.upcoming.p.tolist())",
        "tests/test_experts.py",
    ),
    Patch(
        "a step of rounds in a kernel goes up",
        "kernels/rounds.py",
        "                    y[e] -= eta[b] * share * g[e]",
        "                    y[e] += eta[b] * share * g[e]",
        f"{ROUNDS}::test_a_run_in_the_kernel_is_the_run_without",
    ),
    Patch(
        "factors of a product share the first one's step in a kernel",
        "kernels/rounds.py",
        "                    y[e] -= eta[b] * share * g[e]",
        "                    y[e] -= eta[0] * share * g[e]",
        "tests/test_factor_rounds.py::test_it_is_the_learner_without_its_kernel",
    ),
    Patch(
        "a projection begins where the last one did",
        "learners/core.py",
        "            y = own.y + 0.0  # one to give away",
        "            y = own.before_projection + 0.0",
        f"{ROUNDS}::test_a_run_in_the_kernel_is_the_run_without",
    ),
    Patch(
        "rounds in a kernel step out of the ball",
        "kernels/rounds.py",
        "        if length2 > settings[RADIUS] * settings[RADIUS]:",
        "        if length2 < 0.0:",
        f"{ROUNDS}::test_a_run_in_the_kernel_is_the_run_without",
    ),
    Patch(
        "rounds in a kernel give nothing back past a limit",
        "kernels/rounds.py",
        "            if past > 0.0 and square > 0.0 and not held:",
        "            if past < 0.0 and square > 0.0 and not held:",
        f"{ROUNDS}::test_a_run_in_the_kernel_is_the_run_without",
    ),
    Patch(
        "weights in a kernel are not in their units",
        "kernels/rounds.py",
        "        w = THETA * ratio * 2.0 ** (log2 - exponent)",
        "        w = THETA * ratio * 2.0**log2",
        f"{ROUNDS}::test_weights_are_those_of_the_ledger",
    ),
    Patch(
        "sums in a kernel stay in old units",
        "kernels/rounds.py",
        "            steps[i, INVERSE_OF, b] *= unit\n",
        "",
        f"{ROUNDS}::test_an_ensemble_counts_in_units_that_grow",
    ),
    Patch(
        "oracle calls of a kernel are free",
        "kernels/rounds.py",
        "            s[ORACLE_BUDGET] -= at[CALLS]\n",
        "",
        f"{ROUNDS}::test_a_run_in_the_kernel_is_the_run_without",
    ),
    Patch(
        "churn of a kernel counts twice",
        "kernels/rounds.py",
        "    return 0.5 * moved if t > 0 else 0.0",
        "    return moved if t > 0 else 0.0",
        f"{ROUNDS}::test_a_run_in_the_kernel_is_the_run_without",
    ),
    Patch(
        "a kernel checks x, where y was to come no farther from the center",
        "kernels/rounds.py",
        "nearer = distance2(y, center)",
        "nearer = distance2(x, center)",
        f"{ROUNDS}::test_a_run_in_the_kernel_is_the_run_without",
    ),
    Patch(
        "losses across a set come back beside limits that nearly are",
        "kernels/rounds.py",
        "gradients[which, e] = along[which, e]",
        "gradients[which, e] = gradients[which, e] if slopes[which] == 0.0 else along[which, e]",
        f"{ROUNDS}::test_losses_across_the_set_are_none_beside_limits_that_nearly_are",
    ),
    Patch(
        "rounding chooses between vertices that tie",
        "kernels/active_set.py",
        "        on_a_grid(r, min(GRAIN * math.sqrt(distance2), margin))\n",
        "",
        f"{ROUNDS}::test_rounding_does_not_choose_between_vertices",
    ),
    Patch(
        "rounding chooses between vertices that tie outside of kernels",
        "projection/search.py",
        "found.drop - tie_margin(K) * distance",
        "found.drop",
        "tests/test_projection.py::test_rounding_does_not_choose_between_vertices_that_tie",
    ),
    Patch(
        "rows that a kernel appends have no products",
        "core/vertices.py",
        "        gram[i, row] = products[i]",
        "        gram[i, row] = 0.0",
        f"{ROUNDS}::test_tables_grow_and_are_made_smaller_inside_long_runs",
    ),
    Patch(
        "members that a kernel moves take the whole gradient",
        "kernels/rounds.py",
        "                    y[e] -= eta[b] * share * g[e]",
        "                    y[e] -= eta[b] * g[e]",
        f"{ROUNDS}::test_an_ensemble_in_the_kernel_is_the_one_without",
    ),
    Patch(
        "the mixer in a kernel forgets its gap",
        "kernels/rounds.py",
        "    s[GAP] += max(0.0, -mixed)\n",
        "",
        f"{ROUNDS}::test_an_ensemble_in_the_kernel_is_the_one_without",
    ),
    Patch(
        "cells in a kernel give back one by one",
        "kernels/rounds.py",
        "end = first + 1 if first < int(settings[PLAIN]) else experts",
        "end = first + 1",
        f"{ROUNDS}::test_an_ensemble_in_the_kernel_is_the_one_without",
    ),
    Patch(
        "sums of cells in a kernel forget the shares",
        "kernels/rounds.py",
        "F[i] += share * f[i]",
        "F[i] += f[i]",
        f"{ROUNDS}::test_an_ensemble_in_the_kernel_is_the_one_without",
    ),
    Patch(
        "whom the bank serves first in a kernel does not depend on trust",
        "kernels/rounds.py",
        "urgency[i] = trust * math.sqrt(distance2(Y[i], X[i]))",
        "urgency[i] = math.sqrt(distance2(Y[i], X[i]))",
        f"{ROUNDS}::test_an_ensemble_in_the_kernel_is_the_one_without",
    ),
    Patch(
        "costs of 0 stay equal",
        "kernels/boxed_dual.py",
        "c[j] = costs[j] if costs[j] != 0.0 else apart(j, size)",
        "c[j] = costs[j]",
        "tests/test_boxed_dual.py",
    ),
    Patch(
        "simplices with capacities take the dearest first",
        "kernels/boxed_dual.py",
        "    for j in order:",
        "    for j in order[::-1]:",
        "tests/test_boxed_dual.py",
    ),
    Patch(
        "a program re-solved in a kernel is that of the round before",
        "kernels/resolving.py",
        "row_of_round(t + 1 - backs[a], costs",
        "row_of_round(t - backs[a], costs",
        RESOLVED,
    ),
    Patch(
        "headroom in a kernel counts rises of capacities",
        "kernels/resolving.py",
        "max(c[e] - capacities[t, e], 0.0)",
        "max(capacities[t, e] - c[e], 0.0)",
        RESOLVED,
    ),
    Patch(
        "rounds before the first that is given are one off",
        "kernels/resolving.py",
        "out[e] = rows[r, e] if r >= begin else past[back, e]",
        "out[e] = rows[r, e] if r >= begin else past[max(0, back - 1), e]",
        f"{ROUNDS}::test_live_rounds_of_an_ensemble_are_those_of_a_run",
    ),
    Patch(
        "a live round of an ensemble changes the state before it",
        "methods/compiled_rounds.py",
        "        now, done, code = start.copy(), 0, 0",
        "        now, done, code = start, 0, 0",
        f"{ROUNDS}::test_live_rounds_of_an_ensemble_are_those_of_a_run",
    ),
    Patch(
        "rows that another state appended are taken for one's own",
        "experts/compiled_resolve.py",
        "if end == self.filled and end + len(costs)",
        "if end + len(costs)",
        f"{ROUNDS}::test_rounds_from_one_state_do_not_see_each_other",
    ),
    Patch(
        "short runs are compiled",
        "evaluation/recording.py",
        "rounds == 0 or rounds * math.prod(stream.shape) <= SHORT",
        "False",
        f"{ROUNDS}::test_short_runs_are_interpreted_and_the_same",
    ),
    Patch(
        "a piece that is no number hides behind others",
        "kernels/evaluate.py",
        "            strange += not abs(pieces[j]) <= MOST\n",
        "",
        f"{ROUNDS}::test_a_piece_that_is_no_number_is_seen_behind_others",
    ),
    Patch(
        "products of one round are added up in another order",
        "functions/base.py",
        "((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))",
        "sum(s)",
        f"{ROUNDS}::test_products_have_the_bits_of_the_kernel",
    ),
    Patch(
        "a kernel plays for whoever overrides the learner",
        "learners/core.py",
        """ if "__final__" in vars(type(self)) else None""",
        "",
        f"{ROUNDS}::test_what_somebody_made_of_a_set_or_learner_is_not_played_by_the_kernel",
    ),
    Patch(
        "cvxpy: entries of matrices are in the order of points",
        "functions/from_cvxpy.py",
        "*shape[::-1]).transpose(order))",
        "*shape[::-1]).reshape(*found.shape[:-1], *shape))",
        f"{CVXPY}::test_matrices_are_in_the_order_of_points",
    ),
    Patch(
        "cvxpy: gradients of matrices are in the order of points",
        "functions/from_cvxpy.py",
        'x.shape if slope.size > 1 else (), order="F")',
        "x.shape if slope.size > 1 else ())",
        f"{CVXPY}::test_matrices_are_in_the_order_of_points",
    ),
    Patch(
        "cvxpy: an expression is analysed at every call",
        "functions/from_cvxpy.py",
        "_engine = lru_cache(32)(_Cvxpy)",
        "_engine = lru_cache(0)(_Cvxpy)",
        f"{CVXPY}::test_it_is_canonicalised_once",
    ),
    Patch(
        "cvxpy: values of the variable stay changed",
        "functions/from_cvxpy.py",
        "                leaf.save_value(value)",
        "                pass",
        f"{CVXPY}::test_nothing_given_is_copied_or_changed",
    ),
    Patch(
        "cvxpy: a constant of 0 makes another kind",
        "functions/from_cvxpy.py",
        "        if not self.root.moving(self.n, self.n + 1).any() and not b.any():",
        "        if not b.any():",
        f"{CVXPY}::test_rounds_given_one_by_one_are_of_one_kind",
    ),
    Patch(
        "cvxpy: matrices of a single round are those of all",
        "functions/from_cvxpy.py",
        "if moves else P[0]",
        "if p.shape[1] > 1 else P[0]",
        f"{CVXPY}::test_rounds_given_one_by_one_are_of_one_kind",
    ),
    Patch(
        "cvxpy: parameters may have any values",
        "functions/from_cvxpy.py",
        "if any(p.attributes.values()) else 0):",
        "if False else 0):",
        f"{CVXPY}::test_bad_input_is_refused_and_its_setting_named",
    ),
    Patch(
        "cvxpy: functions have values outside their domain",
        "functions/from_cvxpy.py",
        "<= _ROUNDING for one in self.domain)",
        "<= np.inf for one in self.domain)",
        f"{CVXPY}::test_where_it_is_defined_is_stated_and_kept",
    ),
    Patch(
        "cvxpy: wrong gradients of relative entropies are taken",
        "functions/from_cvxpy.py",
        "if self.sure else self._multiplier()",
        "if True else self._multiplier()",
        CVXPY_KINDS,
    ),
)

NUMBERS = (
    Numbers("methods/steps/saddle.py", "unit_free_steps"),
    Numbers("methods/paper.py", "PaperLearner.known_distance2"),
    Numbers("methods/paper.py", "theorem_eps"),
    Numbers("learners/primal_dual.py", "PrimalDual.theorem_values"),
    Numbers("learners/primal_dual.py", "PrimalDual.guarantee"),
    Numbers("methods/steps/saddle.py", "damping"),
    Numbers("methods/steps/saddle.py", "violation_bound"),
    Numbers("learners/drift_plus_penalty.py", "DriftPlusPenalty.weights"),
    Numbers("learners/drift_plus_penalty.py", "DriftPlusPenalty.guarantee"),
    Numbers("learners/drift_plus_penalty.py", "DriftPlusPenalty.theorem_values"),
    Numbers("learners/bandit_primal_dual.py", "BanditPrimalDual.theorem_values"),
    Numbers("learners/bandit_primal_dual.py", "BanditPrimalDual._unit_free_guarantee"),
    Numbers("learners/bandit_primal_dual.py", "BanditPrimalDual.mu_for"),
    Numbers("learners/bandit_primal_dual.py", "BanditPrimalDual.guarantee"),
    Numbers("methods/steps/lyapunov.py", "LyapunovWeights.guaranteed"),
    Numbers("methods/steps/adagrad.py", "_price", FACTORS),
    Numbers("learners/core.py", "Core.guarantee", ENSEMBLE_GUARANTEE),
    Numbers("learners/lyapunov_frank_wolfe.py", "LyapunovFrankWolfe._rho"),
    Numbers("learners/lyapunov_frank_wolfe.py", "LyapunovFrankWolfe.constants"),
    Numbers("baselines/sinha_vaze.py", "SinhaVaze.guarantee"),
)

SAME = {
    ("methods/steps/lyapunov.py", "if limits > "): "limits are counted",
    ("methods/paper.py", "(math.log(T) or "): "one round is projected nowhere",
    ("learners/primal_dual.py", "(math.log(T) or "): "one round is projected nowhere",
    ("learners/bandit_primal_dual.py", "(math.log(T) or "): "one round is projected nowhere",
    ("learners/bandit_primal_dual.py", "max(self.assumed) or "): "slopes of 0 move nothing",
    ("learners/core.py", "self.horizon or "): "without a horizon nothing is promised",
    (
        "learners/lyapunov_frank_wolfe.py",
        "self.K.diameter or ",
    ): "a set of one point has nothing to move in",
}
"""Numbers that change nothing, by what stands before them, and why."""


def every() -> list[Mutant]:
    """All mutants, in the order of the tables; a patch that does not fit its file any more is a
    ValueError.
    """
    return [_patched(patch) for patch in PATCHES] + [
        mutant for numbers in NUMBERS for mutant in _renumbered(numbers)
    ]


def _patched(patch: Patch) -> Mutant:
    file = SOURCE / patch.file
    text = (ROOT / file).read_text()
    if text.count(patch.old) != 1:
        raise ValueError(
            f"{file} holds {patch.old!r} {text.count(patch.old)} times, not once: {patch.name!r} "
            "does not apply."
        )
    return Mutant(patch.name, file, text.replace(patch.old, patch.new), patch.checks)


def _renumbered(numbers: Numbers) -> list[Mutant]:
    file = SOURCE / numbers.file
    text = (ROOT / file).read_text()
    found = [node for node in ast.walk(_function(ast.parse(text), numbers)) if _is_a_number(node)]
    if not found:
        raise ValueError(f"{numbers.function} of {file} holds no number.")
    lines = text.splitlines(keepends=True)
    mutants = []
    for node in sorted(found, key=lambda node: (node.lineno, node.col_offset)):
        line, start, end = lines[node.lineno - 1], node.col_offset, node.end_col_offset
        if any(path == numbers.file and line[:start].endswith(before) for path, before in SAME):
            continue
        changed = [*lines]
        changed[node.lineno - 1] = f"{line[:start]}(1.01 * {line[start:end]}){line[end:]}"
        where = (
            f"{numbers.function}: {line[start:end]} is 1 % larger, line {node.lineno}, column "
            f"{start}, {line.strip()}"
        )
        mutants.append(Mutant(where, file, "".join(changed), numbers.checks))
    return mutants


def _function(tree: ast.Module, numbers: Numbers) -> ast.AST:
    node: ast.AST = tree
    for name in numbers.function.split("."):
        inside = [
            n
            for n in ast.iter_child_nodes(node)
            if isinstance(n, ast.ClassDef | ast.FunctionDef) and n.name == name
        ]
        if len(inside) != 1:
            raise ValueError(f"{numbers.file} has no {numbers.function}.")
        node = inside[0]
    return node


def _is_a_number(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, int | float)
        and not isinstance(node.value, bool)
        and node.value != 0
    )
