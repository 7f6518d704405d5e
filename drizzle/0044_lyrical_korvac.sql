CREATE TABLE `dmarc_tag_digests` (
	`account_id` text NOT NULL,
	`mode` text NOT NULL,
	`tag` text NOT NULL,
	`digest` text NOT NULL,
	`recipients` text NOT NULL,
	`due_at_ms` integer,
	PRIMARY KEY(`account_id`, `mode`, `tag`)
);
--> statement-breakpoint
CREATE INDEX `dmarc_tag_digests_due` ON `dmarc_tag_digests` (`due_at_ms`);