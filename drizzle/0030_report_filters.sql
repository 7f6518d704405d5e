DROP INDEX `dmarc_reports_by_day`;--> statement-breakpoint
CREATE INDEX `dmarc_reports_by_day` ON `dmarc_reports` (`domain`,`day`,`number`,`is_complete`,`org`,`authenticity`,`sameness`);