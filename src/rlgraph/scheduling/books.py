"""The books of a run as they stand when it starts: for every feedback, for every batch."""

from __future__ import annotations

from rlgraph.scheduling.batches import Former
from rlgraph.scheduling.ledger import Ledger
from rlgraph.scheduling.program import Program
from rlgraph.scheduling.records import Snapshot


def open_ledgers(program: Program, versions: int | None, resume: Snapshot) -> list[Ledger]:
    """Open the ledger of every feedback; ``versions`` of the first are the goal."""
    ledgers = []
    for number, feedback in enumerate(program.graph.feedbacks):
        unit = program.units[number]
        batches = [step for step in program.steps if step.node.verb == "batch"]
        extra = sum(step.node.redundancy * step.worth[number] for step in batches)
        version = resume.versions.get(feedback.name, 0)
        ledgers.append(
            Ledger(
                number=number,
                name=feedback.name,
                max_staleness=feedback.max_staleness,
                waits=feedback.when_stale == "wait" and feedback.max_staleness > 0 and not extra,
                unit=unit,
                extra=extra,
                version=version,
                goal=versions if number == 0 else None,
                admitted=version * unit,
                lags={int(lag): n for lag, n in resume.lags.get(feedback.name, {}).items()},
            )
        )
    return ledgers


def open_formers(program: Program, ledgers: list[Ledger], resume: Snapshot) -> dict[int, Former]:
    """Open the buffer of every ``batch``, by the stage's index."""
    formers = {}
    for step in program.steps:
        if step.node.verb != "batch":
            continue
        feeds = [ledger for ledger in ledgers if step.worth[ledger.number]] or ledgers
        formers[step.node.index] = Former(
            node=step.node,
            ordered=step.node.redundancy == 0
            and all(ledger.max_staleness == 0 for ledger in feeds),
            waits=next((ledgers[number] for number in step.takes if ledgers[number].waits), None),
            worths=step.worth,
            made=resume.batches.get(step.node.name, 0),
        )
    return formers
