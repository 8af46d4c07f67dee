package statuspage

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

const (
	// headerTime is what a browser has to ask, answerTime what it has to send and take the rest, besides the time for which an answer is held
	// back and the store is used: who is slower occupies a connection for nothing.
	headerTime, answerTime = 5 * time.Second, 20 * time.Second
	// farewell is what requests have to end by themselves.
	farewell = 5 * time.Second
)

// Serve answers requests on l with the page until ctx ends; it then closes page and l, lets what is being answered end for up to 5 s, and returns
// nil. Any other end is an error.
func Serve(ctx context.Context, l net.Listener, page *Handler) error {
	most := hold + answerTime + page.cfg.Timeout // for reading too: net/http ends the context of a request with it
	s := &http.Server{
		Handler: page, ReadHeaderTimeout: headerTime, ReadTimeout: most, WriteTimeout: most,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(page.cfg.Logger.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		_ = page.Close() // so that those who wait for a change are answered
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
		if s.Shutdown(within) != nil {
			_ = s.Close()
		}
		cancel()
		err = <-ended
	}
	_ = page.Close()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
