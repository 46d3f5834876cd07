# What a script of the lab may call.

# Says that this cannot be done here.
lab_skip() {
	echo "SKIP: $*"
	exit 77
}

lab_fail() {
	echo "FAIL: $*"
	exit 1
}

# Runs a command, and fails with it.
lab_check() {
	"$@" || lab_fail "$* (status $?)"
}
