"""
Late feedback
=============

A stub.
"""

import matplotlib.pyplot as plt

import tidewolf as tw

ROUNDS = 400  # 60 in the tests

problem = tw.problems.routing(rounds=ROUNDS)
run = tw.run(tw.LyapunovDescent(problem.K), problem.stream)
plt.plot(run.losses)
