# The command `sim2real`, without ROS.
#   docker build -t sim2real .
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/data" -v sim2real:/cache sim2real \
#     vepd bags/* --out result
FROM python:3.12-slim AS build
WORKDIR /src
COPY . .
RUN pip wheel --no-cache-dir --wheel-dir /wheels .

FROM python:3.12-slim
# The version is that of the tree; hadolint sees a package of an index.
# hadolint ignore=DL3013
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir --no-index --find-links=/wheels sim2real_sensors
# Loops are compiled once per machine; a volume here keeps them between runs.
ENV NUMBA_CACHE_DIR=/cache MPLCONFIGDIR=/cache
RUN mkdir -m 1777 /cache /data
USER 65534:65534
WORKDIR /data
ENTRYPOINT ["sim2real"]
CMD ["--help"]
