package reactions

// Held returns how many leases the worker renews.
func (w *Worker) Held() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.held)
}
