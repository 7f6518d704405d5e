ALTER TABLE `accounts` ADD `deleted_at_ms` integer;--> statement-breakpoint
-- A note may contain personal data, which must be erasable. Everything else of an entry never changes.
DROP TRIGGER `ledger_never_changes`;--> statement-breakpoint
CREATE TRIGGER `ledger_never_changes` BEFORE UPDATE OF `id`, `account_id`, `kind`, `available`, `held`, `reference`, `at_ms` ON `ledger` BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
--> statement-breakpoint
-- The same for addresses in the audit log: texts may change only by an erasure, which leaves its mark.
DROP TRIGGER `audit_log_never_changes`;--> statement-breakpoint
CREATE TRIGGER `audit_log_never_changes` BEFORE UPDATE ON `audit_log`
WHEN NOT (
	NEW.`id` IS OLD.`id` AND NEW.`at_ms` IS OLD.`at_ms` AND NEW.`user` IS OLD.`user` AND NEW.`host` IS OLD.`host`
	AND NEW.`pid` IS OLD.`pid` AND NEW.`action` IS OLD.`action` AND NEW.`account_id` IS OLD.`account_id`
	AND (NEW.`subject` IS OLD.`subject` OR coalesce(instr(NEW.`subject`, '[erased]'), 0) > 0)
	AND (NEW.`before` IS OLD.`before` OR coalesce(instr(NEW.`before`, '[erased]'), 0) > 0)
	AND (NEW.`after` IS OLD.`after` OR coalesce(instr(NEW.`after`, '[erased]'), 0) > 0)
)
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
