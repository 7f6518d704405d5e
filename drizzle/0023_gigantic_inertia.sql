DROP INDEX `blocklist_checks_by_target`;--> statement-breakpoint
CREATE INDEX `blocklist_checks_by_target` ON `blocklist_checks` (`target_id`,`id`,`finished_at_ms`,`is_change`,`status`,`trigger`);--> statement-breakpoint
CREATE INDEX `blocklist_targets_by_state` ON `blocklist_targets` (`account_id`,`mode`,`range_id`,`monitoring_enabled`,`severity_rank`,`status`,`id`);