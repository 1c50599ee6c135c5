# Keeps one server and its directory for a parent that may die at any moment.
#
# Arguments: the directory, the signal that asks the server to end, the signal
# that makes it end, the server's command line.
#
# Orders come on stdin, one a line, and each is answered by one line. The end
# of stdin means that the parent closed it or is dead: the server is stopped
# and the directory removed.

# A broken pipe must not end us before the clean-up; the others are sent by
# whoever ends a whole group of processes, and then too we are needed last.
trap '' HUP INT TERM PIPE
cd /

dir=$1 ask=$2 force=$3
shift 3
pid=

running() {
	[ -n "$pid" ] && kill -0 "$pid" 2>/dev/null
}

# pause also lets the shell reap a server that ended, which is what makes
# running say no.
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

# finish gives the server five seconds before it forces the end.
finish() {
	if running; then kill -s "$ask" "$pid"; fi
	left=100
	while running && [ $left -gt 0 ]; do
		pause
		left=$((left - 1))
	done
	stop "$force"
}

# clean tries again because a program that the parent ran in the directory may
# still be writing there.
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
