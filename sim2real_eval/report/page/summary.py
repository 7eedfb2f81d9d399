# SPDX-License-Identifier: Apache-2.0
"""The answer in a sentence or two: the closest model, and whether it differs from reality"""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from sim2real_eval.metrics.uncertainty.result import DistanceUncertainty
from sim2real_eval.report.page.figure import decimal, span
from sim2real_eval.report.page.markup import joined
from sim2real_eval.report.page.ranking import p_value_text
from sim2real_eval.report.page.standing import Standing

_NAME = Markup('<strong class="name">{}</strong>')


def answer(standing: Standing, real: str) -> list[Markup]:
    """Return the sentences about one judge, the most important first.

    Parameters
    ----------
    standing : Standing
    real : str
        What the recordings are, such as `the real sensors`.
    """
    order = standing.known.order
    best = order[0]
    per_cent = f'{100 * standing.known.options.level:g} %'
    many = f' of {len(order)} models' if len(order) > 1 else ''
    said = [
        Markup('{} is the closest{} to {}: VEPD {}{}.').format(
            _NAME.format(best.model),
            many,
            real,
            decimal(best.distance),
            ''
            if best.low is None or best.high is None
            else f' ({per_cent} interval {span(best.low, best.high)})',
        )
    ]
    said.append(_against_real(best, per_cent, real, standing.known.options.level))
    if len(order) > 1:
        said.append(_against_next(standing, order))
    return said


def _against_real(best: DistanceUncertainty, per_cent: str, real: str, level: float) -> Markup:
    p_value = best.p_value if best.adjusted is None else best.adjusted
    if p_value is None or best.null_high is None:
        return Markup(
            'So few recordings cannot show whether it differs significantly from {}.'
        ).format(real)
    distinguishable = p_value <= 1.0 - level
    return Markup(
        'It {} from {}: identical sensors would score up to {} in {} of such studies (p = {}).'
    ).format(
        Markup('<strong>differs significantly</strong>')
        if distinguishable
        else Markup('<strong>does not differ significantly</strong>'),
        real,
        decimal(best.null_high),
        per_cent,
        p_value_text(p_value),
    )


def _against_next(standing: Standing, order: Sequence[DistanceUncertainty]) -> Markup:
    best, second = order[0], order[1]
    pair = standing.known.pair(best.model, second.model)
    gap = decimal(abs(pair.difference))
    name = _NAME.format(second.model)
    if pair.distinguishable is None:
        return Markup('The next, {}, is {} farther.').format(name, gap)
    p_value = p_value_text(pair.p_value if pair.adjusted is None else pair.adjusted)
    if pair.distinguishable:
        return Markup(
            'The next, {}, is {} farther and <strong>significantly different</strong> from it '
            '(p = {}).'
        ).format(name, gap, p_value)
    return Markup(
        'The next, {}, is {} farther, and these recordings <strong>do not tell the two apart'
        '</strong> (p = {}); more motions that would: {}.'
    ).format(name, gap, p_value, standing.known.more(pair))


def concord(standings: Sequence[Standing]) -> Markup | None:
    """Say whether all judges and groups name the same model; None with one of them."""
    if len(standings) < 2:
        return None
    first = standings[0].known.order[0].model
    others = [one for one in standings[1:] if one.known.order[0].model != first]
    if not others:
        return Markup('{} rankings of this study name it first.').format(
            'Both' if len(standings) == 2 else f'All {len(standings)}'
        )
    named = joined(
        Markup('{}{} under {}').format(
            '; ' if place else '', _NAME.format(one.known.order[0].model), one.label
        )
        for place, one in enumerate(others[:4])
    )
    more = f'; and {len(others) - 4} more' if len(others) > 4 else ''
    return Markup('Others rank differently: {}{}.').format(named, more)
