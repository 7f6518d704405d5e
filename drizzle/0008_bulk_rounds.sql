ALTER TABLE `bulk_jobs` ADD `round` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `bulk_jobs` ADD `is_resetting` integer DEFAULT false NOT NULL;