DROP TABLE `dmarc_source_addresses`;--> statement-breakpoint
ALTER TABLE `dmarc_domains` ADD `alert_thresholds` text DEFAULT '{}' NOT NULL;--> statement-breakpoint
ALTER TABLE `dmarc_domains` ADD `source_rules` text DEFAULT '[]' NOT NULL;--> statement-breakpoint
CREATE INDEX `dmarc_sources_legacy` ON `dmarc_sources` (`domain`,`number`) WHERE instr(key, ' ') = 0;