CREATE TABLE `dmarc_weekly` (
	`domain` integer NOT NULL,
	`source` integer NOT NULL,
	`is_trusted` integer DEFAULT true NOT NULL,
	`week` integer NOT NULL,
	`messages` integer NOT NULL,
	`aligned` integer NOT NULL,
	`aligned_dkim` integer NOT NULL,
	`aligned_spf` integer NOT NULL,
	`forwarded` integer NOT NULL,
	`authenticated` integer NOT NULL,
	`quarantined` integer NOT NULL,
	`rejected` integer NOT NULL,
	PRIMARY KEY(`domain`, `source`, `is_trusted`, `week`)
) WITHOUT ROWID;
--> statement-breakpoint
-- The history so far.
INSERT INTO `dmarc_weekly` (`domain`, `source`, `is_trusted`, `week`, `messages`, `aligned`, `aligned_dkim`, `aligned_spf`, `forwarded`, `authenticated`, `quarantined`, `rejected`)
SELECT `domain`, `source`, `is_trusted`, `day` / 7, sum(`messages`), sum(`aligned`), sum(`aligned_dkim`), sum(`aligned_spf`), sum(`forwarded`), sum(`authenticated`), sum(`quarantined`), sum(`rejected`) FROM `dmarc_daily` GROUP BY 1, 2, 3, 4;
--> statement-breakpoint
CREATE TRIGGER `dmarc_weekly_adds` AFTER INSERT ON `dmarc_daily` BEGIN
	INSERT INTO `dmarc_weekly` (`domain`, `source`, `is_trusted`, `week`, `messages`, `aligned`, `aligned_dkim`, `aligned_spf`, `forwarded`, `authenticated`, `quarantined`, `rejected`)
	VALUES (new.`domain`, new.`source`, new.`is_trusted`, new.`day` / 7, new.`messages`, new.`aligned`, new.`aligned_dkim`, new.`aligned_spf`, new.`forwarded`, new.`authenticated`, new.`quarantined`, new.`rejected`)
	ON CONFLICT DO UPDATE SET `messages` = `messages` + excluded.`messages`, `aligned` = `aligned` + excluded.`aligned`, `aligned_dkim` = `aligned_dkim` + excluded.`aligned_dkim`, `aligned_spf` = `aligned_spf` + excluded.`aligned_spf`, `forwarded` = `forwarded` + excluded.`forwarded`, `authenticated` = `authenticated` + excluded.`authenticated`, `quarantined` = `quarantined` + excluded.`quarantined`, `rejected` = `rejected` + excluded.`rejected`;
END;
--> statement-breakpoint
CREATE TRIGGER `dmarc_weekly_changes` AFTER UPDATE ON `dmarc_daily`
WHEN (old.`domain`, old.`source`, old.`is_trusted`, old.`day`) = (new.`domain`, new.`source`, new.`is_trusted`, new.`day`) BEGIN
	UPDATE `dmarc_weekly` SET `messages` = `messages` + new.`messages` - old.`messages`, `aligned` = `aligned` + new.`aligned` - old.`aligned`, `aligned_dkim` = `aligned_dkim` + new.`aligned_dkim` - old.`aligned_dkim`, `aligned_spf` = `aligned_spf` + new.`aligned_spf` - old.`aligned_spf`, `forwarded` = `forwarded` + new.`forwarded` - old.`forwarded`, `authenticated` = `authenticated` + new.`authenticated` - old.`authenticated`, `quarantined` = `quarantined` + new.`quarantined` - old.`quarantined`, `rejected` = `rejected` + new.`rejected` - old.`rejected`
	WHERE `domain` = old.`domain` AND `source` = old.`source` AND `is_trusted` = old.`is_trusted` AND `week` = old.`day` / 7;
END;
--> statement-breakpoint
CREATE TRIGGER `dmarc_weekly_subtracts` AFTER DELETE ON `dmarc_daily` BEGIN
	UPDATE `dmarc_weekly` SET `messages` = `messages` - old.`messages`, `aligned` = `aligned` - old.`aligned`, `aligned_dkim` = `aligned_dkim` - old.`aligned_dkim`, `aligned_spf` = `aligned_spf` - old.`aligned_spf`, `forwarded` = `forwarded` - old.`forwarded`, `authenticated` = `authenticated` - old.`authenticated`, `quarantined` = `quarantined` - old.`quarantined`, `rejected` = `rejected` - old.`rejected`
	WHERE `domain` = old.`domain` AND `source` = old.`source` AND `is_trusted` = old.`is_trusted` AND `week` = old.`day` / 7;
	DELETE FROM `dmarc_weekly` WHERE `domain` = old.`domain` AND `source` = old.`source` AND `is_trusted` = old.`is_trusted` AND `week` = old.`day` / 7 AND `messages` <= 0;
END;
--> statement-breakpoint
CREATE TRIGGER `dmarc_weekly_moves` AFTER UPDATE ON `dmarc_daily`
WHEN (old.`domain`, old.`source`, old.`is_trusted`, old.`day`) <> (new.`domain`, new.`source`, new.`is_trusted`, new.`day`) BEGIN
	UPDATE `dmarc_weekly` SET `messages` = `messages` - old.`messages`, `aligned` = `aligned` - old.`aligned`, `aligned_dkim` = `aligned_dkim` - old.`aligned_dkim`, `aligned_spf` = `aligned_spf` - old.`aligned_spf`, `forwarded` = `forwarded` - old.`forwarded`, `authenticated` = `authenticated` - old.`authenticated`, `quarantined` = `quarantined` - old.`quarantined`, `rejected` = `rejected` - old.`rejected`
	WHERE `domain` = old.`domain` AND `source` = old.`source` AND `is_trusted` = old.`is_trusted` AND `week` = old.`day` / 7;
	DELETE FROM `dmarc_weekly` WHERE `domain` = old.`domain` AND `source` = old.`source` AND `is_trusted` = old.`is_trusted` AND `week` = old.`day` / 7 AND `messages` <= 0;
	INSERT INTO `dmarc_weekly` (`domain`, `source`, `is_trusted`, `week`, `messages`, `aligned`, `aligned_dkim`, `aligned_spf`, `forwarded`, `authenticated`, `quarantined`, `rejected`)
	VALUES (new.`domain`, new.`source`, new.`is_trusted`, new.`day` / 7, new.`messages`, new.`aligned`, new.`aligned_dkim`, new.`aligned_spf`, new.`forwarded`, new.`authenticated`, new.`quarantined`, new.`rejected`)
	ON CONFLICT DO UPDATE SET `messages` = `messages` + excluded.`messages`, `aligned` = `aligned` + excluded.`aligned`, `aligned_dkim` = `aligned_dkim` + excluded.`aligned_dkim`, `aligned_spf` = `aligned_spf` + excluded.`aligned_spf`, `forwarded` = `forwarded` + excluded.`forwarded`, `authenticated` = `authenticated` + excluded.`authenticated`, `quarantined` = `quarantined` + excluded.`quarantined`, `rejected` = `rejected` + excluded.`rejected`;
END;
