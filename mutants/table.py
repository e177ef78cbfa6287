"""The mistakes: a patch of one file each, and the laws of which one must fail.

`PATCHES` are the named mistakes of each file: the text `old`, which the file holds once, the text
that it becomes, and the checks. `NUMBERS` are the functions and constants of which every number is
changed in turn, by a hundredth. Zeros stay: they are where something starts or is cut off, not
constants of a formula.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
SOURCE = Path("src/tidewolf")

GUARANTEES = "tests/test_methods.py"
DRIFT = "tests/test_drift.py::test_bounds_are_those_of_the_file_written_plainly"
PRIMAL_DUAL = "tests/test_theorems.py::test_bounds_are_those_of_the_files_written_plainly"
ACROSS = "tests/test_slopes.py"
ADVICE = "tests/test_advice.py"
PLAIN_STEPS = "tests/test_learner_bounds.py::test_steps_are_those_of_the_formulas_written_plainly"
UNKNOWN_CONTEXT = "tests/test_ensemble.py::test_rounds_of_unknown_context_count_by_their_slopes"
PLAIN_BOUNDS = "tests/test_learner_bounds.py::test_bounds_are_those_of_the_formulas_written_plainly"
FACTORED, FACTORS = "tests/test_factored.py", "tests/test_descent.py"
REFERENCES = "tests/test_functions.py::test_batches_agree_with_the_formula"

ENSEMBLE = "tests/test_ensemble.py"
ENSEMBLE_SUMS = f"{ENSEMBLE}::test_its_sums_are_those_of_the_inequality_written_plainly"
ENSEMBLE_GUARANTEE = f"{ENSEMBLE}::test_a_promise_is_the_formula_of_its_file"
HEDGE = "tests/test_hedge.py"
DATES, CSV = "tests/test_dates.py", "tests/test_files.py"
EXCEL, GAPS = "tests/test_files.py", "tests/test_gaps.py"
GROUP = "tests/test_descent.py"
ROUNDS = "tests/test_rounds.py"
AVAILABLE = "tests/test_available.py"
OUTAGE_WEIGHTS = (
    f"{AVAILABLE}::test_after_an_outage_weights_and_decisions_are_those_of_a_run_without_one"
)
OUTAGE_LIMITS = (
    f"{AVAILABLE}::test_limits_that_only_the_way_around_breaks_do_not_move_the_usual_weights"
)
RESOLVED = f"{ROUNDS}::test_an_ensemble_that_re_solves_in_the_kernel_is_the_one_without"
NETWORK, ROUND_READER = "tests/test_networks.py", "tests/test_round_reader.py"
CVXPY = "tests/test_from_cvxpy.py"
CVXPY_KINDS = f"{CVXPY}::test_each_passes_the_checks_of_functions"


class Patch(NamedTuple):
    """The text `old`, which a file holds once, what it becomes, and the checks that must fail."""

    old: str
    new: str
    checks: str


class Mutant(NamedTuple):
    """A whole file with a mistake in it."""

    name: str
    file: Path
    text: str
    checks: str


PATCHES = {
    "files/reading.py": {
        "dates: formats are named that do not fit every date": Patch(
            "all(_moment(str(cell), each) for cell in cells)",
            "all(_moment(str(cell), each) for cell in cells[:1])",
            DATES,
        ),
        "dates: an hour that comes twice is always summer time": Patch(
            "last = next((each for each in readings if last is None or each > last), first)",
            "last = first",
            DATES,
        ),
        "numbers: a point among decimal commas is let through": Patch(
            'if "_" in cell or (decimal == "," and "." in cell):', 'if "_" in cell:', CSV
        ),
        "text: UTF-8 is read as an older encoding without a word": Patch(
            "contradicted |= text", "contradicted |= False and text", CSV
        ),
        "Excel: formulas without a value are gaps": Patch(
            "if cell is None and formula is not None and number != top:", "if False:", EXCEL
        ),
        "Excel: what a sheet claims to have is believed": Patch(
            "sheet.reset_dimensions()", "pass", EXCEL
        ),
    },
    "files/table.py": {
        "dates: times with an offset are moved by the time zone again": Patch(
            "if dated and not utc and format.timezone is not None:",
            "if dated and format.timezone is not None:",
            DATES,
        ),
        "gaps: a round is unseen only where a whole row is missing": Patch(
            "missing |= empty.any(axis=1)", "missing |= empty.all(axis=1)", GAPS
        ),
        "gaps: times of advice make rounds": Patch(
            "leading = [table for name, table in named.items() if name not in absent]",
            "leading = list(named.values())",
            GAPS,
        ),
    },
    "networks/network.py": {
        "Network: limits of moving demands in another unit than capacities": Patch(
            "frozen(sent / self.unit)",
            "frozen(1.0 * sent)",
            f"{NETWORK}::test_costs_and_limits_are_those_of_the_loads",
        ),
        "Network: costs forget what is sent": Patch(
            "np.ascontiguousarray(sent[:, self.owner] * per_entry)",
            "np.ascontiguousarray(per_entry)",
            f"{NETWORK}::test_costs_and_limits_are_those_of_the_loads",
        ),
        "Network: a link that leads back to an equally far node stays": Patch(
            "if tail in there and place(head) > place(tail)",
            "if tail in there and place(head)[0] >= place(tail)[0]",
            f"{NETWORK}::test_what_leads_outward_has_no_cycle_and_all_that_leads_away",
        ),
    },
    "sets/capacitated_flow.py": {
        "CapacitatedFlow: a path brings more than its end draws": Patch(
            "weight = min(weight, float(owed[source]), -float(owed[end]))",
            "weight = min(weight, float(owed[source]))",
            f"{NETWORK}::test_paths_carry_what_links_do_but_for_circles",
        ),
    },
    "functions/loads.py": {
        "LoadLimit: of equal demands the first capacities instead of the tightest": Patch(
            "tightest = capacities.argmin(axis=0)",
            "tightest = 0 * capacities.argmin(axis=0)",
            "tests/test_functions.py",
        ),
        "the fullest link of the wrong pair": Patch(
            'on.load * self._host("demands")[0, on.pair], on.path',
            'on.load * self._host("demands")[0, on.pair[::-1]], on.path',
            "tests/test_functions.py::test_examples_keep_every_law",
        ),
    },
    "networks/network_files.py": {
        "NetworkFiles: the edge list's capacities count beside the table's": Patch(
            "values[:, places], own)",
            "np.minimum(values[:, places], own) if name == 'capacities' "
            "else values[:, places], own)",
            ROUND_READER,
        ),
    },
    "methods/accounts.py": {
        "limits that only an outage breaks move the weights of other rounds": Patch(
            "max(0.0, -value - inner(P, d))",
            "0.0",
            OUTAGE_LIMITS,
        ),
        "Ensemble: the guard keeps the units of an older dual": Patch(
            "guard=frozen(self.guard * unit), ", "", ENSEMBLE_SUMS
        ),
    },
    "methods/certificate.py": {
        "Ensemble: a context that sleeps costs nothing": Patch(
            "unknown_loss=self.unknown_loss + K.radius * arrays.norm(loss)",
            "unknown_loss=self.unknown_loss",
            UNKNOWN_CONTEXT,
        ),
        "certificate: the regret forgets what limits were paid": Patch(
            "over = _least(K, sums, cells, 1.0, c), sums.limit_at - paid",
            "over = _least(K, sums, cells, 1.0, c), sums.limit_at",
            PLAIN_BOUNDS,
        ),
        "certificate: sharp weights take the mean for the center": Patch(
            " + arrays.inner(one.gradient, points) / rounds", "", PLAIN_BOUNDS
        ),
        "certificate: an oracle that errs is believed": Patch(
            " - size * answer.error",
            "",
            "tests/test_learner_bounds.py::test_an_oracle_that_errs_adds_its_error",
        ),
    },
    "learners/core.py": {
        "a bound of LyapunovDescent forgets a block that is still open": Patch(
            "return self._weights.weigh(state.dual, state.open, state.pool.x(0)).dual",
            "return state.dual",
            "tests/test_learner_bounds.py::test_a_block_that_is_still_open_has_its_bound",
        ),
        "Ensemble: policies are guaranteed what holds for points": Patch(
            "self._weights.bound(self.dual_of(state), cells)",
            "self._weights.bound(self.dual_of(state))",
            f"{ENSEMBLE}::test_seasons_that_exclude_each_other_are_exposed_while_policies_have_a_bound",
        ),
        "Ensemble: nobody counts the calls of advisers": Patch(
            "budget - calls,\n            calls=state.calls + calls,\n            solves",
            "budget,\n            calls=state.calls + calls,\n            solves",
            "tests/test_certificate.py::test_no_bound_is_exceeded_in_hostile_runs",
        ),
        "LyapunovDescent steps by the diameter, not by how far y is": Patch(
            "reach = adagrad.reaches(factors, state.pool.x(i), y, distance)",
            "reach = factors.diameters",
            PLAIN_STEPS,
        ),
        "a projection begins where the last one did": Patch(
            "            y = own.y + 0.0 if",
            "            y = own.before_projection + 0.0 if",
            f"{ROUNDS}::test_a_run_in_the_kernel_is_the_run_without",
        ),
        "all weights learn from an outage": Patch(
            "return around._replace(mixer=mixer, outage",
            "return around._replace(outage",
            OUTAGE_WEIGHTS,
        ),
        "the next outage begins with the weights of the last one": Patch(
            "not waiting and before.usual is None:",
            "False:",
            OUTAGE_WEIGHTS,
        ),
        "a kernel plays for whoever overrides the learner": Patch(
            """ if "__final__" in vars(type(self)) else None""",
            "",
            f"{ROUNDS}::test_what_somebody_made_of_a_set_or_learner_is_not_played_by_the_kernel",
        ),
    },
    "methods/steps/hedge.py": {
        "hedge: weights of those skipped": Patch(
            "least, rate = min(there), self.rate",
            "least, rate = float(self.totals.min()), self.rate",
            HEDGE,
        ),
        "hedge: an infinite rate looks at those it trusts alone": Patch(
            "mix = float(after.min())", "mix = float(losses[behind == 0.0].min())", HEDGE
        ),
        "hedge: half the logarithm": Patch(
            "return math.log(max(experts, 2))", "return 0.5 * math.log(max(experts, 2))", HEDGE
        ),
    },
    "methods/steps/adagrad.py": {
        "group: what has not moved gives back": ("square <= 0.0 or held:", "square <= 0.0:", GROUP),
        "factors: given back by shares, not by their squares": Patch(
            "square += part.share**2 * float", "square += part.share * float", FACTORS
        ),
        "group: prices forget the shares": Patch(
            "own2 = share * share * norms2", "own2 = share * norms2", GROUP
        ),
        "the step grows again where y comes nearer": Patch(
            "sigma = np.maximum(sums.inverse_steps, needed)", "sigma = needed", PLAIN_STEPS
        ),
        "factors: a step by the diameter, not by how far y is": Patch(
            "far = far + np.sqrt(squares(x - y, factors))",
            "far = far + 0.0 * squares(x - y, factors)",
            GROUP,
        ),
    },
    "methods/pool.py": {
        "pool: a point is padded from the rows that others appended": Patch(
            "weights = np.zeros(self.count)\n        weights[:seen]",
            "weights = np.zeros(len(self.table))\n        weights[:seen]",
            f"{ENSEMBLE}::test_every_law_holds_with_what_is_known",
        ),
    },
    "functions/combined.py": {
        "a sum whose gradient forgets its weights": Patch(
            "return sum(w * part.subgradient(x, weights) for w, part in self._weighted())",
            "return sum(part.subgradient(x, weights) for w, part in self._weighted())",
            REFERENCES,
        ),
        "a maximum whose gradient is that of the last part": Patch(
            "weights * like(first == i, weights)",
            "weights * like(first == len(self.parts) - 1 - i, weights)",
            REFERENCES,
        ),
    },
    "functions/linear.py": {
        "sparse pieces of the first round for all": Patch(
            "places = limits if self._shared else limits + self.b.shape[1] * rounds",
            "places = limits",
            REFERENCES,
        ),
    },
    "core/batch.py": {
        "rounds without a limit that are broken": Patch(
            "return -arrays.ones(self.rounds, x)", "return arrays.ones(self.rounds, x)", REFERENCES
        ),
    },
    "hindsight/task.py": {
        "weights of pieces that do not sum to one": Patch(
            "mu = mu / np.where(sums > 0.0, sums, 1.0)[rounds]",
            "mu = mu / np.where(sums > 0.0, 1.0, 1.0)[rounds]",
            "tests/test_lp.py",
        ),
        "programs take rows as they come": Patch(
            "ACROSS, ROUNDING = 1e-2, 1e3", "ACROSS, ROUNDING = 0.0, 1e3", ACROSS
        ),
    },
    "hindsight/best.py": {
        "equal rows of rounds with other features merged": Patch(
            "key = kinds[i].tobytes() + A.indices", "key = A.indices", "tests/test_policy.py"
        ),
        "a policy by rounds counted from the start of the part": Patch(
            "features = context.features(stream.info(t), t)",
            "features = context.features(stream.info(t), t - first)",
            "tests/test_policy.py",
        ),
        "a policy whose gradient forgets the features": Patch(
            "total[which] += phi[:, None] * gradient",
            "total[which] += gradient",
            "tests/test_policy.py",
        ),
    },
    "testing/functions.py": {
        "exp-concavity that is never tried": Patch(
            "require.at_most(above[t], alpha * self.tolerance, what)",
            "require.at_most(above[t], np.inf, what)",
            "tests/test_functions.py",
        ),
    },
    "methods/clock.py": {
        "a restart forgets the violation of past epochs": Patch(
            "self.violation_of_past_epochs + violation",
            "self.violation_of_past_epochs",
            PRIMAL_DUAL,
        ),
        "a restart forgets the regret of past epochs": Patch(
            "self.regret_of_past_epochs + regret", "self.regret_of_past_epochs", PRIMAL_DUAL
        ),
        "a bound forgets a block that is still open": Patch(
            "return self.step(state, state.open) if state.open.rounds else state",
            "return state",
            "tests/test_theorems.py",
        ),
    },
    "methods/paper.py": {
        "PrimalDual prices growth with the radius instead of the reach": Patch(
            "return min(2.0 * self.K.radius, self.K.diameter + distance)",
            "return self.K.radius",
            PRIMAL_DUAL,
        ),
    },
    "methods/steps/saddle.py": {
        "the theorem's PrimalDual cuts a block's violation": Patch(
            "violation, slope = min(block.violation, moderate(K.center)), 1.0",
            "slope = 1.0",
            "tests/test_theorems.py::test_the_theorem_is_algorithm_4_written_plainly",
        ),
    },
    "learners/drift_plus_penalty.py": {
        "drift: a restart keeps the factors of the last block": Patch(
            "return state._replace(tally=state.tally._replace(alpha=0.0, inverse_step=0.0))",
            "return state",
            DRIFT,
        ),
        "drift: G_g is a slope across the hull too": Patch(
            'slopes_y = tangent_slopes(K, "constraint", constraints, y, G_g)',
            "slopes_y = constraints.slopes(y)",
            ACROSS,
        ),
        "drift: a breach's slope is one across the hull too": Patch(
            'slopes_x = tangent_slopes(K, "constraint", constraints, x, G_g)[breached]',
            "slopes_x = constraints.slopes(x)[breached]",
            ACROSS,
        ),
        "drift: a round outside whole blocks costs a slope across the hull too": Patch(
            'steepest = float(np.max(tangent_slopes(K, "loss", losses, x, G_f)))',
            "steepest = float(np.max(losses.slopes(x)))",
            ACROSS,
        ),
    },
    "methods/steps/drift.py": {
        "drift: growth minus twice what was paid": Patch(
            "max(0.0, inverse_step - tally.inverse_step)",
            "max(0.0, inverse_step - 2.0 * tally.inverse_step)",
            DRIFT,
        ),
        "drift: climb minus twice what was paid": Patch(
            "max(0.0, alpha - tally.alpha)",
            "max(0.0, alpha - 2.0 * tally.alpha)",
            "tests/test_drift.py::test_factors_that_grow_cost_their_growth_and_those_that_fall_nothing",
        ),
        "drift: the slop without its square root": Patch(
            "math.sqrt(2.0 * alpha * found.gap)", "2.0 * alpha * found.gap", DRIFT
        ),
        "drift: the slop is the gap alone": Patch(
            "slop = found.gap + far * min(alpha * found.off, math.sqrt(2.0 * alpha * found.gap))",
            "slop = found.gap",
            DRIFT,
        ),
    },
    "methods/steps/penalty.py": {
        "proximal_bundle: the answer is said to be where its certificate is least": Patch(
            "return _norm(x - lowest) + _ULPS * size",
            "return _ULPS * size",
            "tests/test_proximal_bundle.py"
            "::test_an_answer_found_before_its_certificate_is_off_from_where_that_is_least",
        ),
    },
    "methods/steps/slopes.py": {
        "slopes: what is left across the hull stays": ("along = K.tangent(along)", "pass", ACROSS),
    },
    "projection/active.py": {
        "factors: one tolerance for all": Patch(
            "tols = tol * _shares(factors_in(K).radii)",
            "tols = np.full(len(factors_in(K).radii), tol)",
            FACTORED,
        ),
    },
    "methods/steps/lyapunov.py": {
        "Lyapunov weights: most below what was paid proves nothing": Patch(
            "dual.impossible or paid - most > rounding",
            "dual.impossible or most <= 0.0",
            "tests/test_learner_bounds.py"
            "::test_seasons_that_exclude_each_other_are_proved_hopeless_by_what_was_paid",
        ),
        "Lyapunov weights: one absurd breach counts in full": Patch(
            "min(block.violation, sum(one.violation for one in found))",
            "block.violation",
            "tests/test_learner_bounds.py::test_one_absurd_breach_does_not_silence_the_losses",
        ),
        "Lyapunov weights: the exponent stands still without a horizon": Patch(
            "max(t, self.horizon or LEAST_HORIZON)", "(self.horizon or LEAST_HORIZON)", PLAIN_BOUNDS
        ),
        "Lyapunov weights: the last ratio of slopes stands for the least": Patch(
            "rho[i] = min(rho[i], ratios[i])", "rho[i] = ratios[i]", PLAIN_BOUNDS
        ),
        "certificate: sums keep the units of older weights": Patch(
            "limit=arrays.frozen(sums.limit * unit + P)",
            "limit=arrays.frozen(sums.limit + P)",
            "tests/test_late.py::test_the_sums_of_a_certificate_are_those_of_what_was_played",
        ),
        "Lyapunov weights: the ratio is 0 where losses are flat": Patch(
            "(loss / G if loss > 0.0 and G > 0.0 else 1.0)",
            "(loss / G if loss > 0.0 and G > 0.0 else 0.0)",
            "tests/test_lyapunov.py",
        ),
    },
    "hindsight/best_point.py": {
        "the oracle is asked without the prices of limits": Patch(
            "d = d + (prices if limits.A is None else limits.A.T @ prices)",
            "d = d + 0.0 * (prices if limits.A is None else limits.A.T @ prices)",
            ADVICE,
        ),
        "headroom is not kept": ("b=program.b - headroom / program.unit", "b=program.b", ADVICE),
        "the worst breach of any size is allowed": Patch(
            "max(0.0, float(worst.v[-1])) + _ROOM",
            "2.0 * max(0.0, float(worst.v[-1])) + _ROOM",
            ADVICE,
        ),
    },
    "sets/highs.py": {
        "a model remembers what it solved before": Patch(
            "solver.clearSolver()\n            self._set_rows(rows)", "self._set_rows(rows)", ADVICE
        ),
        "a model keeps the sizes of an earlier program": Patch(
            '    "simplex_scale_strategy": 0,\n', "", ADVICE
        ),
    },
    "experts/recent.py": {
        "drops begin too small": ("(1.0 - (1.0 - FORGETTING) ** self.counted)", "1.0", ADVICE),
        "gains of slack count as drops": Patch(
            "np.minimum(np.maximum(drop, 0.0), LARGEST_DROP)",
            "np.minimum(np.abs(drop), LARGEST_DROP)",
            ADVICE,
        ),
        "rounds that are feedback are not copied": Patch(
            "Linear._unchecked(C=frozen(batch.C.copy()))", "Linear._unchecked(C=batch.C)", ADVICE
        ),
    },
    "experts/resolve.py": {
        "a period is a round too long": Patch(
            "state.recent.place(t - self.data)", "state.recent.place(t - self.data - 1)", ADVICE
        ),
        "vertices that nobody uses stay": ("<= IDLE_ROUNDS)", "<= 10**9)", ADVICE),
    },
    "evaluation/tracking.py": {
        "the whole of what entries change by counts as churn": Patch(
            "churn[0] = 0.5 * float(xp", "churn[0] = float(xp", "tests/test_evaluation.py"
        ),
    },
    "evaluation/recording.py": {
        "linear programs of earlier rounds are counted again": Patch(
            "solves_in(played.state) - solves_in(self.state)",
            "solves_in(played.state)",
            "tests/test_experts.py",
        ),
        "short runs are compiled": Patch(
            "rounds == 0 or rounds * _entries(stream) <= SHORT",
            "False",
            f"{ROUNDS}::test_short_runs_are_interpreted_and_the_same",
        ),
    },
    "evaluation/certificate.py": {
        "the guard of the member that lost most is checked, not the worst": Patch(
            "over, worst = max(seen", "over, worst = min(seen", "tests/test_experts.py"
        ),
    },
    "learners/ensemble.py": {
        "advice that waits for its round is shown without weight": Patch(
            "return tuple(state.accounts.played.tolist())",
            "return tuple(state.upcoming.p.tolist())",
            "tests/test_experts.py",
        ),
    },
    "kernels/large.py": {
        "large points leave the sum that they have": Patch(
            " - rate * (costs[i] - shift - mean) + lift",
            " - rate * (costs[i] - shift - mean)",
            f"{ROUNDS}::test_large_points_are_played_as_small_ones",
        ),
        "large boxes give nothing back past a limit": Patch(
            "        limit_rate = -kept_back(over, square, keep) * eta * w\n",
            "        limit_rate = 0.0\n",
            f"{ROUNDS}::test_large_points_are_played_as_small_ones",
        ),
    },
    "kernels/rounds.py": {
        "a step of rounds in a kernel goes up": Patch(
            "                    y[e] -= eta[b] * share * g[e]",
            "                    y[e] += eta[b] * share * g[e]",
            f"{ROUNDS}::test_a_run_in_the_kernel_is_the_run_without",
        ),
        "factors of a product share the first one's step in a kernel": Patch(
            "                    y[e] -= eta[b] * share * g[e]",
            "                    y[e] -= eta[0] * share * g[e]",
            "tests/test_factor_rounds.py::test_it_is_the_learner_without_its_kernel",
        ),
        "rounds in a kernel step out of the ball": Patch(
            "        if shares[i] > 0.0 and length2 > settings[RADIUS] * settings[RADIUS]:",
            "        if length2 < 0.0:",
            f"{ROUNDS}::test_a_run_in_the_kernel_is_the_run_without",
        ),
        "rounds in a kernel give nothing back past a limit": Patch(
            "            if past > 0.0 and square > 0.0 and not held:",
            "            if past < 0.0 and square > 0.0 and not held:",
            f"{ROUNDS}::test_a_run_in_the_kernel_is_the_run_without",
        ),
        "weights in a kernel are not in their units": Patch(
            "        w = THETA * ratio * 2.0 ** (log2 - exponent)",
            "        w = THETA * ratio * 2.0**log2",
            f"{ROUNDS}::test_weights_are_those_of_the_ledger",
        ),
        "sums in a kernel stay in old units": Patch(
            "            steps[i, INVERSE_OF, b] *= unit\n",
            "",
            f"{ROUNDS}::test_an_ensemble_counts_in_units_that_grow",
        ),
        "oracle calls of a kernel are free": Patch(
            "            s[ORACLE_BUDGET] -= at[CALLS]\n",
            "",
            f"{ROUNDS}::test_a_run_in_the_kernel_is_the_run_without",
        ),
        "churn of a kernel counts twice": Patch(
            "    return 0.5 * moved if t > 0 else 0.0",
            "    return moved if t > 0 else 0.0",
            f"{ROUNDS}::test_a_run_in_the_kernel_is_the_run_without",
        ),
        "a kernel checks x, where y was to come no farther from the center": Patch(
            "nearer += distance2(own, c)",
            "nearer += distance2(x[low:high], c)",
            f"{ROUNDS}::test_a_run_in_the_kernel_is_the_run_without",
        ),
        "losses across a set come back beside limits that nearly are": Patch(
            "copy_to(along[which], gradients[which])",
            "copy_to(along[which] if slopes[which] > 0.0 else gradients[which], gradients[which])",
            f"{ROUNDS}::test_losses_across_the_set_are_none_beside_limits_that_nearly_are",
        ),
        "members that a kernel moves take the whole gradient": Patch(
            "                    y[e] -= eta[b] * share * g[e]",
            "                    y[e] -= eta[b] * g[e]",
            f"{ROUNDS}::test_an_ensemble_in_the_kernel_is_the_one_without",
        ),
        "the mixer in a kernel forgets its gap": Patch(
            "    s[GAP] += max(0.0, -mixed) / s[SPREAD]\n",
            "",
            f"{ROUNDS}::test_an_ensemble_in_the_kernel_is_the_one_without",
        ),
        "cells in a kernel give back one by one": Patch(
            "end = first + 1 if first < plain else experts",
            "end = first + 1",
            f"{ROUNDS}::test_an_ensemble_in_the_kernel_is_the_one_without",
        ),
        "sums of cells in a kernel forget the shares": Patch(
            "F[i] += share * f[i]",
            "F[i] += f[i]",
            f"{ROUNDS}::test_an_ensemble_in_the_kernel_is_the_one_without",
        ),
        "whom the bank serves first in a kernel does not depend on trust": Patch(
            "urgency[i] = trust * min(",
            "urgency[i] = min(",
            f"{ROUNDS}::test_an_ensemble_in_the_kernel_is_the_one_without",
        ),
    },
    "kernels/active_set.py": {
        "factors: the whole way from y to x": Patch(
            "            shift = max(0.0, 1.0 - gap / distance2)\n",
            "            shift = 1.0\n",
            FACTORED,
        ),
        "factors: the oracle's error is drop": Patch(
            "gap = max(drop + error, 0.0)", "gap = max(drop, 0.0)", FACTORED
        ),
        "rounding chooses between vertices that tie": Patch(
            "            on_a_grid(d, min(GRAIN * math.sqrt(distance2), margin))\n",
            "",
            f"{ROUNDS}::test_rounding_does_not_choose_between_vertices",
        ),
    },
    "projection/search.py": {
        "rounding chooses between vertices that tie outside of kernels": Patch(
            "found.drop - tie_margin(K) * distance",
            "found.drop",
            "tests/test_projection.py::test_rounding_does_not_choose_between_vertices_that_tie",
        ),
    },
    "core/vertices.py": {
        "rows that a kernel appends have no products": Patch(
            "        gram[i, row] = products[i]",
            "        gram[i, row] = 0.0",
            f"{ROUNDS}::test_tables_grow_and_are_made_smaller_inside_long_runs",
        ),
    },
    "kernels/lanczos.py": {
        "rounding hides nothing from polynomials of Chebyshev": Patch(
            "np.diag(hidden + _SOLVED",
            "np.diag(0.0 * hidden + _SOLVED",
            "tests/test_spectra.py::test_rounding_hides_nothing_from_polynomials_of_chebyshev",
        ),
        "the bound of polynomials of Chebyshev is half of what it is": Patch(
            "math.log(mass * float(",
            "math.log(2.0 * mass * float(",
            "tests/test_spectra.py::test_rounding_hides_nothing_from_polynomials_of_chebyshev",
        ),
    },
    "kernels/boxed_dual.py": {
        "costs of 0 stay equal": Patch(
            "c[j] = costs[j] if costs[j] != 0.0 else apart(j, size if size > 0.0 else APART)",
            "c[j] = costs[j]",
            "tests/test_boxed_dual.py",
        ),
        "simplices with capacities take the dearest first": Patch(
            "    for j in order:", "    for j in order[::-1]:", "tests/test_boxed_dual.py"
        ),
    },
    "kernels/resolving.py": {
        "a program re-solved in a kernel is that of the round before": Patch(
            "row_of_round(t + 1 - backs[a], costs", "row_of_round(t - backs[a], costs", RESOLVED
        ),
        "headroom in a kernel counts rises of capacities": Patch(
            "max(c[e] - capacities[t, e], 0.0)", "max(capacities[t, e] - c[e], 0.0)", RESOLVED
        ),
        "rounds before the first that is given are one off": Patch(
            "out[e] = rows[r, e] if r >= begin else past[back, e]",
            "out[e] = rows[r, e] if r >= begin else past[max(0, back - 1), e]",
            f"{ROUNDS}::test_live_rounds_of_an_ensemble_are_those_of_a_run",
        ),
    },
    "methods/compiled_rounds.py": {
        "a live round of an ensemble changes the state before it": Patch(
            "        now, done, code, shares = start.copy(functions), 0, PLAYED, start.shares\n",
            "        now, done, code, shares = start, 0, PLAYED, start.shares\n",
            f"{ROUNDS}::test_live_rounds_of_an_ensemble_are_those_of_a_run",
        ),
    },
    "experts/compiled_resolve.py": {
        "rows that another state appended are taken for one's own": Patch(
            "if end == self.filled and end + len(costs)",
            "if end + len(costs)",
            f"{ROUNDS}::test_rounds_from_one_state_do_not_see_each_other",
        ),
    },
    "kernels/evaluate.py": {
        "a piece that is no number hides behind others": Patch(
            "            strange += not abs(pieces[j]) <= MOST\n",
            "",
            f"{ROUNDS}::test_a_piece_that_is_no_number_is_seen_behind_others",
        ),
    },
    "functions/base.py": {
        "products of one round are added up in another order": Patch(
            "((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))",
            "sum(s)",
            f"{ROUNDS}::test_products_have_the_bits_of_the_kernel",
        ),
    },
    "functions/from_cvxpy.py": {
        "cvxpy: entries of matrices are in the order of points": Patch(
            "*shape[::-1]).transpose(order))",
            "*shape[::-1]).reshape(*found.shape[:-1], *shape))",
            f"{CVXPY}::test_matrices_are_in_the_order_of_points",
        ),
        "cvxpy: gradients of matrices are in the order of points": Patch(
            'x.shape if slope.size > 1 else (), order="F")',
            "x.shape if slope.size > 1 else ())",
            f"{CVXPY}::test_matrices_are_in_the_order_of_points",
        ),
        "cvxpy: an expression is analysed at every call": Patch(
            "_engine = lru_cache(32)(_Cvxpy)",
            "_engine = lru_cache(0)(_Cvxpy)",
            f"{CVXPY}::test_it_is_canonicalised_once",
        ),
        "cvxpy: values of the variable stay changed": Patch(
            "                leaf.save_value(value)",
            "                pass",
            f"{CVXPY}::test_nothing_given_is_copied_or_changed",
        ),
        "cvxpy: a constant of 0 makes another kind": Patch(
            "        if not self.root.moving(self.n, self.n + 1).any() and not b.any():",
            "        if not b.any():",
            f"{CVXPY}::test_rounds_given_one_by_one_are_of_one_kind",
        ),
        "cvxpy: matrices of a single round are those of all": Patch(
            "if moves else P[0]",
            "if p.shape[1] > 1 else P[0]",
            f"{CVXPY}::test_rounds_given_one_by_one_are_of_one_kind",
        ),
        "cvxpy: parameters may have any values": Patch(
            "if any(p.attributes.values()) else 0):",
            "if False else 0):",
            f"{CVXPY}::test_bad_input_is_refused_and_its_setting_named",
        ),
        "cvxpy: functions have values outside their domain": Patch(
            "<= _ROUNDING for one in self.domain)",
            "<= np.inf for one in self.domain)",
            f"{CVXPY}::test_where_it_is_defined_is_stated_and_kept",
        ),
        "cvxpy: wrong gradients of relative entropies are taken": Patch(
            "if self.sure else self._multiplier()", "if True else self._multiplier()", CVXPY_KINDS
        ),
    },
}

NUMBERS = {
    "methods/steps/saddle.py": "unit_free_steps _THETA damping violation_bound",
    "methods/steps/lyapunov.py": "THETA LyapunovWeights.c LyapunovWeights.p "
    "LyapunovWeights.guaranteed",
    "methods/steps/adagrad.py": "price_at_most",
    "methods/paper.py": "PaperLearner.known_distance2 SaddleLearner.block_factor theorem_eps",
    "learners/primal_dual.py": "PrimalDual.theorem_values PrimalDual.guarantee",
    "learners/drift_plus_penalty.py": "DriftPlusPenalty.weights DriftPlusPenalty.guarantee "
    "DriftPlusPenalty.theorem_values",
    "learners/bandit_primal_dual.py": "BanditPrimalDual.theorem_values BanditPrimalDual.mu_for "
    "BanditPrimalDual._unit_free_guarantee BanditPrimalDual.guarantee",
    "learners/core.py": "Core.guarantee",
    "learners/lyapunov_frank_wolfe.py": "INFO ANYTIME LyapunovFrankWolfe._rho "
    "LyapunovFrankWolfe.constants",
    "baselines/sinha_vaze.py": "SinhaVaze.guarantee",
}
"""By file, the functions, constants and methods of which every number is changed."""
CHECKS = {"methods/steps/adagrad.py": FACTORS, "learners/core.py": ENSEMBLE_GUARANTEE}
"""What checks the numbers of a file, if it is not `GUARANTEES`."""

SAME = {
    ("methods/steps/lyapunov.py", "if limits > "): "limits are counted",
    ("methods/paper.py", "(math.log(T) or "): "one round is projected nowhere",
    ("learners/primal_dual.py", "(math.log(T) or "): "one round is projected nowhere",
    ("learners/bandit_primal_dual.py", "(math.log(T) or "): "one round is projected nowhere",
    ("learners/bandit_primal_dual.py", "max(self.assumed) or "): "slopes of 0 move nothing",
    ("learners/core.py", "self.horizon or "): "without a horizon nothing is promised",
    ("learners/lyapunov_frank_wolfe.py", "self.K.diameter or "): "one point cannot move",
}
"""Numbers that change nothing, by what stands before them, and why."""


def every() -> list[Mutant]:
    """All mutants, in the order of the tables; a patch that does not fit its file any more is a
    ValueError.
    """
    return [
        _patched(name, SOURCE / file, *patch)
        for file, patches in PATCHES.items()
        for name, patch in patches.items()
    ] + [
        mutant
        for file, places in NUMBERS.items()
        for place in places.split()
        for mutant in _renumbered(file, place)
    ]


def _patched(name: str, file: Path, old: str, new: str, checks: str) -> Mutant:
    text = (ROOT / file).read_text()
    if text.count(old) != 1:
        raise ValueError(
            f"{file} holds {old!r} {text.count(old)} times, not once: {name!r} does not apply."
        )
    return Mutant(name, file, text.replace(old, new), checks)


def _renumbered(file: str, place: str) -> list[Mutant]:
    text = (ROOT / SOURCE / file).read_text()
    found = [node for node in ast.walk(_node(ast.parse(text), file, place)) if _is_a_number(node)]
    if not found:
        raise ValueError(f"{place} of {file} holds no number.")
    lines = text.splitlines(keepends=True)
    mutants = []
    for node in sorted(found, key=lambda node: (node.lineno, node.col_offset)):
        line, start, end = lines[node.lineno - 1], node.col_offset, node.end_col_offset
        if any(path == file and line[:start].endswith(before) for path, before in SAME):
            continue
        changed = [*lines]
        changed[node.lineno - 1] = f"{line[:start]}(1.01 * {line[start:end]}){line[end:]}"
        where = f"line {node.lineno}, column {start}, {line.strip()}"
        name = f"{place}: {line[start:end]} is 1 % larger, {where}"
        checks = CHECKS.get(file, GUARANTEES)
        mutants.append(Mutant(name, SOURCE / file, "".join(changed), checks))
    return mutants


def _node(tree: ast.Module, file: str, place: str) -> ast.AST:
    node: ast.AST = tree
    for name in place.split("."):
        inside = [n for n in ast.iter_child_nodes(node) if name in _names(n)]
        if len(inside) != 1:
            raise ValueError(f"{file} has no {place}.")
        node = inside[0]
    return node


def _names(node: ast.AST) -> list[str]:
    """What a statement defines."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return [node.name]
    targets = getattr(node, "targets", [getattr(node, "target", None)])
    return [each.id for each in targets if isinstance(each, ast.Name)]


def _is_a_number(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, int | float)
        and not isinstance(node.value, bool)
        and node.value != 0
    )
