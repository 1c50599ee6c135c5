CREATE TABLE IF NOT EXISTS orders (
    tenant   text NOT NULL,
    id       text NOT NULL,
    customer text NOT NULL,
    cents    bigint NOT NULL,
    receipt  text NOT NULL DEFAULT '',
    status   text NOT NULL DEFAULT 'placed',
    version  bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX IF NOT EXISTS orders_status ON orders (status);
CREATE TABLE IF NOT EXISTS sales (
    tenant   text NOT NULL,
    customer text NOT NULL,
    cents    bigint NOT NULL,
    PRIMARY KEY (tenant, customer)
);
