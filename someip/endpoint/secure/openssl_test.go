package secure_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"io"
	"net/netip"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip/endpoint"
	"carisma.dev/gateway/someip/endpoint/secure"
	"carisma.dev/gateway/someip/internal/authority"
)

// foreign is an openssl that plays the other end: what is written to it goes to us,
// what we send comes out of it.
type foreign struct {
	in  io.WriteCloser
	out *bufio.Reader
}

func openssl(t *testing.T, args ...string) *foreign {
	t.Helper()
	program, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("no openssl: make deps installs it")
	}
	cmd := exec.Command(program, args...)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	errs := &bytes.Buffer{}
	cmd.Stderr = errs
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("openssl %s: %s", strings.Join(args, " "), errs)
		}
	})
	return &foreign{in: in, out: bufio.NewReader(out)}
}

// accepts reads where a server listens.
func (f *foreign) accepts(t *testing.T) netip.AddrPort {
	t.Helper()
	for {
		line, err := f.out.ReadString('\n')
		require.NoError(t, err)
		if where, ok := strings.CutPrefix(line, "ACCEPT "); ok {
			return addr(strings.TrimSpace(where))
		}
	}
}

// gets reads until the text that we sent has come.
func (f *foreign) gets(t *testing.T, text string) {
	t.Helper()
	found := make(chan error, 1)
	go func() {
		var all []byte
		for !bytes.Contains(all, []byte(text)) {
			b, err := f.out.ReadByte()
			if err != nil {
				found <- err
				return
			}
			all = append(all, b)
		}
		found <- nil
	}()
	require.NoError(t, receive(t, found))
}

func (f *foreign) says(t *testing.T, b []byte) {
	t.Helper()
	_, err := f.in.Write(b)
	require.NoError(t, err)
}

// credentials are ours and the options of openssl, for each kind.
func credentials(t *testing.T) map[string]struct {
	server, client   secure.Config
	asServer, asPeer []string // of openssl as a server and as a client
} {
	t.Helper()
	ca := authority.New(t)
	peer := ca.Of(t, "127.0.11.61")
	mine := secure.Config{Certificate: ca.Of(t, "127.0.11.61"), Roots: ca.Pool()}
	files := files(t, ca, peer)
	key := hex.EncodeToString(shared.Keys[shared.Identity])
	return map[string]struct {
		server, client   secure.Config
		asServer, asPeer []string
	}{
		"PSK": {
			secure.Config{PSK: shared},
			secure.Config{PSK: shared},
			[]string{"-psk", key, "-psk_identity", shared.Identity, "-nocert"},
			[]string{"-psk", key, "-psk_identity", shared.Identity},
		},
		"certificates": {
			mine,
			mine,
			append([]string{"-Verify", "1", "-verify_return_error"}, files...),
			append([]string{"-verify_return_error"}, files...),
		},
	}
}

// openssl is the server.
func TestDTLSToOpenSSL(t *testing.T) {
	for name, c := range credentials(t) {
		t.Run(name, func(t *testing.T) {
			f := openssl(t, append([]string{"s_server", "-dtls1_2", "-accept", "127.0.11.61:0"}, c.asServer...)...)
			server := f.accepts(t)
			s, received := protect(t, "127.0.11.62:0", c.client, true)
			require.NoError(t, s.Send(server, []byte("from us\n")))
			f.gets(t, "from us\n")
			f.says(t, []byte("from openssl\n"))
			require.Equal(t, datagram{server, "from openssl\n"}, receive(t, received))
		})
	}
}

// openssl is the client.
func TestDTLSFromOpenSSL(t *testing.T) {
	for name, c := range credentials(t) {
		t.Run(name, func(t *testing.T) {
			s, received := protect(t, "127.0.11.61:0", c.server, false)
			f := openssl(t, append([]string{"s_client", "-dtls1_2", "-quiet", "-connect", s.LocalAddr().String()}, c.asPeer...)...)
			f.says(t, []byte("from openssl\n"))
			got := receive(t, received)
			require.Equal(t, "from openssl\n", got.data)
			require.NoError(t, s.Send(got.from, []byte("from us\n")))
			f.gets(t, "from us\n")
		})
	}
}

// The same of TLS 1.3, with whole messages.
func TestTLSToOpenSSL(t *testing.T) {
	c := credentials(t)["certificates"]
	f := openssl(t, append([]string{"s_server", "-tls1_3", "-accept", "127.0.11.61:0"}, c.asServer...)...)
	conn, err := endpoint.DialTCP(context.Background(), addr("127.0.11.62:0"), f.accepts(t), layer(t, c.client))
	require.NoError(t, err)
	r := newRecorder()
	conn.Serve(r)
	defer conn.Close()
	require.NoError(t, conn.Send(message("from us")))
	f.gets(t, string(message("from us")))
	f.says(t, message("from openssl"))
	require.Equal(t, message("from openssl"), receive(t, r.msgs))
}

func TestTLSFromOpenSSL(t *testing.T) {
	c := credentials(t)["certificates"]
	l, r := listenTLS(t, layer(t, c.server))
	f := openssl(t, append([]string{"s_client", "-tls1_3", "-quiet", "-connect", l.LocalAddr().String()}, c.asPeer...)...)
	f.says(t, message("from openssl"))
	require.Equal(t, message("from openssl"), receive(t, r.msgs))
	require.NoError(t, receive(t, r.opened).Send(message("from us")))
	f.gets(t, string(message("from us")))
}

// Old protocols are refused.
func TestOpenSSLWithOldProtocol(t *testing.T) {
	c := credentials(t)["PSK"]
	s, received := protect(t, "127.0.11.61:0", c.server, false)
	f := openssl(t, append([]string{"s_client", "-dtls1", "-quiet", "-cipher", "ALL:@SECLEVEL=0", "-connect", s.LocalAddr().String()}, c.asPeer...)...)
	_, err := f.out.ReadByte()
	require.ErrorIs(t, err, io.EOF)
	require.Empty(t, received)
}
