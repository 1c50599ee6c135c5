CREATE TABLE invoices (
    id           text PRIMARY KEY,
    cents        bigint NOT NULL,
    state        text NOT NULL DEFAULT 'open',
    lock_version bigint NOT NULL DEFAULT 0
);
CREATE INDEX invoices_claimed ON invoices (state) WHERE state = 'closing'; -- for the janitor
CREATE TABLE bookings (
    invoice text NOT NULL,
    cents   bigint NOT NULL
);
