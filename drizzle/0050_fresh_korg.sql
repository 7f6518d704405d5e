DROP INDEX `bounces_by_time`;--> statement-breakpoint
CREATE INDEX `bounces_that_count` ON `bounces` (`account_id`,`email`,`bounced_at_ms`) WHERE kind = 'hard' and refuted_at_ms is null;