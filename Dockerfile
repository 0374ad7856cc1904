# docker build -t attention-explorer .
# docker run --rm -p 8501:8501 --read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges --pids-limit 1024 \
#   attention-explorer
FROM python:3.11-slim

# Where there is no GPU, PyTorch's CPU wheels make an image some gigabytes smaller; the address of their index is on
# PyTorch's "Get started" page: docker build --build-arg PIP_EXTRA_INDEX_URL=... --build-arg TORCH=torch==2.13.0+cpu
ARG PIP_EXTRA_INDEX_URL=
ARG TORCH=

# Threads that spin while they wait starve the other visitors' threads.
ENV OMP_WAIT_POLICY=PASSIVE PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 MPLCONFIGDIR=/tmp/matplotlib

RUN useradd --create-home --uid 1000 explorer
WORKDIR /home/explorer/app
COPY requirements.txt .
COPY deploy/constraints.txt deploy/
RUN pip install --no-cache-dir -c deploy/constraints.txt $TORCH -r requirements.txt
# Owned by root: the app writes nothing, and whoever breaks into it cannot change it.
COPY . .
RUN python -m compileall -q app.py model pages viz
USER explorer

EXPOSE 8501
HEALTHCHECK --start-period=60s --interval=30s --timeout=5s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://localhost:8501/_stcore/health', timeout=4)"]
CMD ["python", "-m", "streamlit", "run", "app.py", "--server.address=0.0.0.0"]
