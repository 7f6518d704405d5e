CREATE TABLE `account_notifications` (
	`account_id` text NOT NULL,
	`mode` text NOT NULL,
	`webhook_url` text,
	`recipients` text NOT NULL,
	`updated_at_ms` integer NOT NULL,
	PRIMARY KEY(`account_id`, `mode`)
);
--> statement-breakpoint
CREATE TABLE `webhook_pauses` (
	`account_id` text NOT NULL,
	`mode` text NOT NULL,
	`url` text NOT NULL,
	`until_ms` integer NOT NULL,
	PRIMARY KEY(`account_id`, `mode`, `url`)
);
--> statement-breakpoint
CREATE INDEX `webhook_pauses_by_end` ON `webhook_pauses` (`until_ms`);--> statement-breakpoint
DROP INDEX `webhook_deliveries_line`;--> statement-breakpoint
DROP INDEX `webhook_deliveries_due`;--> statement-breakpoint
ALTER TABLE `webhook_deliveries` ADD `event_id` text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE `webhook_deliveries` ADD `subject` text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE `webhook_deliveries` ADD `via` text DEFAULT 'subject' NOT NULL;--> statement-breakpoint
ALTER TABLE `webhook_deliveries` ADD `rejections` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `webhook_deliveries` ADD `last_answer` text;--> statement-breakpoint
CREATE INDEX `webhook_deliveries_queue` ON `webhook_deliveries` (`account_id`,`mode`,`url`,`subject`,`event_id`) WHERE status = 'pending';--> statement-breakpoint
CREATE INDEX `webhook_deliveries_due` ON `webhook_deliveries` (`account_id`,`mode`,`url`,`due_at_ms`) WHERE due_at_ms is not null;--> statement-breakpoint
DROP INDEX `outbox_undelivered`;--> statement-breakpoint
ALTER TABLE `outbox` ADD `subject` text DEFAULT '' NOT NULL;--> statement-breakpoint
CREATE INDEX `outbox_by_account` ON `outbox` (`account_id`,`mode`,`id`);--> statement-breakpoint
CREATE INDEX `outbox_by_subject` ON `outbox` (`account_id`,`mode`,`subject`,`id`);--> statement-breakpoint
CREATE INDEX `outbox_undelivered` ON `outbox` (`id`) WHERE delivered_at_ms is null;
--> statement-breakpoint
UPDATE `outbox` SET `subject` = coalesce(CASE
	WHEN `type` LIKE 'blacklist.%' THEN 'target:' || json_extract(`data`, '$.target_id')
	WHEN `type` LIKE 'dmarc.%' THEN 'domain:' || json_extract(`data`, '$.domain_id')
	WHEN `type` LIKE 'bulk.%' THEN 'job:' || json_extract(`data`, '$.id')
END, '');
--> statement-breakpoint
-- Events for nobody were kept without a mark; nobody is to get them now.
UPDATE `outbox` SET `delivered_at_ms` = `created_at_ms` WHERE `url` IS NULL;
--> statement-breakpoint
UPDATE `webhook_deliveries` SET `event_id` = `id`, `subject` = coalesce(CASE
	WHEN `type` LIKE 'blacklist.%' THEN 'target:' || json_extract(`body`, '$.data.target_id')
	WHEN `type` LIKE 'dmarc.%' THEN 'domain:' || json_extract(`body`, '$.data.domain_id')
	WHEN `type` LIKE 'bulk.%' THEN 'job:' || json_extract(`body`, '$.data.id')
END, '');
--> statement-breakpoint
-- The events for a URL were one queue; the first of each subject gets a time.
UPDATE `webhook_deliveries` SET `due_at_ms` = 0
WHERE `status` = 'pending' AND `due_at_ms` IS NULL AND NOT EXISTS (
	SELECT 1 FROM `webhook_deliveries` AS `earlier`
	WHERE `earlier`.`account_id` = `webhook_deliveries`.`account_id` AND `earlier`.`mode` = `webhook_deliveries`.`mode`
		AND `earlier`.`url` = `webhook_deliveries`.`url` AND `earlier`.`subject` = `webhook_deliveries`.`subject`
		AND `earlier`.`event_id` < `webhook_deliveries`.`event_id` AND `earlier`.`status` = 'pending'
);
