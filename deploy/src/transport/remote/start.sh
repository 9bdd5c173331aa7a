# Starts the activation in a unit of its own, so that it outlives this connection. Arguments: unit system run.
# `systemd-run` returns when the oneshot has ended; its result is read from the unit, which stays until it is removed.
activation='"$1/bin/switch-to-configuration" switch; code=$?
mkdir -p /var/lib/provisor
echo "$2 $1 $code" >> /var/lib/provisor/activations
sync /var/lib/provisor/activations
exit $code'
if [ -d /run/systemd/system ]; then
  complaint=$(systemd-run --quiet --no-ask-password --unit="$1" --description="provisor: activate $2" \
    --service-type=oneshot --remain-after-exit --setenv=PATH="$PATH" \
    /bin/sh -c "$activation" provisor-switch "$2" "$3" 2>&1)
  echo "complaint=$(echo "$complaint" | tail -n 1)"
else
  # Nothing here can hold a unit (a rescue shell, a container): run it directly, and let the record speak.
  sh -c "$activation" provisor-switch "$2" "$3" 1>&2
fi
