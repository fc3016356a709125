"""Large-margin learning by cutting planes, with a certificate of optimality."""
