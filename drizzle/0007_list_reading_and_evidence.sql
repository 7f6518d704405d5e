CREATE TABLE `__new_bulk_evidence` (
	`job` integer NOT NULL,
	`position` integer NOT NULL,
	`body` blob NOT NULL,
	PRIMARY KEY(`job`, `position`)
);
--> statement-breakpoint
INSERT INTO `__new_bulk_evidence`("job", "position", "body") SELECT "job", "position", CAST("body" AS BLOB) FROM `bulk_evidence`;--> statement-breakpoint
DROP TABLE `bulk_evidence`;--> statement-breakpoint
ALTER TABLE `__new_bulk_evidence` RENAME TO `bulk_evidence`;--> statement-breakpoint
ALTER TABLE `bulk_jobs` ADD `reading` text;--> statement-breakpoint
ALTER TABLE `bulk_jobs` ADD `rows_empty` integer DEFAULT 0 NOT NULL;