# Shared by scripts/device and scripts/capture_trace: the one phone that adb knows. Sourced after
# lib.sh.

need_device() {
  command -v adb >/dev/null ||
    die "adb is not installed; install Debian's package adb, or Android's platform tools"
  local devices
  devices=$(adb devices 2>/dev/null | awk 'NR > 1 && NF > 1 { print $2 }')
  [[ -n $devices ]] || die "no phone is connected; connect one with USB debugging switched on"
  if [[ $devices == *unauthorized* && $devices != *device* ]]; then
    die "the phone has not allowed this computer yet; unlock it and answer its question"
  fi
  [[ $(grep -cx device <<<"$devices") == 1 || -n ${ANDROID_SERIAL-} ]] ||
    die "several phones are connected; choose one with ANDROID_SERIAL (adb devices lists them)"
  [[ $(adb shell getprop ro.product.cpu.abi </dev/null | tr -d '\r') == arm64-v8a ]] ||
    die "the phone is not a 64-bit Arm one"
}
