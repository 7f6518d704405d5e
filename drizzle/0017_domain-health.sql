CREATE TABLE `dmarc_health` (
	`domain` integer PRIMARY KEY NOT NULL,
	`due_at_ms` integer NOT NULL,
	`body` text
);
--> statement-breakpoint
CREATE INDEX `dmarc_health_due` ON `dmarc_health` (`due_at_ms`);