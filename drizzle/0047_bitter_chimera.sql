ALTER TABLE `api_keys` ADD `forms` text;--> statement-breakpoint
CREATE INDEX `api_keys_of_forms` ON `api_keys` (`id`) WHERE forms is not null;