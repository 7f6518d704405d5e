CREATE INDEX `verifications_by_email` ON `verifications` (`account_id`,`mode`,`normalized_email`,`id`);--> statement-breakpoint
CREATE INDEX `verifications_by_result` ON `verifications` (`account_id`,`mode`,`sub_status`,`id`);--> statement-breakpoint
CREATE INDEX `verifications_by_source` ON `verifications` (`account_id`,`mode`,`source`,`id`) WHERE source is not null;