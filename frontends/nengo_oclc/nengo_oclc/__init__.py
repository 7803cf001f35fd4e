"""Runs nengo's models as plans of oclc: ``nengo_oclc.Simulator(model)`` in place of ``nengo.Simulator(model)``."""

from .operators import register
from .simulator import Simulator

__all__ = ["Simulator", "register"]
