#!/bin/sh
# Compares celsius.sh with temperatures that are known. Exit code 1 if one is wrong.
cd "$(dirname "$0")" || exit 1
wrong=0
check() {
    got=$(sh ./celsius.sh "$1")
    if [ "$got" = "$2" ]; then
        echo "ok     $1 C is $2 F"
    else
        echo "WRONG  $1 C is $2 F, not $got F"
        wrong=1
    fi
}
check 0 32
check 100 212
check -40 -40
exit $wrong
