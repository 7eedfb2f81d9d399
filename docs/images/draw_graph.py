# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Draw graph.svg: the nodes of a live ROS graph and the topics between them.

Run it in this folder, from an environment with the package: `python draw_graph.py`.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

INK = '#1b2733'
# Nodes of the sensors, of the judge, of the evaluation, and what is outside.
COLOURS = {'sensor': '#cfe3f5', 'judge': '#f7d9d2', 'evaluation': '#d9eed4', 'outside': '#ececec'}
# Name, what it does, kind, centre x and y, width.
NODES = {
    'trajectory_node': ('drives a car or a scenario', 'sensor', 1.85, 7.2, 2.4),
    'simulator': ('or anything that knows the truth', 'outside', 1.85, 4.2, 2.8),
    'imu_node': ('accelerometer, gyroscope', 'sensor', 5.75, 7.2, 2.1),
    'gps_node': ('receiver', 'sensor', 5.75, 5.7, 2.1),
    'judge_node': ('or ekf_node and\nnavsat_transform_node', 'judge', 9.2, 6.45, 2.2),
    'viewers': ('demo: RViz, PlotJuggler\nor Foxglove', 'outside', 12.5, 7.25, 2.3),
    'ros2 bag record': (
        'experiment: truth, sensors\nand judge, a bag per run',
        'outside',
        12.5,
        5.6,
        2.3,
    ),
}


def main() -> None:
    """Write graph.svg beside this file."""
    # Letters are drawn, to look alike everywhere. Ids and date are fixed for equal bytes.
    mpl.rcParams.update({'svg.fonttype': 'path', 'svg.hashsalt': 'graph', 'font.size': 9})
    figure = Figure(figsize=(11.2, 7.5))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, 14.2)
    axes.set_ylim(-0.85, 8.75)
    axes.set_axis_off()
    live(axes)
    evaluation(axes)
    # A ground of its own: the lines would be lost on a dark page.
    target = Path(__file__).parent / 'graph.svg'
    figure.savefig(target, facecolor='white', metadata={'Date': None})


def live(axes: Axes) -> None:
    """Draw sensors.launch.py and judge.launch.py, and what demo and experiment put around them."""
    frame(axes, 0.35, 4.9, 13.5, 3.45, 'demo.launch.py, experiment.launch.py')
    frame(axes, 4.5, 5.0, 2.5, 2.95, 'sensors.launch.py: sensors_node')
    frame(axes, 7.95, 5.0, 2.5, 2.95, 'judge.launch.py')
    for name, (text, kind, x, y, width) in NODES.items():
        box(axes, x, y, name, text, kind, width)
    arrow(axes, (3.05, 7.2), (4.7, 7.2), 'ground_truth/\nodometry', (3.8, 7.55))
    arrow(axes, (3.05, 6.9), (4.7, 5.9))
    # In the place of trajectory_node.
    arrow(axes, (2.6, 4.69), (4.7, 6.9))
    arrow(axes, (3.27, 4.5), (4.7, 5.4), 'ground_truth/\nodometry', (4.6, 4.5))
    arrow(axes, (6.8, 7.2), (8.1, 6.75), 'imu/data', (7.5, 7.25))
    arrow(axes, (6.8, 5.7), (8.1, 6.15), 'gps/fix', (7.5, 5.65))
    arrow(axes, (10.3, 6.7), (11.35, 7.15), 'odometry/*', (10.87, 7.2))
    arrow(axes, (10.3, 6.2), (11.35, 5.75), 'odometry/\nfiltered', (10.88, 5.5))
    for x, text in (
        (6.1, '/clock to all'),
        (8.3, '/diagnostics, ~/truth/bias, ~/truth/position_error to viewers'),
    ):
        axes.text(x, 4.35, text, color=INK, style='italic')


def evaluation(axes: Axes) -> None:
    """Draw evaluate.launch.py: both sides of a comparison."""
    frame(axes, 0.35, -0.7, 13.5, 4.0, 'evaluate.launch.py: two namespaces, one clock')
    box(axes, 1.7, 1.3, 'real bags', 'sensors and truth', 'outside', 1.9)
    box(axes, 5.1, 2.2, '/real', 'recorded IMU and GPS', 'evaluation', 2.3)
    box(axes, 5.1, 0.4, '/sim', 'imu_node, gps_node\non the true motion', 'sensor', 2.3)
    box(axes, 8.6, 2.2, '/real judge', 'judge_node or ekf_node', 'judge', 2.3)
    box(axes, 8.6, 0.4, '/sim judge', 'judge_node or ekf_node', 'judge', 2.3)
    box(axes, 12.2, 1.3, 'evaluation_node', 'VEPD: tables, plots,\n~/vepd', 'evaluation', 2.4)
    arrow(axes, (2.65, 1.55), (3.95, 2.1), 'replay', (3.1, 2.1))
    arrow(axes, (2.65, 1.05), (3.95, 0.5), 'ground_truth/\nodometry', (3.0, 0.35))
    for y in (2.2, 0.4):
        arrow(axes, (6.25, y), (7.45, y), 'imu/data\ngps/fix', (6.85, y + 0.3))
    arrow(axes, (9.75, 2.2), (11.0, 1.6), 'odometry/filtered', (10.6, 2.3))
    arrow(axes, (9.75, 0.4), (11.0, 1.0), 'odometry/filtered', (10.6, 0.25))


def frame(axes: Axes, x: float, y: float, width: float, height: float, title: str) -> None:
    """Draw a dashed frame around what one launch file starts."""
    patch = FancyBboxPatch(
        (x, y), width, height, 'round,pad=0,rounding_size=0.12',
        fill=False, edgecolor='#8a97a3', linestyle=(0, (4, 3)),
    )  # fmt: skip
    axes.add_patch(patch)
    axes.text(x + 0.12, y + height + 0.07, title, color='#4a5763', va='bottom', size=8.5)


def box(axes: Axes, x: float, y: float, name: str, text: str, kind: str, width: float) -> None:
    """Draw a node."""
    height = 0.95 + 0.22 * text.count('\n')
    patch = FancyBboxPatch(
        (x - width / 2, y - height / 2), width, height, 'round,pad=0,rounding_size=0.12',
        facecolor=COLOURS[kind], edgecolor=INK, linewidth=1.0,
    )  # fmt: skip
    axes.add_patch(patch)
    axes.text(x, y + height / 2 - 0.27, name, ha='center', va='center', weight='bold', color=INK)
    axes.text(x, y - 0.16, text, ha='center', va='center', color=INK, size=8)


def arrow(
    axes: Axes,
    start: tuple[float, float],
    end: tuple[float, float],
    label: str = '',
    place: tuple[float, float] | None = None,
) -> None:
    """Draw a topic from one node to another."""
    axes.add_patch(
        FancyArrowPatch(start, end, arrowstyle='-|>', mutation_scale=11, color=INK, linewidth=1.0)
    )
    x, y = place or ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2 + 0.32)
    axes.text(x, y, label, ha='center', va='center', color=INK, size=8, family='monospace')


if __name__ == '__main__':
    main()
