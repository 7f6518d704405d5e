CREATE TABLE `dmarc_report_authors` (
	`domain` integer NOT NULL,
	`author` text NOT NULL,
	`first_day` integer NOT NULL,
	`last_day` integer NOT NULL,
	`usage_day` integer DEFAULT 0 NOT NULL,
	`usage_bytes` integer DEFAULT 0 NOT NULL,
	PRIMARY KEY(`domain`, `author`)
);
--> statement-breakpoint
PRAGMA foreign_keys=OFF;--> statement-breakpoint
CREATE TABLE `__new_dmarc_daily_reporters` (
	`domain` integer NOT NULL,
	`day` integer NOT NULL,
	`reporter` text NOT NULL,
	`author` text DEFAULT '' NOT NULL,
	`reports` integer NOT NULL,
	`messages` integer NOT NULL,
	`aligned` integer NOT NULL,
	`is_trusted` integer DEFAULT true NOT NULL,
	PRIMARY KEY(`domain`, `day`, `reporter`, `author`, `is_trusted`)
);
--> statement-breakpoint
INSERT INTO `__new_dmarc_daily_reporters`("domain", "day", "reporter", "author", "reports", "messages", "aligned", "is_trusted") SELECT domain, day, reporter, '', reports, messages, aligned, is_trusted FROM `dmarc_daily_reporters` WHERE is_trusted = 1;--> statement-breakpoint
INSERT INTO `__new_dmarc_daily_reporters`("domain", "day", "reporter", "author", "reports", "messages", "aligned", "is_trusted") SELECT r.domain, r.day, lower(coalesce(r.org, '')), substr(r.sameness, instr(r.sameness, ' ') + 1), count(*), sum(r.messages), sum(r.aligned), 0 FROM `dmarc_reports` r WHERE r.is_complete = 1 AND instr(r.sameness, ' ') > 0 AND EXISTS (SELECT 1 FROM `dmarc_daily_reporters` d WHERE d.domain = r.domain AND d.day = r.day AND d.reporter = lower(coalesce(r.org, '')) AND d.is_trusted = 0) GROUP BY 1, 2, 3, 4;--> statement-breakpoint
INSERT INTO `__new_dmarc_daily_reporters`("domain", "day", "reporter", "author", "reports", "messages", "aligned", "is_trusted") SELECT domain, day, reporter, 'unauthenticated', reports, messages, aligned, 0 FROM `dmarc_daily_reporters` d WHERE is_trusted = 0 AND NOT EXISTS (SELECT 1 FROM `__new_dmarc_daily_reporters` n WHERE n.domain = d.domain AND n.day = d.day AND n.reporter = d.reporter AND n.is_trusted = 0);--> statement-breakpoint
DROP TABLE `dmarc_daily_reporters`;--> statement-breakpoint
ALTER TABLE `__new_dmarc_daily_reporters` RENAME TO `dmarc_daily_reporters`;--> statement-breakpoint
PRAGMA foreign_keys=ON;--> statement-breakpoint
ALTER TABLE `dmarc_ingestions` ADD `accepted_at_ms` integer;