"""
A report to send by mail
========================

``cutplane.report`` writes one HTML page about a fitted model: the certificate in words, the
convergence, the quality on some rows and the largest weights. The page needs no network and no
script. This example writes one and shows it below.
"""

# %%
# The model is an estimator of cutplane, a pipeline that ends in one, or a search over them. Rows
# that the model was not trained on say more than its training rows.

import html
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import cutplane

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
model = make_pipeline(StandardScaler(), cutplane.LinearSVC(C=0.1, solver="ocas"))
model.fit(X_train, y_train)
print(model[-1].certificate_)

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "fit.html"
    cutplane.report(model, X_test, y_test, path, title="Breast cancer")
    page = path.read_text(encoding="utf-8")
print(f"a page of {len(page) / 1000:.0f} kB")

# %%
# One of its figures is the convergence of the fit, which ``plot_convergence`` draws, too: the
# objective comes from above and the lower bound from below, until they meet.

cutplane.plot_convergence(model[-1])
plt.show()


# %%
# And this is the page itself, in a frame:


class Frame:
    """Shows an HTML page inside another one."""

    def __init__(self, page):
        self.page = page

    def _repr_html_(self):
        source = html.escape(self.page, quote=True)
        return f'<iframe srcdoc="{source}" width="100%" height="700" title="report"></iframe>'


Frame(page)
