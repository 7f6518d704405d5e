ALTER TABLE `dmarc_domains` ADD `bulk_senders` text DEFAULT '[]' NOT NULL;--> statement-breakpoint
ALTER TABLE `dmarc_domains` ADD `tags` text DEFAULT '[]' NOT NULL;