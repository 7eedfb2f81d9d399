# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Findings of the analysis of sensors at standstill."""

from __future__ import annotations

from sim2real_eval.common.findings import assumed, decisive, routine

UNIT_IS_G = decisive(
    'signals.unit_is_g',
    'the specific force at rest is {force:.4g m/s^2}, so its unit seems to be {unit}',
    'All accelerometer values are wrong by the ratio of the units.',
    'give the unit with --accel-unit',
)
NOT_GRAVITY = decisive(
    'signals.not_gravity',
    'the specific force at rest is {force:.4g m/s^2}, but gravity is {gravity:.4g m/s^2}',
    'The driver removes gravity, the bias is large, or the unit is wrong.',
    'give the unit with --accel-unit',
)
UNIT_IS_DEGREES = decisive(
    'signals.unit_is_degrees',
    'the white noise of the gyroscope is {noise:.2g rad/s/sqrt(Hz)}, ten times that of cheap '
    'sensors',
    'If the values are in deg/s, they are 57 times too large.',
    'give the unit with --gyro-unit deg/s',
)
HEADER_UNIT = decisive(
    'signals.header_unit',
    'the header says {stated}, but the values are taken as {taken}',
    'All values of that sensor are wrong by the ratio of the units.',
    'give {option} {stated}, or the unit that the values have',
)
AHEAD = routine(
    'signals.stamps_ahead',
    '{count:d} stamps are later than those of the next samples and replaced by the mean of their '
    'neighbours',
    'The clock had a glitch.',
)
COPIES = routine(
    'signals.copies',
    'messages come twice, {delay:.3g ms} apart with the same values: {count:d} copies among '
    '{samples:d} samples dropped',
    'The driver sends messages again. Copies would double the rate.',
)
RESTARTED = decisive(
    'signals.clock_restarts',
    'the clock restarts ({count:d}x, up to {back:.6g s} back); the longest piece, {kept:d} of '
    '{samples:d} samples, is analysed',
    'Stamps before and after a restart belong to different clocks.',
    'if that is too short, record again with a clock that only runs forward',
)
OUT_OF_ORDER = routine(
    'signals.out_of_order',
    '{count:d} samples come after later ones, and are put in the order of their stamps',
    'The transport does not keep the order.',
)
REPEATED = assumed(
    'signals.stamps_repeated',
    '{count:d} samples ({share:.2g} of all) have the stamp of the sample before, or almost the '
    'same, although their values differ; all samples are kept, evenly spaced at {rate:.6g Hz}',
    'The driver stamps in batches, so a stamp is not the time of its sample. Lost samples '
    'cannot be seen, and would make the rate too low.',
    'compare that rate with the rate of the sensor',
)
CUT = routine(
    'signals.cut',
    'gaps of up to {longest:.3g s} cut the record ({count:d}x); the longest piece, {kept:d} of '
    '{samples:d} samples, is analysed',
    'Averages over long times need a record without gaps.',
)
INTERPOLATED = routine(
    'signals.interpolated',
    '{count:d} missing samples ({share:.2g} of all) interpolated, which lowers white noise by '
    'about {lower:.1%}',
    'Short gaps are filled, so that samples are evenly spaced.',
)
JITTER = routine(
    'signals.jitter',
    'stamps jitter by {size:.3g ms} (at most {most:.3g ms}) about {rate:.6g Hz}; samples are '
    'treated as evenly spaced',
    'The sensor samples more evenly than the computer stamps.',
)
MOVES = routine(
    'signals.moves',
    '{moving:d} of {windows:d} windows move or vibrate; the longest standstill, {start:.6g} to '
    '{stop:.6g s} ({share:.0%}), is analysed',
    'Motion would count as noise.',
)
OUTLIERS = routine(
    'allan.outliers',
    '{count:d} of {samples:d} samples are outliers, up to {largest:.3g} {unit} off, and replaced '
    '({method}); white noise changes by {change:+.2%} ({gaussian:+.2%} for clean Gaussian noise)',
    'Single large errors would dominate the Allan variance.',
)
CONSTANT = routine('allan.constant', 'is constant and left out', 'There is no noise to analyse.')
LOW_PASS = routine(
    'allan.low_pass',
    'noise falls off above {bandwidth:.3g Hz}: the sensor has a low pass; the model has one of '
    'order {order:d} with the same total noise',
    'White noise is the density below this frequency; samples scatter less than without the '
    'filter.',
    'to fit without the filter, give --fit-from {fit_from:.2g}',
)
DRIFTS = routine(
    'allan.drifts',
    'the mean drifts by {change:.3g} {unit} in {seconds:.3g s}, along a line: the ramp of the '
    'model',
    'A simulated sensor drifts during the whole run.',
    'leave it out with --detrend',
)
DRIFT_UNCLEAR = decisive(
    'allan.drift_unclear',
    'the mean moves by {change:.3g} {unit} in {seconds:.3g s}; this record cannot distinguish a '
    'linear drift from a random walk, so the movement is removed',
    'The model has neither, so a simulated sensor drifts too little over long times.',
    'record for longer',
)
DETRENDED = routine(
    'allan.detrended',
    'a drift of the mean by {change:.3g} {unit} in {seconds:.3g s} is removed',
    'The model does not drift.',
)
WARM_UP = decisive(
    'allan.warm_up',
    'the mean drifts by {change:.3g} {unit}, which decays with a time constant of {time:.3g s}, '
    'probably warm-up; it is removed',
    'Warm-up is not noise and not part of the model: a simulated sensor does not warm up.',
    'record again when the sensor has run for {wait:.4g s}',
)
LINES = decisive(
    'allan.lines',
    'vibration or hum at {frequency:.4g Hz} with {rms:.2g} {unit} rms (spectral lines: {count:d}) '
    'is removed, so the simulated sensor has noise but no vibration',
    'White noise fitted through a line would be too large. If the robot vibrates like this, '
    'the simulated sensor is too quiet.',
    'if the simulated sensor needs it: `{setting}` in the file of the model',
)
MISFIT = decisive(
    'allan.misfit',
    'over {time:.2g s} the fitted noise has {ratio:.2f} times the Allan deviation of the record',
    'A simulated sensor is that much too noisy or too quiet over such times: the record has '
    'disturbances outside the noise model. The stated uncertainties include them.',
    'record again without disturbances, or fit longer times only with --fit-from',
)
NOT_SEPARATED = routine(
    'allan.not_separated',
    '{kind} and a Gauss-Markov bias of {std:.2g} {unit} with a correlation time of {time:.3g s} '
    'fit the curve equally well; the model uses {kind}, whose Allan deviation at one hour is '
    '{ratio:.2g} times as large',
    'The two differ only at averaging times that the record hardly covers.',
    'record for longer',
)
NOT_RECOVERED = routine(
    'allan.not_recovered',
    '{terms} were not recovered within 3 sigma from a simulation of the fitted model',
    'The record does not determine these values well, or their uncertainty is too small.',
    'record for longer',
)
BAD_FIXES = routine(
    'gps.bad_fixes',
    '{count:d} of {fixes:d} messages have no fix, or a repeated stamp',
    'They are left out.',
)
STANDS_STILL = routine(
    'gps.standstill',
    'the GPS stands still during {share:.0%} of the fixes: {spans}',
    'Only these times are analysed.',
)
JUMPS = decisive(
    'gps.jumps',
    'fixes excluded as driving stay within {away:.3g m} of the standstill, whose fixes '
    'scatter by {kept:.3g m}: they may be a receiver at rest that jumps or wanders',
    'The model then contains only the quiet times of the receiver and is too optimistic.',
    'if the vehicle never moved, analyse all of it with --moving keep',
)
WANDERS = assumed(
    'gps.wanders',
    '{share:.0%} of the fixes change like those of a vehicle, up to {away:.3g m} from their mean, '
    'but have no steady speed and no net motion: they count as errors at standstill',
    'If the vehicle moved in between, its motion counts as error of the receiver.',
    'if it moved, characterize a recording of its standstill alone',
)
NO_LEVER_ARM = routine(
    'sensor.no_lever_arm',
    'no static transform connects frame {frame!r} to {base!r}, so the lever arm is unknown',
    'The model has no mounting.',
    'measure it on the vehicle: `transforms: [{{parent: {base}, child: {frame}, translation: '
    '[X, Y, Z]}}]` (m) in recording.yaml',
)
LEFT_OUT = routine(
    'sensor.left_out', 'left out for the {sensor}: {problem}', 'The others are used.'
)
NO_SENSOR = routine(
    'sensor.missing',
    'no {sensor} in the recordings, so {file} is not written',
    'There is nothing to analyse.',
)
MOSTLY_ROUNDING = decisive(
    'gps.mostly_rounding',
    'fixes come in steps of {step:.2g m}, more than twice their scatter: the result is mostly '
    'rounding',
    'The driver or the log rounds the coordinates.',
    'record coordinates with more digits',
)
ROUNDING = routine(
    'gps.rounding',
    'fixes come in steps of {step:.2g m}: rounding alone makes white noise of {noise:.2g m}',
    'The driver or the log rounds the coordinates.',
)
FIXES_CONSTANT = routine(
    'gps.constant',
    'the fixes never change; the model has no error in this axis',
    'A receiver may hold its position at standstill.',
    'switch off the static filter of the receiver',
)
WANDER_UNBOUND = decisive(
    'gps.wander_unbounded',
    '{seconds:.3g s} at standstill do not bound the correlation time of the error (> '
    '{lower:.2g s}); in the model it is a random walk of up to {walk:.2g m/sqrt(s)}',
    'The walk holds for runs as long as the standstill. In longer runs the error of the model '
    'grows without bound, and its size is unknown.',
    'record a standstill of {needed:.2g s} or more',
)
NOT_RECOMMENDED = decisive(
    'gps.not_recommended',
    'no model reproduces the record, so none is recommended; {statistic} is {record:.3g m}, but '
    '{lower:.3g m} to {upper:.3g m} in 95 % of the simulations with gps.yaml',
    'The receiver smooths, jumps or drifts, which white noise with a Gauss-Markov process does '
    'not. A filter tuned on the model will meet other errors on the receiver.',
    'use gps.yaml only over the times at which the dots of gps.png are inside the band, and not '
    'for extremes',
)
SHORT_STANDSTILL = decisive(
    'imu.short_standstill',
    '{seconds:.3g s} at standstill show white noise and bias only; bias instability, random walk '
    'and ramp are 0 in the model',
    'Bias instability takes tens of minutes, a random walk hours. In a short '
    'record, vibration or temperature would be mistaken for them.',
    'record a longer standstill',
)
ONE_SECOND = routine(
    'signals.one_second',
    'all samples are 1 s apart',
    'The time column may be a sample number.',
    'if so, replace its name by - in --columns and set --sample-rate',
)
STAMPS_USED = routine(
    'signals.stamps_used',
    'the stamps give {found:.6g Hz}, so the given {given:g Hz} are not used',
    'Stamps have precedence over --sample-rate.',
    'replace the name of the column by - in --columns to ignore the stamps',
)
RATE_USED = decisive(
    'signals.rate_used',
    'the file says {found:g Hz}; the given {given:g Hz} are used',
    'Each density and walk changes with the root of the ratio of the rates.',
    'if the file is right, leave out --sample-rate',
)
