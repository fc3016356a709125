"""
A model leaves Python
=====================

A fitted model can be saved in cutplane's own format, which holds no pickle and no code, as text
that SVM-light reads, as a column of weights, and as ONNX for other runtimes. We write all four,
read them back, and compare their scores with the original ones.
"""

# %%
# A model of two classes on the breast cancer data:

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

import cutplane
from cutplane.models import (
    load_svmlight_model,
    load_weights,
    save_onnx,
    save_svmlight_model,
    save_weights,
)

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
model = cutplane.LinearSVC(C=0.1).fit(X, y)
original = model.decision_function(X)

# %%
# cutplane's format keeps everything, the certificate included. The text formats keep the weights
# and the bias.

folder = tempfile.TemporaryDirectory()
place = Path(folder.name)
cutplane.save_model(model, place / "fit.model")
save_svmlight_model(model, place / "svmlight.txt")
save_weights(model, place / "weights.txt")

loaded = cutplane.load_model(place / "fit.model")
print(f"the certificate after loading: {loaded.certificate_}")
scores = {
    "cutplane": loaded.decision_function(X),
    "SVM-light text": load_svmlight_model(place / "svmlight.txt").decision_function(X),
    "weights": load_weights(place / "weights.txt").decision_function(X),
}
files = {"cutplane": "fit.model", "SVM-light text": "svmlight.txt", "weights": "weights.txt"}
print("the first lines of the SVM-light file:")
for line in (place / "svmlight.txt").read_text().splitlines()[:3]:
    print("   ", line[:70])

# %%
# ONNX needs two optional packages: ``pip install 'cutplane[onnx]' onnxruntime``. The graph
# computes in double precision, or in single precision for programs that want it.

try:
    import onnxruntime
except ImportError:
    print("onnxruntime is not installed: ONNX is left out")
else:
    for name, kind in {"ONNX": "float64", "ONNX, float32": "float32"}.items():
        save_onnx(model, place / f"{kind}.onnx", input_type=kind)
        session = onnxruntime.InferenceSession(str(place / f"{kind}.onnx"))
        scores[name] = np.ravel(session.run(["scores"], {"X": X.astype(kind)})[0])
        files[name] = f"{kind}.onnx"

# %%
# The largest difference of any score, and the size of each file:

differences = {name: float(np.abs(values - original).max()) for name, values in scores.items()}
sizes = {name: (place / file).stat().st_size / 1000 for name, file in files.items()}
for name, difference in differences.items():
    print(f"{name:15s} largest difference {difference:.1e}, {sizes[name]:6.1f} kB")
folder.cleanup()

fig, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
names = list(differences)
shown = [max(difference, 1e-17) for difference in differences.values()]
bars = ax.barh(names, shown, color=["C0" if d < 1e-12 else "C1" for d in shown])
ax.bar_label(
    bars,
    [
        f" {differences[n]:.0e}, {sizes[n]:.1f} kB" if differences[n] else f" 0, {sizes[n]:.1f} kB"
        for n in names
    ],
)
ax.set(xscale="log", xlim=(1e-17, 1e-2), xlabel="largest difference of a score (and file size)")
ax.invert_yaxis()
double = max(value for name, value in differences.items() if "float32" not in name)
ax.set_title(f"In double precision every format is right to {double:.0e}")
plt.show()
