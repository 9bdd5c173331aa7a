# Gives files to owners that the activation made. Arguments: owner group mode path, again and again.
set -eu
while [ $# -ge 4 ]; do
  chown "$1:$2" "$4"
  chmod "$3" "$4"
  shift 4
done
