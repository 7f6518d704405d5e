DROP INDEX `blocklist_checks_by_age`;--> statement-breakpoint
CREATE INDEX `blocklist_checks_by_change_and_age` ON `blocklist_checks` (`is_change`,`finished_at_ms`);--> statement-breakpoint
CREATE INDEX `idempotency_keys_by_resource` ON `idempotency_keys` (`resource_id`);