CREATE TABLE `blocklist_usability` (
	`list_id` text PRIMARY KEY NOT NULL,
	`since_ms` integer NOT NULL
);
