package httpapi

import "net/http"

// WebhookClient is what messages are sent with.
func (a *API) WebhookClient() *http.Client { return a.hooks.Client }
