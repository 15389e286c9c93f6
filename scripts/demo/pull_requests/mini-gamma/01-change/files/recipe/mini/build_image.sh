#!/bin/sh
# usage: build_image.sh SOURCES OUT: the wheels of the checkouts SOURCES/alpha, SOURCES/beta and SOURCES/gamma
set -eu
for name in alpha beta gamma; do
  (cd "$1/$name" && umask 022 && python3 -m pip wheel --no-build-isolation --no-deps --no-index -w "$2" .)
done
