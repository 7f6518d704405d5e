CREATE TRIGGER `ledger_never_changes` BEFORE UPDATE ON `ledger` BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
--> statement-breakpoint
CREATE TRIGGER `ledger_never_shrinks` BEFORE DELETE ON `ledger` BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
