CREATE TABLE `dmarc_shares` (
	`hash` text PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`domain` integer NOT NULL,
	`note` text,
	`created_at_ms` integer NOT NULL,
	`expires_at_ms` integer NOT NULL,
	`revoked_at_ms` integer,
	`last_used_at_ms` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `dmarc_shares_id_unique` ON `dmarc_shares` (`id`);--> statement-breakpoint
CREATE INDEX `dmarc_shares_by_domain` ON `dmarc_shares` (`domain`,`id`);