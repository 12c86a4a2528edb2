CREATE TABLE orders (
    region CHAR(2) NOT NULL, ordered DATE NOT NULL, customer VARCHAR, number BIGINT NOT NULL, note VARCHAR,
    total DECIMAL(10, 2), pieces INTEGER, d.paid BOOLEAN, d."Comment" VARCHAR, d.sent TIMESTAMP
    CONSTRAINT pk PRIMARY KEY (region, ordered DESC, customer DESC, number, note)
) SALT_BUCKETS = 4, COMPRESSION = 'NONE'
