CREATE TABLE `blocklist_budgets` (
	`list_id` text PRIMARY KEY NOT NULL,
	`day` integer NOT NULL,
	`reserved` integer NOT NULL
);
--> statement-breakpoint
ALTER TABLE `blocklist_targets` ADD `unknown_checks` integer DEFAULT 0 NOT NULL;