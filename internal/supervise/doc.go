// Package supervise runs commands so that none outlives its right to work: a small supervisor process (the same binary,
// started again in a hidden mode) stands between the process that asked and the command.
//
// # Guarantee
//
// A command works only while the process that asked for it (the parent) is there, and no longer than the moment of trust
// that the parent named last, an absolute time on CLOCK_BOOTTIME, which all processes of a machine share and which counts
// suspended time. Neither kill -9 nor SIGSTOP of the parent leaves a child at work:
//
//   - The supervisor kills the command when its socket to the parent closes, or when the moment of trust passes.
//   - It lives in a session of its own: a Ctrl-C or a hang-up of the terminal does not reach it, nor the command.
//   - The command leads a process group. SIGTERM goes to that group, SIGKILL to every descendant of the supervisor, which
//     is their subreaper: also those that left the group, the session or their parent. What a command leaves running when it
//     exits is killed. A run has ended only when the kernel says that no child is left.
//   - When the supervisor itself is killed, the kernel kills the command (parent-death signal), and the parent what is left of
//     its session and whatever carries its mark in its environment.
//   - A body that could not be read to its end is never mistaken for a complete one: the supervisor holds the command's standard
//     input open until the parent said that it is complete, or the command is dead.
//
// # Limits
//
// Who kills both the parent and the supervisor with SIGKILL at once kills the command too, but not what it started. A
// command that changes its user cannot be killed by us; its run does not end before it does. A frozen machine or
// container freezes the supervisor as well.
package supervise
