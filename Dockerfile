# The service `ccot serve`, and every other command of ccot.
#
#   docker build --tag ccot .
#   docker run --rm --volume "$PWD:/data" ccot fit-ratings ratings.csv --out model.ccot
#   docker run --read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges \
#       --volume "$PWD:/data:ro" --publish 127.0.0.1:8000:8000 ccot
#
# Packages come with the hashes of requirements/serve.txt. The process is no root, writes nothing
# but what a command is asked to write into /data, and needs no network.

FROM python:3.13-slim-trixie AS build
WORKDIR /build
COPY requirements/release.txt requirements/serve.txt requirements/
RUN python -m venv /opt/tools && python -m venv /opt/ccot \
    && /opt/tools/bin/pip install --no-cache-dir --require-hashes --only-binary :all: \
        -r requirements/release.txt \
    && /opt/ccot/bin/pip install --no-cache-dir --require-hashes --only-binary :all: \
        -r requirements/serve.txt
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY src src
RUN /opt/tools/bin/python -m hatchling build --target wheel \
    && /opt/ccot/bin/pip install --no-cache-dir --no-deps dist/*.whl \
    && /opt/ccot/bin/pip uninstall --yes pip \
    && /opt/ccot/bin/ccot --version

FROM python:3.13-slim-trixie
LABEL org.opencontainers.image.title="ccot" \
      org.opencontainers.image.description="Co-clustering through optimal transport" \
      org.opencontainers.image.source="https://github.com/ccot-dev/ccot" \
      org.opencontainers.image.licenses="BSD-3-Clause"
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /tmp ccot
COPY --from=build /opt/ccot /opt/ccot
ENV PATH=/opt/ccot/bin:$PATH \
    HOME=/tmp \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    OMP_NUM_THREADS=1
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s --retries=3 \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/health', timeout=4)"]
ENTRYPOINT ["ccot"]
CMD ["serve", "model.ccot", "--host", "0.0.0.0", "--port", "8000"]
