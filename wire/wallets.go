package wire

// PutWallet creates or changes a wallet.
type PutWallet struct {
	AllowNegative bool `json:"allowNegative,omitempty" doc:"Whether the balance may be negative."`
}

// Wallet holds a balance of points.
type Wallet struct {
	ID            string `json:"id"`
	Balance       int64  `json:"balance"`
	AllowNegative bool   `json:"allowNegative"`
}

// Credit adds points to a wallet.
type Credit struct {
	Points    int64  `json:"points" minimum:"1"`
	Reference string `json:"reference" doc:"Idempotency reference. Crediting again with the same reference adds nothing."`
}

// LedgerEntry is an entry of a wallet's ledger.
type LedgerEntry struct {
	ID        int64  `json:"id" doc:"Number of the entry in the ledger, starting at 1."`
	Delta     int64  `json:"delta"`
	Balance   int64  `json:"balance" doc:"The wallet's balance after this entry."`
	Reason    string `json:"reason"`
	Reference string `json:"reference"`
	At        *Time  `json:"at"`
}

// Audit is the result of checking ledgers against balances.
type Audit struct {
	Wallets int64         `json:"wallets"`
	Entries int64         `json:"entries"`
	Wrong   []Discrepancy `json:"wrong"`
}

// Discrepancy is a wallet whose ledger is inconsistent. ID is the number of the first inconsistent
// entry, or 0 if the entries are consistent but do not match the wallet.
type Discrepancy struct {
	Wallet  string `json:"wallet"`
	ID      int64  `json:"id"`
	Message string `json:"message"`
}
