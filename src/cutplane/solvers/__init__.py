"""Solvers of linear problems whose risk is a sum over rows in memory, other than by cuts."""
