CREATE TABLE `blocklist_removed_targets` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL
);
