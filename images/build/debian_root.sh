#!/bin/sh
# Makes a whole root out of the seed it runs in: configure the essential packages, then the rest, then take away
# everything that differs from run to run. Runs without network in a build step; the packages lie read-only at $1.
set -eu
umask 022
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C HOME=/ DEBIAN_FRONTEND=noninteractive DEBCONF_NONINTERACTIVE_SEEN=true
# Python's byte code then checks the source's hash, not its time (py_compile, PycInvalidationMode).
export SOURCE_DATE_EPOCH PYTHONHASHSEED=0
cd "$1"

mkdir -p /var/lib/dpkg/info /var/lib/dpkg/updates /var/lib/dpkg/triggers /tmp /var/tmp
chmod 1777 /tmp /var/tmp
touch /var/lib/dpkg/status /var/lib/dpkg/available
cp /usr/share/base-passwd/passwd.master /etc/passwd
cp /usr/share/base-passwd/group.master /etc/group
printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d

# Each file names packages in the order of their needs; a later one needs those of an earlier one configured
# (Pre-Depends). The essential packages need each other in circles, which the seed's files make harmless.
force=--force-depends
for batch in batch-*; do
  # shellcheck disable=SC2046  # file names of packages hold no spaces
  dpkg $force --force-unsafe-io --force-confnew --install $(cat "$batch")
  force=
done
dpkg --audit >/tmp/audit
if [ -s /tmp/audit ]; then
  cat /tmp/audit >&2
  exit 1
fi

rm -f /usr/sbin/policy-rc.d /tmp/audit /var/lib/dpkg/*-old /var/lib/dpkg/lock* /var/lib/dpkg/triggers/Lock \
  /var/cache/debconf/*-old /var/cache/ldconfig/aux-cache /etc/machine-id /var/lib/dbus/machine-id \
  /etc/passwd- /etc/group- /etc/shadow- /etc/gshadow- /etc/.pwd.lock /etc/subuid- /etc/subgid-
rm -rf /var/cache/apt /var/lib/apt/lists /var/cache/man /root/.cache /run/lock
find /var/log /tmp /var/tmp -mindepth 1 -delete
