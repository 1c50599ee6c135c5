# Supervises one server and its directory for a parent that may crash at any
# moment.
#
# Arguments: the directory, the signal that asks the server to end, the signal
# that forces it to end, the server's command line.
#
# Commands arrive on stdin, one per line, and each gets a response of one line.
# The end of stdin means that the parent closed it or has crashed: the server is
# stopped and the directory removed.

# A broken pipe must not end the script before the cleanup; the other signals
# are sent to a whole process group, where this script must be the last to end.
trap '' HUP INT TERM PIPE
cd /

dir=$1 ask=$2 force=$3
shift 3
pid=

running() {
	[ -n "$pid" ] && kill -0 "$pid" 2>/dev/null
}

# pause also lets the shell reap a server that ended, after which running
# fails.
pause() {
	sleep 0.05
}

start() {
	"$@" </dev/null >>"$dir/log" 2>&1 &
	pid=$!
}

stop() {
	if running; then kill -s "$1" "$pid"; fi
	wait $pid
	pid=
}

# finish gives the server five seconds to end before it forces it.
finish() {
	if running; then kill -s "$ask" "$pid"; fi
	left=100
	while running && [ $left -gt 0 ]; do
		pause
		left=$((left - 1))
	done
	stop "$force"
}

# clean retries, because a program that the parent ran in the directory may still
# be writing there.
clean() {
	left=200
	until rm -rf "$dir" || [ $left -eq 0 ]; do
		pause
		left=$((left - 1))
	done
}

while read -r order signal; do
	case $order in
	start) start "$@" && echo started ;;
	stop) stop "$signal" && echo stopped ;;
	alive) pause && if running; then echo up; else echo down; fi ;;
	esac
done
finish
clean
