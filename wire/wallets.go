package wire

// PutWallet makes a wallet, or changes it.
type PutWallet struct {
	AllowNegative bool `json:"allowNegative,omitempty" doc:"Whether its balance may be below zero."`
}

// Wallet is a balance of points.
type Wallet struct {
	ID            string `json:"id"`
	Balance       int64  `json:"balance"`
	AllowNegative bool   `json:"allowNegative"`
}

// Credit adds points to a wallet.
type Credit struct {
	Points    int64  `json:"points" minimum:"1"`
	Reference string `json:"reference" doc:"What they are for: the same again credits nothing."`
}

// LedgerEntry is a row of a wallet's ledger.
type LedgerEntry struct {
	ID        int64  `json:"id" doc:"Its number in the ledger, from 1."`
	Delta     int64  `json:"delta"`
	Balance   int64  `json:"balance" doc:"The wallet's, behind it."`
	Reason    string `json:"reason"`
	Reference string `json:"reference"`
	At        *Time  `json:"at"`
}

// Audit is what was added up, and what does not.
type Audit struct {
	Wallets int64        `json:"wallets"`
	Entries int64        `json:"entries"`
	Wrong   []AuditWrong `json:"wrong"`
}

// AuditWrong is a wallet that does not add up: the first row that does not, or 0 for its
// balance.
type AuditWrong struct {
	Wallet  string `json:"wallet"`
	ID      int64  `json:"id"`
	Message string `json:"message"`
}
