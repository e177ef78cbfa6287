"""What several learners share: Lyapunov weights, the AdaGrad step."""
