# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Calibrations of Kalibr, EuRoC, OpenCV and ROS as camera models."""

from __future__ import annotations

import numpy as np
import pytest

from sim_sensors.camera.camera import CameraModel
from sim_sensors.camera.lens import Equidistant, PlumbBob, RationalPolynomial
from sim_sensors.core.errors import ParameterError

KALIBR = """cam0:
  cam_overlaps: []
  camera_model: pinhole
  distortion_coeffs: [-0.012, 0.031, -0.02, 0.004]
  distortion_model: equidistant
  intrinsics: [281.5, 282.25, 319.0, 243.5]
  resolution: [640, 480]
  rostopic: /left/image
  T_cam_imu:
  - [1.0, 0.0, 0.0, 0.1]
  - [0.0, 1.0, 0.0, 0.0]
  - [0.0, 0.0, 1.0, 0.0]
  - [0.0, 0.0, 0.0, 1.0]
"""
EUROC = """%YAML:1.0
sensor_type: camera
T_BS:
  cols: 4
  rows: 4
  data: [1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0]
rate_hz: 20
resolution: [752, 480]
camera_model: pinhole
intrinsics: [455.0, 454.5, 366.25, 249.0]
distortion_model: radial-tangential
distortion_coefficients: [-0.27, 0.07, 0.0002, 1.5e-05]
"""
OPENCV = """%YAML:1.0
---
calibration_time: "Mon 03 Mar 2025"
image_width: 1280
image_height: 720
board_width: 9
flags: 0
{fisheye}
camera_matrix: !!opencv-matrix
   rows: 3
   cols: 3
   dt: d
   data: [ 6.5746697944293521e+02, 0., 6.3950000000000000e+02, 0.,
       6.5812345000000000e+02, 3.5950000000000000e+02, 0., 0., 1. ]
distortion_coefficients: !!opencv-matrix
   rows: {count}
   cols: 1
   dt: d
   data: [ {data} ]
avg_reprojection_error: 2.1e-01
"""
ROS = """image_width: 800
image_height: 600
camera_name: front
camera_matrix:
  rows: 3
  cols: 3
  data: [540.0, 1.08, 401.5, 0.0, 541.0, 299.5, 0.0, 0.0, 1.0]
distortion_model: {model}
distortion_coefficients:
  rows: 1
  cols: {count}
  data: {data}
rectification_matrix: {{rows: 3, cols: 3, data: [1, 0, 0, 0, 1, 0, 0, 0, 1]}}
projection_matrix: {{rows: 3, cols: 4, data: [540, 0, 401.5, 0, 0, 541, 299.5, 0, 0, 0, 1, 0]}}
"""


def load(folder, text, name='camera.yaml'):
    (folder / name).write_text(text)
    return CameraModel.load(str(folder / name))


def test_a_camchain_of_kalibr_is_a_camera(tmp_path) -> None:
    lens = load(tmp_path, KALIBR, 'camchain.yaml').intrinsics
    assert (lens.width, lens.height, lens.fx, lens.fy) == (640, 480, 281.5, 282.25)
    assert (lens.cx, lens.cy, lens.skew) == (319.0, 243.5, 0.0)
    assert lens.distortion == Equidistant(-0.012, 0.031, -0.02, 0.004)
    (tmp_path / 'mine.yaml').write_text('base: camchain.yaml\nrate: 15\nnoise_std: 0.2\n')
    mine = CameraModel.load(str(tmp_path / 'mine.yaml'))
    assert (mine.rate, mine.intrinsics) == (15.0, lens)


def test_radtan_and_undistorted_cameras_of_kalibr_are_plumb_bob(tmp_path) -> None:
    text = KALIBR.replace('equidistant', 'radtan')
    assert load(tmp_path, text).intrinsics.distortion == PlumbBob(-0.012, 0.031, -0.02, 0.004)
    text = KALIBR.replace('equidistant', 'none').replace('[-0.012, 0.031, -0.02, 0.004]', '[]')
    assert load(tmp_path, text).intrinsics.distortion == PlumbBob()


def test_a_camera_of_euroc_has_its_rate(tmp_path) -> None:
    camera = load(tmp_path, EUROC)
    assert (camera.rate, camera.intrinsics.width) == (20.0, 752)
    assert camera.intrinsics.distortion == PlumbBob(-0.27, 0.07, 0.0002, 1.5e-5)


@pytest.mark.parametrize(('fisheye', 'data', 'lens'), [
    ('fisheye_model: 0', [-0.1, 0.02, 1e-3, -2e-3, 5e-3], PlumbBob(-0.1, 0.02, 1e-3, -2e-3, 5e-3)),
    ('fisheye_model: 1', [0.01, -0.02, 0.03, -4e-3], Equidistant(0.01, -0.02, 0.03, -4e-3)),
    ('', [0.01, -0.02, 3e-3, -4e-3], PlumbBob(0.01, -0.02, 3e-3, -4e-3)),
    ('', [0.1, 0.2, 0.0, 0.0, 0.3, 0.4, 0.5, 0.6],
     RationalPolynomial(0.1, 0.2, 0.0, 0.0, 0.3, 0.4, 0.5, 0.6)),
])  # fmt: skip
def test_a_file_storage_of_opencv_is_a_camera(tmp_path, fisheye, data, lens) -> None:
    numbers = ', '.join(f'{value:.16e}' for value in data)
    text = OPENCV.format(fisheye=fisheye, count=len(data), data=numbers)
    camera = load(tmp_path, text).intrinsics
    assert (camera.width, camera.height, camera.distortion) == (1280, 720, lens)
    assert (camera.fx, camera.fy) == (657.46697944293521, 658.12345)


def test_a_file_that_opencv_itself_wrote_is_read(tmp_path) -> None:
    cv2 = pytest.importorskip('cv2', reason='no OpenCV')
    matrix = np.array([[612.3, 0.0, 318.2], [0.0, 611.9, 241.7], [0.0, 0.0, 1.0]])
    lens = np.array([[-0.31, 0.11, 1e-3, -5e-4, 0.02]])
    path = str(tmp_path / 'written.yaml')
    storage = cv2.FileStorage(path, cv2.FILE_STORAGE_WRITE)
    storage.write('image_width', 640)
    storage.write('image_height', 480)
    storage.write('camera_matrix', matrix)
    storage.write('distortion_coefficients', lens)
    storage.release()
    camera = CameraModel.load(path).intrinsics
    np.testing.assert_array_equal(camera.matrix, matrix)
    np.testing.assert_array_equal(camera.distortion.coefficients, lens[0])


@pytest.mark.parametrize(('model', 'data', 'lens'), [
    ('plumb_bob', [-0.3, 0.1, 1e-3, 2e-3, 0.0], PlumbBob(-0.3, 0.1, 1e-3, 2e-3)),
    ('equidistant', [0.1, 0.02, 0.0, 0.03], Equidistant(0.1, 0.02, 0.0, 0.03)),
    ('rational_polynomial', [0.1] * 8, RationalPolynomial(*[0.1] * 8)),
])  # fmt: skip
def test_camera_info_of_ros_is_a_camera(tmp_path, model, data, lens) -> None:
    camera = load(tmp_path, ROS.format(model=model, count=len(data), data=data)).intrinsics
    assert (camera.fx, camera.fy, camera.skew) == (540.0, 541.0, pytest.approx(0.002))
    assert camera.distortion == lens


@pytest.mark.parametrize(('text', 'key'), [
    (KALIBR + KALIBR.replace('cam0', 'cam1'), ''),
    (KALIBR.replace('pinhole', 'omni'), 'cam0.camera_model'),
    (KALIBR.replace('equidistant', 'fov'), 'intrinsics.distortion.model'),
    (KALIBR.replace('0.031, ', ''), 'intrinsics.distortion.coefficients'),
    (KALIBR.replace('resolution: [640, 480]', ''), 'cam0.resolution'),
    (KALIBR.replace('281.5', '-281.5'), 'intrinsics.fx'),
    (ROS.format(model='plumb_bob', count=3, data=[0.1] * 3), 'intrinsics.distortion.coefficients'),
    (ROS.format(model='plumb_bob', count=5, data=[0.1] * 5).replace('image_width', 'w'),
     'image_width'),
    ('cam0: 5\n', 'cam0'),
    (OPENCV.format(fisheye='', count=7, data=', '.join(['0.1'] * 7)), 'distortion_coefficients'),
])  # fmt: skip
def test_wrong_calibrations_are_refused_by_file_and_key(tmp_path, text, key) -> None:
    with pytest.raises(ParameterError) as caught:
        load(tmp_path, text)
    assert caught.value.where.endswith('camera.yaml')
    assert caught.value.key == key
