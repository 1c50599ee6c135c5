CREATE TABLE IF NOT EXISTS receipts (
    order_id text PRIMARY KEY,
    receipt  text NOT NULL,
    cents    bigint NOT NULL
);
