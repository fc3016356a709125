"""The eight tuned constants of descent, Newton's method and the choice between them.

Everything else follows from these constants or from counting products. Sizes of caches and of
compiled calls, and limits against endless runs, are in the files that use them.
``python -m benchmarks engine --section constants`` measures the effect of half and double of each.
"""

# Newton's steps that are expected if the loss has kinks, and interior point steps; half as many of
# Newton's if it has none.
STEPS = 15
# The part of another quantity that counts as little: the part of a slope at which a line search
# ends; of a gradient at which conjugate gradients end; of a step that clipping may take away; of
# the violation at a certificate at which the next one is due; and of Newton's cost that descent may
# take at any pace.
LITTLE = 0.1
# s² of a free bias in units of the rows' mean |x|². For targets of about 1 it is at least 4/C,
# because otherwise a small C would hold the bias back.
BIAS_SQUARE = 0.3
# Work from the start of descent to a certificate, divided by the work to the certificate before.
GROWTH = 1.25
# Passes before descent tries conjugate gradients the first time.
FIRST_WAIT = 32
# The first width of the smoothed loss, in the risk's units. With it the slopes of all rows change
# with z at w = 0, so the first step is one of least squares.
WIDTH = 4.0
# The factor by which the width becomes smaller at a time.
NARROWER = 0.6
# The matrix of a direction is a sum over all rows with a bend, or over a sample of so many rows per
# feature, or of rows that take so many products per stored number of the data if that is more.
SAMPLE = 8
