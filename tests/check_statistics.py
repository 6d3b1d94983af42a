#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Comparison of src/compare/statistics.cc with scipy on 200 random cases: p-values, intervals, false discovery.

Small samples and large ones, with ties and without, shifted and not. scipy has no interval of a Mann-Whitney shift; an
interval is the set of shifts its test does not reject, so scipy's test is asked on either side of each limit. scipy
below 1.11 has no false_discovery_control; there the definition is written out with numpy.

  check_statistics.py --probe PROGRAM [--cases N] [--self-test]
"""
import json
import pathlib
import subprocess
import sys

import testing

try:
    import numpy
    import scipy.stats
except ImportError:
    system = "/usr/bin/python3"  # where Debian puts it, whatever python3 is first on the path
    if sys.executable != system and pathlib.Path(system).exists():
        sys.exit(subprocess.run([system, *sys.argv]).returncode)
    testing.skip("needs python3-scipy (tools/install-deps.sh build)")

TAILS = ("two-sided", "greater", "less")
CLOSE = 1e-6


def make_cases(random, count):
    cases = []
    for i in range(count):
        sizes = random.integers(2, 12, 2) if i % 4 else random.integers(20, 70, 2)
        a = random.lognormal(2, 0.2, sizes[0])
        b = random.lognormal(2, 0.2, sizes[1]) * (1 + 0.2 * (i % 3))
        if i % 5 == 0:  # ties
            a, b = numpy.round(a), numpy.round(b)
        cases.append({"a": a.tolist(), "b": b.tolist()})
    return cases


def false_discovery(p):
    if hasattr(scipy.stats, "false_discovery_control"):
        return scipy.stats.false_discovery_control(p)
    p = numpy.asarray(p)
    order = numpy.argsort(p)
    scaled = p[order] * len(p) / numpy.arange(1, len(p) + 1)
    adjusted = numpy.empty(len(p))
    adjusted[order] = numpy.minimum(1, numpy.minimum.accumulate(scaled[::-1])[::-1])
    return adjusted


def has_ties(a, b):
    return len(set(a) | set(b)) < len(a) + len(b)


class Checker:
    def __init__(self):
        self.compared = {}
        self.wrong = []

    def equal(self, what, ours, theirs, case):
        self.compared[what] = self.compared.get(what, 0) + 1
        if ours is None or not abs(ours - theirs) <= CLOSE * max(1, abs(theirs)):
            self.wrong.append(f"{what}: {ours} here, {theirs} in scipy, case {case}")


def check_tests(checker, case, a, b, ours):
    small = scipy.special.comb(len(a) + len(b), len(a)) <= 20000
    for tail in TAILS:
        exact = not has_ties(a, b) and max(len(a), len(b)) <= 50
        # scipy asks whether its first sample is the larger, we whether the second is.
        theirs = scipy.stats.mannwhitneyu(b, a, alternative=tail, method="exact" if exact else "asymptotic")
        found = ours["mann_whitney"][tail]
        if found["exact"] != exact:
            checker.wrong.append(f"exact is {found['exact']}, case {case}")
        checker.equal("u", found["u"], theirs.statistic, case)
        checker.equal("mann_whitney p", found["p"], theirs.pvalue, case)
        if small:
            mean_test = scipy.stats.permutation_test(
                (b, a), lambda x, y, axis: numpy.mean(x, axis=axis) - numpy.mean(y, axis=axis), vectorized=True,
                n_resamples=numpy.inf, alternative=tail)
            checker.equal("permutation p", ours["permutation"][tail], mean_test.pvalue, case)
            ranks = scipy.stats.rankdata(numpy.concatenate([a, b]))
            rank_test = scipy.stats.permutation_test(
                (ranks[len(a):], ranks[:len(a)]),
                lambda x, y, axis: numpy.mean(x, axis=axis) - numpy.mean(y, axis=axis),
                vectorized=True, n_resamples=numpy.inf, alternative=tail)
            checker.equal("rank test p", ours["rank_test"][tail]["p"], rank_test.pvalue, case)


def check_interval(checker, case, a, b, rows):
    """A shift just inside is not rejected, one just outside is; the limits are differences that occur."""
    differences = numpy.sort(numpy.subtract.outer(b, a).ravel())
    for row in rows:
        checker.equal("estimate", row["estimate"], numpy.median(differences), case)
        if has_ties(a, b) or max(len(a), len(b)) > 50:
            continue
        alpha = 1 - row["confidence"]
        step = numpy.min(numpy.diff(differences)) / 3

        def p(shift):
            return scipy.stats.mannwhitneyu(b - shift, a, alternative="two-sided", method="exact").pvalue

        if row["low"] is None:
            checker.equal("no limit", float(p(differences[0] - step) > alpha), 1.0, case)
            continue
        for limit, out in ((row["low"], -step), (row["high"], step)):
            checker.equal("limit occurs", numpy.min(numpy.abs(differences - limit)), 0.0, case)
            checker.equal("outside is rejected", float(p(limit + out) <= alpha + 1e-12), 1.0, case)
            checker.equal("inside is not", float(p(limit - out) > alpha - 1e-12), 1.0, case)


def run(probe, count, damage=None):
    random = numpy.random.default_rng(20261115)
    cases = make_cases(random, count)
    p_lists = [random.uniform(0, 1, random.integers(1, 60)).tolist() for _ in range(count)]
    p_lists += [[0.0, 1.0, 0.5, 0.5], []]
    quantiles = random.uniform(1e-6, 1 - 1e-6, count).tolist()
    asked = {"cases": cases, "p": p_lists, "quantiles": quantiles}
    result = subprocess.run([probe], input=json.dumps(asked), capture_output=True, text=True, check=True)
    answer = json.loads(result.stdout)
    if damage:
        damage(answer)
    checker = Checker()
    for i, (case, ours) in enumerate(zip(cases, answer["cases"], strict=True)):
        a, b = numpy.array(case["a"]), numpy.array(case["b"])
        check_tests(checker, i, a, b, ours)
        check_interval(checker, i, a, b, ours["shift"])
    for i, (p_list, ours) in enumerate(zip(p_lists, answer["adjusted"], strict=True)):
        for mine, theirs in zip(ours, false_discovery(p_list), strict=True):
            checker.equal("adjusted p", mine, theirs, i)
    for p, ours in zip(quantiles, answer["quantiles"], strict=True):
        checker.equal("quantile", ours, scipy.stats.norm.ppf(p), p)
    return checker


def planted(answer, path):
    at = answer
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] += 1e-4


def self_test(probe):
    paths = [("cases", 1, "mann_whitney", "two-sided", "p"), ("cases", 1, "permutation", "less", "p"),
             ("cases", 5, "rank_test", "greater", "p"), ("cases", 3, "shift", 0, "low"), ("adjusted", 0, 0),
             ("quantiles", 0)]
    for path in paths:
        if path[2:3] == ("permutation",):
            path = path[:-1]
        if not run(probe, 6, lambda answer, path=path: planted(answer, path)).wrong:
            sys.exit(f"a wrong value at {path} was not noticed")
    print(f"{len(paths)} planted errors found")


def main():
    arguments = testing.arguments("probe", cases=200, self_test=False)
    if arguments.self_test:
        return self_test(arguments.probe)
    checker = run(arguments.probe, arguments.cases)
    for line in checker.wrong[:20]:
        print(line, file=sys.stderr)
    print("compared with scipy", scipy.__version__, checker.compared)
    return 1 if checker.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
