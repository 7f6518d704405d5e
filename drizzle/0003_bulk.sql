CREATE TABLE `bulk_addresses` (
	`job` integer NOT NULL,
	`position` integer NOT NULL,
	`email` text NOT NULL,
	`normalized_email` text NOT NULL,
	`rows` integer NOT NULL,
	`due_at_ms` integer DEFAULT 0 NOT NULL,
	`sub_status` text,
	`quality_score` integer,
	`confidence` integer,
	`signals` text,
	`verified_at_ms` integer,
	PRIMARY KEY(`job`, `position`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `bulk_counts` (
	`job` integer NOT NULL,
	`sub_status` text NOT NULL,
	`rows` integer NOT NULL,
	PRIMARY KEY(`job`, `sub_status`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `bulk_evidence` (
	`job` integer NOT NULL,
	`position` integer NOT NULL,
	`body` text NOT NULL,
	PRIMARY KEY(`job`, `position`)
);
--> statement-breakpoint
CREATE TABLE `bulk_jobs` (
	`number` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`id` text NOT NULL,
	`account_id` text NOT NULL,
	`key_id` text NOT NULL,
	`mode` text NOT NULL,
	`name` text,
	`source` text,
	`status` text NOT NULL,
	`format` text NOT NULL,
	`webhook_url` text,
	`rows_total` integer DEFAULT 0 NOT NULL,
	`rows_finished` integer DEFAULT 0 NOT NULL,
	`addresses_total` integer DEFAULT 0 NOT NULL,
	`addresses_finished` integer DEFAULT 0 NOT NULL,
	`credits_charged` integer DEFAULT 0 NOT NULL,
	`credits_released` integer DEFAULT 0 NOT NULL,
	`created_at_ms` integer NOT NULL,
	`started_at_ms` integer,
	`completed_at_ms` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `bulk_jobs_id_unique` ON `bulk_jobs` (`id`);--> statement-breakpoint
CREATE INDEX `bulk_jobs_by_account` ON `bulk_jobs` (`account_id`,`mode`,`id`);--> statement-breakpoint
CREATE INDEX `bulk_jobs_unfinished` ON `bulk_jobs` (`number`) WHERE status in ('receiving', 'queued', 'running', 'deleting');--> statement-breakpoint
CREATE TABLE `bulk_rows` (
	`job` integer NOT NULL,
	`row_index` integer NOT NULL,
	`position` integer NOT NULL,
	`submitted_email` text,
	`cells` text,
	PRIMARY KEY(`job`, `row_index`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `outbox` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`type` text NOT NULL,
	`data` text NOT NULL,
	`url` text,
	`created_at_ms` integer NOT NULL,
	`delivered_at_ms` integer
);
--> statement-breakpoint
CREATE INDEX `outbox_undelivered` ON `outbox` (`id`) WHERE delivered_at_ms is null and url is not null;
