CREATE TABLE `blocklist_listings` (
	`target_id` text NOT NULL,
	`listing` text NOT NULL,
	`range_id` text DEFAULT '' NOT NULL,
	`severity` text,
	`meaning` text,
	`since_ms` integer NOT NULL,
	`seen_at_ms` integer NOT NULL,
	`acknowledged_by` text,
	`acknowledged_at_ms` integer,
	`delisting_requested_by` text,
	`delisting_requested_at_ms` integer,
	`note` text,
	`note_by` text,
	`note_at_ms` integer,
	PRIMARY KEY(`target_id`, `listing`)
);
--> statement-breakpoint
CREATE INDEX `blocklist_listings_of_range` ON `blocklist_listings` (`range_id`,`listing`) WHERE range_id <> '';--> statement-breakpoint
DROP INDEX `blocklist_targets_once`;--> statement-breakpoint
DROP INDEX `blocklist_targets_due`;--> statement-breakpoint
ALTER TABLE `blocklist_targets` ADD `range_id` text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE `blocklist_targets` ADD `members` integer;--> statement-breakpoint
ALTER TABLE `blocklist_targets` ADD `severity_rank` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `blocklist_targets` ADD `alert_severity_min` text;--> statement-breakpoint
CREATE INDEX `blocklist_targets_by_range` ON `blocklist_targets` (`account_id`,`mode`,`range_id`,`id`);--> statement-breakpoint
CREATE INDEX `blocklist_targets_by_severity` ON `blocklist_targets` (`account_id`,`mode`,`range_id`,`severity_rank`,`id`);--> statement-breakpoint
CREATE INDEX `blocklist_targets_of_range` ON `blocklist_targets` (`range_id`,`status`,`severity_rank`) WHERE range_id <> '';--> statement-breakpoint
CREATE INDEX `blocklist_targets_without_severity` ON `blocklist_targets` (`id`) WHERE severity_rank = 0 and listed_on <> '[]';--> statement-breakpoint
CREATE UNIQUE INDEX `blocklist_targets_once` ON `blocklist_targets` (`account_id`,`mode`,`kind`,`value`,`range_id`);--> statement-breakpoint
CREATE INDEX `blocklist_targets_due` ON `blocklist_targets` (`next_check_at_ms`) WHERE monitoring_enabled = 1 and members is null;--> statement-breakpoint
ALTER TABLE `account_notifications` ADD `blacklist_severity_min` text;--> statement-breakpoint
ALTER TABLE `account_notifications` ADD `blacklist_digest` text DEFAULT 'off' NOT NULL;--> statement-breakpoint
ALTER TABLE `account_notifications` ADD `blacklist_digest_due_at_ms` integer;--> statement-breakpoint
CREATE INDEX `account_notifications_digest_due` ON `account_notifications` (`blacklist_digest_due_at_ms`) WHERE blacklist_digest_due_at_ms is not null;
--> statement-breakpoint
-- What is listed now: since the check that says so, or where none is kept any more, since the last one.
INSERT INTO `blocklist_listings` (`target_id`, `listing`, `since_ms`, `seen_at_ms`)
SELECT `t`.`id`, `j`.`value`,
	coalesce((SELECT max(`c`.`finished_at_ms`) FROM `blocklist_checks` AS `c`, json_each(`c`.`body`, '$.added') AS `a`
		WHERE `c`.`target_id` = `t`.`id` AND `c`.`is_change` = 1 AND `a`.`value` = `j`.`value`), `t`.`last_checked_at_ms`, `t`.`created_at_ms`),
	coalesce(`t`.`last_checked_at_ms`, `t`.`created_at_ms`)
FROM `blocklist_targets` AS `t`, json_each(`t`.`listed_on`) AS `j`
WHERE true
ON CONFLICT DO NOTHING;
