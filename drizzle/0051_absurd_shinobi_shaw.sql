CREATE TABLE `dmarc_raw_chunks` (
	`ingestion` text NOT NULL,
	`chunk` integer NOT NULL,
	`bytes` blob NOT NULL,
	PRIMARY KEY(`ingestion`, `chunk`)
);
