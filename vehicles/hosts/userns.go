package hosts

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// reexecuted marks the copy of this program that runs in a user namespace.
const reexecuted = "CARISMA_IN_USER_NAMESPACE"

// EnterUserNamespace makes sure that the process may make network namespaces. A
// process that may already gets false. For an unprivileged user it runs the same
// program again in a user namespace of its own, waits for its end and returns
// true and its exit status: the caller should then exit with it.
func EnterUserNamespace() (ran bool, status int, err error) {
	if Permitted() {
		return false, 0, nil
	}
	if os.Getenv(reexecuted) != "" {
		return false, 0, errors.New("network namespaces are not permitted, not even in a user namespace")
	}
	self, err := os.Executable()
	if err != nil {
		return false, 0, err
	}
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Env = append(os.Environ(), reexecuted+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	// An interrupt from the terminal reaches the child too; it decides when to end.
	signal.Ignore(syscall.SIGINT)
	if err := cmd.Start(); err != nil {
		return false, 0, fmt.Errorf("network namespaces need root or user namespaces: %w", err)
	}
	forward := make(chan os.Signal, 1)
	signal.Notify(forward, syscall.SIGTERM)
	go func() {
		for s := range forward {
			_ = cmd.Process.Signal(s) // it may have ended just now
		}
	}()
	err = cmd.Wait()
	signal.Stop(forward)
	close(forward)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return true, exit.ExitCode(), nil
	}
	return true, 0, err
}
