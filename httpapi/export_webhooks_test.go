package httpapi

import "net/http"

// WebhookClient returns the client that sends messages.
func (a *API) WebhookClient() *http.Client { return a.hooks.Client }
