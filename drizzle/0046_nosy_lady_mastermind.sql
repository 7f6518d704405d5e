CREATE TABLE `bounces` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`event_key` text NOT NULL,
	`source` text NOT NULL,
	`email` text NOT NULL,
	`kind` text NOT NULL,
	`status` text,
	`diagnostic` text,
	`bounced_at_ms` integer NOT NULL,
	`created_at_ms` integer NOT NULL,
	`promised` text,
	`promised_at_ms` integer,
	`provider` text,
	`refuted_at_ms` integer,
	`sought_at_ms` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `bounces_once` ON `bounces` (`account_id`,`event_key`);--> statement-breakpoint
CREATE INDEX `bounces_by_account` ON `bounces` (`account_id`,`id`);--> statement-breakpoint
CREATE INDEX `bounces_by_email` ON `bounces` (`account_id`,`email`,`bounced_at_ms`);--> statement-breakpoint
CREATE INDEX `bounces_by_time` ON `bounces` (`account_id`,`bounced_at_ms`);--> statement-breakpoint
CREATE INDEX `bounces_by_age` ON `bounces` (`created_at_ms`);--> statement-breakpoint
CREATE INDEX `bounces_unsought` ON `bounces` (`account_id`) WHERE sought_at_ms is null;