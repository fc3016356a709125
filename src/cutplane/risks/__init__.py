"""Risks: functions of scores. They never see the data or the weights of the model."""

from .base import ListwiseRisk, LossRisk, Mixture, Risk, Targets

__all__ = ["ListwiseRisk", "LossRisk", "Mixture", "Risk", "Targets"]
