#!/bin/sh
# Prints a temperature, given in whole degrees Celsius, in Fahrenheit.
celsius=$1
echo $((celsius * 9 / 5 + 23))
