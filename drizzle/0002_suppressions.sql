CREATE TABLE `suppressions` (
	`entry` text PRIMARY KEY NOT NULL,
	`note` text,
	`created_at_ms` integer NOT NULL
);
