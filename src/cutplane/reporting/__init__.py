"""All that people see of a solver: progress, plots, tables and HTML reports."""
