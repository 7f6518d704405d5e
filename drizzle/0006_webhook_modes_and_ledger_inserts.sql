DROP INDEX `webhook_deliveries_line`;--> statement-breakpoint
CREATE INDEX `webhook_deliveries_line` ON `webhook_deliveries` (`account_id`,`mode`,`url`,`id`) WHERE status = 'pending';--> statement-breakpoint
DROP INDEX `webhook_secrets_by_account`;--> statement-breakpoint
ALTER TABLE `webhook_secrets` ADD `mode` text DEFAULT 'live' NOT NULL;--> statement-breakpoint
CREATE INDEX `webhook_secrets_by_account` ON `webhook_secrets` (`account_id`,`mode`);--> statement-breakpoint
CREATE TABLE `__new_webhook_gone` (
	`account_id` text NOT NULL,
	`mode` text NOT NULL,
	`url` text NOT NULL,
	`at_ms` integer NOT NULL,
	PRIMARY KEY(`account_id`, `mode`, `url`)
);
--> statement-breakpoint
INSERT INTO `__new_webhook_gone`(`account_id`, `mode`, `url`, `at_ms`)
SELECT `account_id`, 'live', `url`, `at_ms` FROM `webhook_gone`
UNION ALL SELECT `account_id`, 'test', `url`, `at_ms` FROM `webhook_gone`;--> statement-breakpoint
DROP TABLE `webhook_gone`;--> statement-breakpoint
ALTER TABLE `__new_webhook_gone` RENAME TO `webhook_gone`;
--> statement-breakpoint
-- Live and test deliveries for one URL were one queue; the first of each new queue gets a time.
UPDATE `webhook_deliveries` SET `due_at_ms` = 0
WHERE `status` = 'pending' AND `due_at_ms` IS NULL AND NOT EXISTS (
	SELECT 1 FROM `webhook_deliveries` AS `earlier`
	WHERE `earlier`.`account_id` = `webhook_deliveries`.`account_id` AND `earlier`.`mode` = `webhook_deliveries`.`mode`
		AND `earlier`.`url` = `webhook_deliveries`.`url` AND `earlier`.`id` < `webhook_deliveries`.`id` AND `earlier`.`status` = 'pending'
);
--> statement-breakpoint
-- REPLACE removes rows without firing DELETE triggers unless recursive_triggers is on, which each connection decides.
CREATE TRIGGER `ledger_never_replaces` BEFORE INSERT ON `ledger`
WHEN EXISTS (SELECT 1 FROM `ledger` WHERE `id` = NEW.`id`)
	OR EXISTS (SELECT 1 FROM `ledger` WHERE `reference` = NEW.`reference` AND kind = 'hold' AND NEW.`kind` = 'hold')
	OR EXISTS (SELECT 1 FROM `ledger` WHERE `reference` = NEW.`reference` AND kind in ('settle', 'release') AND NEW.`kind` IN ('settle', 'release'))
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
