CREATE TABLE `audit_log` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`at_ms` integer NOT NULL,
	`user` text NOT NULL,
	`host` text NOT NULL,
	`pid` integer NOT NULL,
	`action` text NOT NULL,
	`account_id` text,
	`subject` text,
	`before` text,
	`after` text
);
--> statement-breakpoint
CREATE INDEX `audit_log_by_account` ON `audit_log` (`account_id`,`id`);--> statement-breakpoint
ALTER TABLE `accounts` ADD `rate_per_second` integer;--> statement-breakpoint
ALTER TABLE `accounts` ADD `rate_burst` integer;--> statement-breakpoint
ALTER TABLE `accounts` ADD `disabled_at_ms` integer;--> statement-breakpoint
CREATE TRIGGER `audit_log_never_changes` BEFORE UPDATE ON `audit_log` BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
--> statement-breakpoint
CREATE TRIGGER `audit_log_never_shrinks` BEFORE DELETE ON `audit_log` BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
--> statement-breakpoint
CREATE TRIGGER `audit_log_never_replaces` BEFORE INSERT ON `audit_log`
WHEN EXISTS (SELECT 1 FROM `audit_log` WHERE `id` = NEW.`id`)
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
