#!/bin/sh
# Charge an amount once, at a payment service that takes idempotency keys:
#
#     idem run -k order-42 --on-expired-lease rerun --retention never -- \
#         ./pay.sh 4200 eur
#
# idem passes its key on to us, and we pass it on to the service. So this may be run
# again whatever died, and when: the service knows the charge, and answers as it did
# the first time. That is why the policy may be "rerun".
set -u

amount=${1:?usage: pay.sh AMOUNT CURRENCY}
currency=${2:?usage: pay.sh AMOUNT CURRENCY}
url=${PAYMENT_URL:-https://api.stripe.com}/v1/charges

# The service forgets a key after 24 hours. Later than that, less an hour for
# clocks and for the way, the same key would be a new charge.
key_life_s=${PAYMENT_KEY_LIFE:-82800}

# The id of scope and key: 64 hex digits whatever the key contains, and different
# ones in each scope. `idem show` prints it, to find the charge at the service.
key=$(idem key -k "$IDEM_KEY" | awk '$1 == "id" { print $2 }')
[ ${#key} -eq 64 ] || exit 75

# It may have been charged, and we cannot find out: that is for a person, not for
# a later run, which might come when the service has forgotten the key.
give_up() {
    idem unknown --self --reason "$1"
    echo "pay: $1; it may have been charged" >&2
    exit 76
}

may_be_charged=$IDEM_TAKEOVER
if [ "$IDEM_ATTEMPTS" -gt 1 ]; then
    first_ms=$(idem show --json -- "$IDEM_KEY" |
        sed 's/.*"created_ms":\([0-9]*\).*/\1/')
    [ -n "$first_ms" ] || give_up "the record cannot be read"
    age_s=$(($(date +%s) - first_ms / 1000))
    [ "$age_s" -lt "$key_life_s" ] || give_up "first tried $age_s s ago"
fi

# A charge that was begun is seen to its end, so that its outcome is on record.
trap '' HUP INT TERM
answer=$(mktemp) || exit 75
trap 'rm -f "$answer"' EXIT

# The secret of the account comes from a file, so that no list of processes shows
# it. The answer decides what follows, so curl must not retry by itself.
charge() {
    curl --silent --show-error --max-time "${PAYMENT_TIMEOUT:-30}" \
        ${PAYMENT_AUTH:+--config "$PAYMENT_AUTH"} \
        --header "Idempotency-Key: $key" \
        --data-urlencode "amount=$amount" \
        --data-urlencode "currency=$currency" \
        --output "$answer" --write-out '%{http_code}' "$url"
}

tries=${PAYMENT_TRIES:-5}
while [ "$tries" -gt 0 ]; do
    status=$(charge)
    case $?,$status in
    0,2??)
        cat "$answer" # The receipt: recorded, and replayed from now on.
        exit 0
        ;;
    [67],* | 0,401 | 0,403 | 0,404 | 0,429 | 0,503)
        ;; # Not reached, not let in, too busy: this one charged nothing.
    0,409 | 0,502 | 0,504 | [!0]*)
        may_be_charged=1 # The service is still at it, or its answer was lost.
        ;;
    0,5??)
        give_up "the service answered $status" # It replays such an answer, too.
        ;;
    *)
        cat "$answer" # Declined, or not understood: an outcome like any other.
        exit 1
        ;;
    esac
    tries=$((tries - 1))
    sleep "${PAYMENT_PAUSE:-2}"
done

[ "$may_be_charged" = 0 ] || give_up "no answer from the service"
echo "pay: nothing was charged; try again later" >&2
exit 75
