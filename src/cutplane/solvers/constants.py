"""The eight tuned constants of descent, Newton's method and the choice between them.

Everything else follows from these constants or from counting products. Sizes of caches and of
compiled calls, and limits against endless runs, are in the files that use them.
``python -m benchmarks engine --section constants`` measures the effect of half and double of each.
"""

# Newton's steps that are expected if the loss has kinks; half as many if it has none.
STEPS = 15
# The part of another quantity that counts as little: of a slope where a line search may end, of a
# gradient where conjugate gradients may, of a step where clipping takes that much away, of the
# violation at a certificate where the next one is due, of Newton's cost where descent may go on
# whatever its pace.
LITTLE = 0.1
# s² of a free bias in units of the rows' mean |x|². It is at least 4/C for targets of about 1, or
# small C hold the bias.
BIAS_SQUARE = 0.3
# Work from the start of descent until a certificate, in units of that until the one before it.
GROWTH = 1.25
# Passes before descent tries conjugate gradients the first time.
FIRST_WAIT = 32
# The first width of the smoothed loss, in units of the risk's: at w = 0 all rows move with z, and
# the first step is one of least squares.
WIDTH = 4.0
# How much smaller the width becomes at a time.
NARROWER = 0.6
# The matrix of a direction is a sum over all rows with a bend, or over a sample of so many rows per
# feature, or of rows that take so many products per stored number of the data if that is more.
SAMPLE = 8
