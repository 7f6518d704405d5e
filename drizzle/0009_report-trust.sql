CREATE TABLE `__new_dmarc_daily` (
	`domain` integer NOT NULL,
	`day` integer NOT NULL,
	`source` integer NOT NULL,
	`messages` integer NOT NULL,
	`aligned` integer NOT NULL,
	`aligned_dkim` integer NOT NULL,
	`aligned_spf` integer NOT NULL,
	`forwarded` integer NOT NULL,
	`authenticated` integer NOT NULL,
	`quarantined` integer NOT NULL,
	`rejected` integer NOT NULL,
	`is_trusted` integer DEFAULT true NOT NULL,
	PRIMARY KEY(`domain`, `day`, `source`, `is_trusted`)
);
--> statement-breakpoint
INSERT INTO `__new_dmarc_daily`("domain", "day", "source", "messages", "aligned", "aligned_dkim", "aligned_spf", "forwarded", "authenticated", "quarantined", "rejected", "is_trusted") SELECT "domain", "day", "source", "messages", "aligned", "aligned_dkim", "aligned_spf", "forwarded", "authenticated", "quarantined", "rejected", 1 FROM `dmarc_daily`;--> statement-breakpoint
DROP TABLE `dmarc_daily`;--> statement-breakpoint
ALTER TABLE `__new_dmarc_daily` RENAME TO `dmarc_daily`;--> statement-breakpoint
CREATE TABLE `__new_dmarc_daily_names` (
	`domain` integer NOT NULL,
	`day` integer NOT NULL,
	`name` text NOT NULL,
	`messages` integer NOT NULL,
	`aligned` integer NOT NULL,
	`is_trusted` integer DEFAULT true NOT NULL,
	PRIMARY KEY(`domain`, `day`, `name`, `is_trusted`)
);
--> statement-breakpoint
INSERT INTO `__new_dmarc_daily_names`("domain", "day", "name", "messages", "aligned", "is_trusted") SELECT "domain", "day", "name", "messages", "aligned", 1 FROM `dmarc_daily_names`;--> statement-breakpoint
DROP TABLE `dmarc_daily_names`;--> statement-breakpoint
ALTER TABLE `__new_dmarc_daily_names` RENAME TO `dmarc_daily_names`;--> statement-breakpoint
CREATE TABLE `__new_dmarc_daily_reporters` (
	`domain` integer NOT NULL,
	`day` integer NOT NULL,
	`reporter` text NOT NULL,
	`reports` integer NOT NULL,
	`messages` integer NOT NULL,
	`aligned` integer NOT NULL,
	`is_trusted` integer DEFAULT true NOT NULL,
	PRIMARY KEY(`domain`, `day`, `reporter`, `is_trusted`)
);
--> statement-breakpoint
INSERT INTO `__new_dmarc_daily_reporters`("domain", "day", "reporter", "reports", "messages", "aligned", "is_trusted") SELECT "domain", "day", "reporter", "reports", "messages", "aligned", 1 FROM `dmarc_daily_reporters`;--> statement-breakpoint
DROP TABLE `dmarc_daily_reporters`;--> statement-breakpoint
ALTER TABLE `__new_dmarc_daily_reporters` RENAME TO `dmarc_daily_reporters`;--> statement-breakpoint
ALTER TABLE `dmarc_domains` ADD `usage_day` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `dmarc_domains` ADD `usage_bytes` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
UPDATE `dmarc_reports` SET `sameness` = `sameness` || ' unauthenticated' WHERE `is_complete` = 1 AND `authenticity` IN ('pending', 'fail', 'unknown') AND `ingestion` IN (SELECT `id` FROM `dmarc_ingestions` WHERE `via` = 'smtp');
