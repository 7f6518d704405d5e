CREATE TABLE `maintenance_windows` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text,
	`mode` text NOT NULL,
	`until_ms` integer,
	`days` text,
	`from_minute` integer,
	`to_minute` integer,
	`time_zone` text,
	`created_at_ms` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `maintenance_windows_by_account` ON `maintenance_windows` (`account_id`,`mode`);--> statement-breakpoint
CREATE TABLE `webhook_holds` (
	`account_id` text NOT NULL,
	`mode` text NOT NULL,
	`url` text NOT NULL,
	`since_ms` integer NOT NULL,
	PRIMARY KEY(`account_id`, `mode`, `url`)
);
