CREATE TABLE `bounce_mailbox_marks` (
	`uid` integer PRIMARY KEY NOT NULL,
	`outcome` text NOT NULL
);
--> statement-breakpoint
CREATE TABLE `bounce_mailboxes` (
	`mailbox` text PRIMARY KEY NOT NULL,
	`uid_validity` text NOT NULL,
	`last_uid` integer NOT NULL,
	`usage_day` integer DEFAULT 0 NOT NULL,
	`usage_bytes` integer DEFAULT 0 NOT NULL
);
