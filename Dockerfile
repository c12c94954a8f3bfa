# syntax=docker/dockerfile:1
# One image for the trainer, the server, TensorBoard and the Temporal server: the arguments say which.
#
#   docker build --build-arg TORCH_INDEX=ADDRESS -t repertory:0.1.0 .                 CPU; ADDRESS has CPU builds of torch
#   docker build --build-arg VARIANT=cuda -t repertory:0.1.0-cuda .                   CUDA, as torch's own wheels bring it
#   docker run --init --rm repertory:0.1.0 trainers.doctor /experiment/experiment.yaml

ARG PYTHON_IMAGE=python:3.11.14-slim-bookworm

FROM ${PYTHON_IMAGE} AS build
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
ARG VARIANT=cpu
ARG TORCH_INDEX=
ARG EXTRAS=lm,postgres,serve,temporal
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_NO_CACHE_DIR=1 PIP_ONLY_BINARY=:all:
# Without pip of its own: what is installed there is installed from outside.
RUN python -m venv --without-pip /opt/repertory
WORKDIR /src

# Dependencies first: they change less often than the code, and this layer is the large one.
COPY constraints.txt pyproject.toml README.md LICENSE ./
RUN case "${VARIANT}:${TORCH_INDEX}" in \
        cpu:) echo 'TORCH_INDEX is empty: name an index that has CPU builds of torch, or take VARIANT=cuda' >&2; exit 2 ;; \
        cpu:*|cuda:*) ;; \
        *) echo "VARIANT is cpu or cuda, not ${VARIANT}" >&2; exit 2 ;; \
    esac \
    && pip --python /opt/repertory/bin/python install --no-deps ${TORCH_INDEX:+--index-url "${TORCH_INDEX}"} -c constraints.txt torch
RUN pip --python /opt/repertory/bin/python install -c constraints.txt ".[${EXTRAS}]" \
    && pip --python /opt/repertory/bin/python install --no-deps -c constraints.txt xgrammar apache-tvm-ffi

COPY assembly assembly
COPY envs envs
COPY policies policies
COPY rewards rewards
COPY runtime runtime
COPY serving serving
COPY telemetry telemetry
COPY trainers trainers
RUN pip --python /opt/repertory/bin/python install --no-deps --force-reinstall . \
    && /opt/repertory/bin/python -m compileall -q /opt/repertory/lib

FROM ${PYTHON_IMAGE} AS image
RUN groupadd --gid 10001 repertory \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /state --shell /usr/sbin/nologin repertory \
    && install -d -o 10001 -g 10001 /state \
    && rm -rf /usr/local/lib/python3.11/site-packages/pip /usr/local/lib/python3.11/site-packages/setuptools \
        /usr/local/bin/pip /usr/local/bin/pip3 /usr/local/bin/pip3.11
COPY --from=build /opt/repertory /opt/repertory
COPY experiments /opt/repertory/experiments
# HEALTH_URL: what has to answer. NVIDIA_*: what a CUDA image asks of the container runtime; others ignore it.
ENV PATH=/opt/repertory/bin:${PATH} HOME=/state PYTHONUNBUFFERED=1 PYTHONFAULTHANDLER=1 \
    OMP_NUM_THREADS=1 RAY_USAGE_STATS_ENABLED=0 MPLCONFIGDIR=/tmp/matplotlib \
    HEALTH_URL=http://127.0.0.1:8000/healthz \
    NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
USER 10001:10001
WORKDIR /state
VOLUME /state
EXPOSE 8000 9464
HEALTHCHECK --interval=10s --timeout=5s --start-period=120s --retries=6 \
    CMD ["python", "-c", "import os, urllib.request as u; u.urlopen(os.environ['HEALTH_URL'], timeout=4)"]
ENTRYPOINT ["python", "-m"]
CMD ["trainers.run", "--help"]
