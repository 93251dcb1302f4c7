#!/bin/sh
# Debian packages that some tests and the PDF need. Installs what is missing where that is allowed (apt-get, root).
# Elsewhere, or without a network, one line says what will not run and how to get it; the build goes on either way.
set -u

pdf="libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0 fonts-dejavu-core"

command -v dpkg-query >/dev/null 2>&1 || exit 0 # no Debian: the tests themselves say what they miss

lacking() { # the packages for the PDF and for the browser tests that are not there, in lacking_pdf and lacking_browser
    lacking_pdf=""
    for package in $pdf; do
        status=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null)
        [ "$status" = installed ] || lacking_pdf="$lacking_pdf $package"
    done
    lacking_browser=""
    command -v chromium >/dev/null 2>&1 || lacking_browser=" chromium"
}

install() {
    apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "$@"
}

lacking
[ -n "$lacking_pdf$lacking_browser" ] || exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "Installing Debian packages:$lacking_pdf$lacking_browser"
    # shellcheck disable=SC2086  # names without blanks
    install $lacking_pdf $lacking_browser >/dev/null 2>&1
    lacking
fi

left_out="${lacking_pdf:+the PDF and its tests}${lacking_browser:+${lacking_pdf:+, }the tests in a browser}"
[ -z "$left_out" ] || echo "Left out: $left_out; to have them: sudo apt-get install$lacking_pdf$lacking_browser" >&2
exit 0
