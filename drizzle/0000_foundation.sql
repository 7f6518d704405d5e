CREATE TABLE `accounts` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`plan` text NOT NULL,
	`credits_available` integer DEFAULT 0 NOT NULL,
	`credits_held` integer DEFAULT 0 NOT NULL,
	`created_at_ms` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `accounts_name_unique` ON `accounts` (`name`);--> statement-breakpoint
CREATE TABLE `api_keys` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`name` text NOT NULL,
	`mode` text NOT NULL,
	`scopes` text NOT NULL,
	`expires_at_ms` integer,
	`revoked_at_ms` integer,
	`last_used_at_ms` integer,
	`created_at_ms` integer NOT NULL,
	FOREIGN KEY (`account_id`) REFERENCES `accounts`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE INDEX `api_keys_by_account` ON `api_keys` (`account_id`);--> statement-breakpoint
CREATE TABLE `idempotency_keys` (
	`key_id` text NOT NULL,
	`idempotency_key` text NOT NULL,
	`request_hash` text NOT NULL,
	`resource_id` text NOT NULL,
	`created_at_ms` integer NOT NULL,
	PRIMARY KEY(`key_id`, `idempotency_key`)
);
--> statement-breakpoint
CREATE INDEX `idempotency_keys_by_age` ON `idempotency_keys` (`created_at_ms`);--> statement-breakpoint
CREATE TABLE `key_secrets` (
	`hash` text PRIMARY KEY NOT NULL,
	`key_id` text NOT NULL,
	`ending` text NOT NULL,
	`valid_until_ms` integer,
	`created_at_ms` integer NOT NULL,
	FOREIGN KEY (`key_id`) REFERENCES `api_keys`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE INDEX `key_secrets_by_key` ON `key_secrets` (`key_id`);--> statement-breakpoint
CREATE TABLE `ledger` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`account_id` text NOT NULL,
	`kind` text NOT NULL,
	`available` integer NOT NULL,
	`held` integer NOT NULL,
	`reference` text,
	`note` text,
	`at_ms` integer NOT NULL,
	FOREIGN KEY (`account_id`) REFERENCES `accounts`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE INDEX `ledger_by_account` ON `ledger` (`account_id`,`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `ledger_hold_once` ON `ledger` (`reference`) WHERE kind = 'hold';--> statement-breakpoint
CREATE UNIQUE INDEX `ledger_end_once` ON `ledger` (`reference`) WHERE kind in ('settle', 'release');--> statement-breakpoint
CREATE TABLE `verification_evidence` (
	`verification_id` text PRIMARY KEY NOT NULL,
	`body` text NOT NULL
);
--> statement-breakpoint
CREATE TABLE `verifications` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`key_id` text NOT NULL,
	`mode` text NOT NULL,
	`email` text NOT NULL,
	`normalized_email` text NOT NULL,
	`source` text,
	`status` text NOT NULL,
	`verdict` text,
	`sub_status` text,
	`result` text,
	`created_at_ms` integer NOT NULL,
	`completed_at_ms` integer,
	`due_at_ms` integer,
	`attempts` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE INDEX `verifications_by_key` ON `verifications` (`key_id`,`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `verifications_pending_once` ON `verifications` (`account_id`,`mode`,`normalized_email`) WHERE status = 'pending';--> statement-breakpoint
CREATE INDEX `verifications_due` ON `verifications` (`due_at_ms`) WHERE status = 'pending';