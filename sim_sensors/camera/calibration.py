# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Calibrations of cameras that other programs wrote: Kalibr, EuRoC, OpenCV and ROS.

- `camchain.yaml` of Kalibr: `camera_model`, `intrinsics`, `distortion_model`,
  `distortion_coeffs` and `resolution`, below `cam0` or at the top [KalibrYaml]; `sensor.yaml` of
  EuRoC has the same with `distortion_coefficients`.
- `camera_info` of ROS and matrices of OpenCV: `image_width`, `image_height`, `camera_matrix`,
  `distortion_coefficients`; ROS adds `distortion_model` [CameraInfoYaml], OpenCV's
  sample `fisheye_model` [OpenCV].
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sim_sensors.core.errors import ParameterError
from .lens import lens_name

_CAMERA = re.compile(r'cam\d+')
_KALIBR = ('fx', 'fy', 'cx', 'cy')
# Lengths of the coefficients of OpenCV and the lens that they belong to.
_OPENCV = {0: 'plumb_bob', 4: 'plumb_bob', 5: 'plumb_bob', 8: 'rational_polynomial'}


def is_calibration(mapping: Mapping[str, Any]) -> bool:
    """Return whether the content of a file is a calibration of another program."""
    return 'model' not in mapping and (
        'camera_matrix' in mapping
        or isinstance(mapping.get('intrinsics'), list)
        or any(_CAMERA.fullmatch(str(key)) for key in mapping)
    )


def read_calibration(mapping: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the mapping of a camera model for a calibration; other parameters are the defaults.

    The pose of the camera relative to other sensors is not read: set `lever_arm` and
    `mounting_rpy`.

    Raises
    ------
    ParameterError
        When the file `where` has several cameras, a missing key, or a camera that is no pinhole.
    """
    cameras = [key for key in mapping if _CAMERA.fullmatch(str(key))]
    if len(cameras) > 1:
        raise ParameterError(
            where, '', f'holds the cameras {", ".join(cameras)}; must hold one, remove the others'
        )
    path = ''
    if cameras:
        path = cameras[0]
        mapping = mapping[path]
        if not isinstance(mapping, Mapping):
            raise ParameterError(where, path, f'{mapping!r} is not allowed; must be a mapping')
    if 'camera_matrix' in mapping:
        intrinsics = _read_opencv(mapping, where)
    else:
        intrinsics = _read_kalibr(mapping, where, f'{path}.' if path else '')
    rate = {'rate': mapping['rate_hz']} if 'rate_hz' in mapping else {}
    return {'model': 'pinhole_camera', **rate, 'intrinsics': intrinsics}


def _read_kalibr(mapping: Mapping[str, Any], where: str, prefix: str) -> dict[str, Any]:
    model = mapping.get('camera_model', 'pinhole')
    if model != 'pinhole':
        raise ParameterError(
            where, f'{prefix}camera_model', f'{model!r} is not allowed; must be pinhole'
        )
    focal = _numbers(mapping, 'intrinsics', 4, where, prefix)
    width, height = _numbers(mapping, 'resolution', 2, where, prefix)
    lens = mapping.get('distortion_model', 'none')
    name = 'distortion_coeffs' if 'distortion_coeffs' in mapping else 'distortion_coefficients'
    intrinsics = {'width': width, 'height': height, **dict(zip(_KALIBR, focal, strict=True))}
    if lens == 'none':
        return intrinsics
    coefficients = _numbers(mapping, name, None, where, prefix)
    return {**intrinsics, 'distortion': {'model': lens_name(lens), 'coefficients': coefficients}}


def _read_opencv(mapping: Mapping[str, Any], where: str) -> dict[str, Any]:
    for key in ('image_width', 'image_height'):
        if key not in mapping:
            raise ParameterError(where, key, 'is missing; add the size of the image, px')
    matrix = _numbers(mapping, 'camera_matrix', 9, where)
    fx, fx_skew, cx, _, fy, cy = matrix[:6]
    coefficients: list[Any] = []
    if 'distortion_coefficients' in mapping:
        coefficients = _numbers(mapping, 'distortion_coefficients', None, where)
    # Files of camera_calibration before 2011 call it camera_model.
    lens = mapping.get('distortion_model', mapping.get('camera_model'))
    if lens is None:
        lens = 'equidistant' if mapping.get('fisheye_model') else _OPENCV.get(len(coefficients))
    if lens is None:
        lengths = ', '.join(map(str, _OPENCV))
        raise ParameterError(
            where,
            'distortion_coefficients',
            f'{len(coefficients)} coefficients are not allowed; must be one of {lengths}',
        )
    has_skew = all(isinstance(value, (int, float)) for value in (fx, fx_skew)) and fx
    intrinsics = {
        'width': mapping['image_width'],
        'height': mapping['image_height'],
        'fx': fx,
        'fy': fy,
        'cx': cx,
        'cy': cy,
        'skew': fx_skew / fx if has_skew else 0.0,
    }
    if not coefficients:
        return intrinsics
    return {**intrinsics, 'distortion': {'model': lens_name(lens), 'coefficients': coefficients}}


def _numbers(
    mapping: Mapping[str, Any], key: str, length: int | None, where: str, prefix: str = ''
) -> list[Any]:
    """Return the list at a key, or the `data` of a matrix; its entries are checked later."""
    value = mapping.get(key)
    entries = value.get('data') if isinstance(value, Mapping) else value
    if not isinstance(entries, list) or (length is not None and len(entries) != length):
        problem = 'is missing' if key not in mapping else f'{value!r} is not allowed'
        count = '' if length is None else f'{length} '
        raise ParameterError(
            where, f'{prefix}{key}', f'{problem}; must be a list of {count}numbers'
        )
    return entries
