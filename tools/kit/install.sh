#!/bin/sh
# Install napari-mamamia from this folder, without a network.
# Usage: sh install.sh [FOLDER]        FOLDER is new; default: ~/napari-mamamia
set -eu
target=${1:-"$HOME/napari-mamamia"}
case $target in /*) ;; *) target=$PWD/$target ;; esac
cd "$(dirname "$0")"

if ! sha256sum --check --quiet SHA256SUMS; then
  echo "This kit is damaged or was changed: get it again. Nothing was installed." >&2
  exit 1
fi
if [ -e "$target" ]; then
  echo "$target is there already: remove it, or name another folder. Nothing was installed." >&2
  exit 1
fi
version=$(cat python-version)
python=
for name in "python$version" python3; do
  if "$name" -c "import sys; sys.exit('{}.{}'.format(*sys.version_info) != '$version')" 2>/dev/null; then
    python=$name
    break
  fi
done
if [ -z "$python" ]; then
  echo "Python $version was not found: install python$version, or get the kit of your Python. Nothing was installed." >&2
  exit 1
fi

"$python" -m venv --without-pip "$target"
pip=$(echo wheels/pip-*.whl)/pip # a wheel is a program to Python
if ! "$target/bin/python" "$pip" install --quiet --no-index --find-links wheels \
  --require-hashes --requirement requirements.txt; then
  rm -rf "$target"
  echo "The installation failed, and $target was removed again." >&2
  exit 1
fi
cp -r documentation demo "$target/"

echo "Installed in $target:"
"$target/bin/mamamia" --version
echo "$(find "$target"/lib/python*/site-packages -maxdepth 1 -name '*.dist-info' | wc -l) Python packages, \
$(du -sm "$target" | cut -f1) MB. The hash of each file was verified."
missing=$(bash system-libraries --list window)
if [ -n "$missing" ]; then
  echo
  echo "The window also needs these system packages (Debian names): $missing"
fi
echo
echo "Open the window with the demo:  $target/bin/mamamia view $target/demo"
echo "Read the documentation:         $target/documentation/index.html"
