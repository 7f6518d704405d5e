CREATE TABLE `deliverable_checks` (
	`account_id` text NOT NULL,
	`day` integer NOT NULL,
	`provider` text NOT NULL,
	`checks` integer NOT NULL,
	PRIMARY KEY(`account_id`, `day`, `provider`)
);
--> statement-breakpoint
CREATE INDEX `deliverable_checks_by_day` ON `deliverable_checks` (`day`);