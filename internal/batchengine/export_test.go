package batchengine

// Waiting returns how many finished items wait for others to be settled.
func (w *Worker) Waiting() (n int) {
	w.settler.mu.Lock()
	defer w.settler.mu.Unlock()
	for _, all := range w.settler.waiting {
		n += len(all)
	}
	return n
}
