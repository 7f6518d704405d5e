import { systemClock } from "../../src/foundation/base/clock.ts";
import { newId } from "../../src/foundation/base/secrets.ts";
import { BlocklistStore } from "../../src/blocklist/store.ts";
import { AccountsSlice } from "../../src/accounts/open.ts";
import type { Db } from "../../src/foundation/db/open.ts";
import { signInOwner } from "./stage.ts";

/** What a busy account has after ninety days. */
export const SIZES = { verifications: 1_000_000, days: 90, targets: 10_000, listedEvery: 50, rows: 100_000 } as const;
const DAY_MS = 86_400_000;
/** Times further ahead are corrected at the start: they were planned while the clock was wrong. */
const LATER_MS = 6 * 60 * 60 * 1_000;

/** Most exist; the others are spread over five reasons. */
const FILL_VERIFICATIONS = `INSERT INTO verifications (id, account_id, key_id, mode, email, normalized_email, source, status, verdict, sub_status,
    result, created_at_ms, completed_at_ms, attempts)
  WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < $count),
    at(i, ms) AS (SELECT i, $firstMs + i * ($nowMs - $firstMs) / $count FROM n),
    found(i, ms, verdict, reason) AS (SELECT i, ms,
      CASE WHEN i % 10 < 7 THEN 'deliverable' WHEN i % 10 = 7 THEN 'undeliverable' ELSE 'risky' END,
      CASE WHEN i % 10 < 7 THEN 'mailbox_exists' WHEN i % 10 = 7 THEN 'mailbox_not_found' WHEN i % 20 = 8 THEN 'catch_all'
        WHEN i % 20 = 18 THEN 'role_account' WHEN i % 20 = 9 THEN 'smtp_timeout' ELSE 'greylisted' END FROM at)
  SELECT printf('%08x-%04x-7%03x-9f4c-%012x', ms >> 16, ms & 65535, i & 4095, i), k.account_id, k.id, 'live', printf('u%d@any%d.com', i, i % 997),
    printf('u%d@any%d.com', i, i % 997), 'bench', 'completed', verdict, reason,
    json_object('verdict', verdict, 'sub_status', reason, 'email', printf('u%d@any%d.com', i, i % 997),
      'normalized_email', printf('u%d@any%d.com', i, i % 997), 'quality_score', 90, 'confidence', 95,
      'signals', json($signals), 'verified_at', '2026-01-01T00:00:00.000Z'), ms, ms, 1
  FROM found, api_keys k WHERE k.id = $keyId`;

const SIGNALS = JSON.stringify(
  Object.fromEntries(
    ["syntax", "domain", "mx", "smtp", "catch_all", "role_account", "disposable", "dnsbl", "toxic", "greylisting"].map(
      (name) => [name, "pass"],
    ),
  ),
);

/** Evidence of the size that it usually has. */
export const FILL_EVIDENCE = "INSERT INTO verification_evidence SELECT id, randomblob(400) FROM verifications";

/** The sums that the service keeps, out of the rows. */
const SUM_USAGE = `INSERT INTO usage_daily (account_id, mode, day, key_id, source, sub_status, verdict, verifications, credits)
  SELECT account_id, mode, completed_at_ms / 86400000, key_id, 'single', sub_status, verdict, count(*), count(*) FROM verifications
    WHERE status = 'completed' GROUP BY 1, 2, 3, 4, 6`;

/** An account with its history so far; its owner's session, and its keys. */
export const fillAccount = (db: Db, count: number = SIZES.verifications) => {
  const slice = new AccountsSlice({ db, clock: systemClock });
  const { accounts, keys } = slice;
  const created = accounts.create("bench", "scale");
  if (!created.ok) throw new Error("the account could not be made");
  accounts.grantCredits("bench", 10 * count + 10_000_000, "bench");
  const keyOf = (mode: "live" | "test") => {
    const issued = keys.create({ account: "bench", mode });
    if (!issued.ok) throw new Error(`no key: ${issued.error}`);
    return issued.value;
  };
  const [live, test] = [keyOf("live"), keyOf("test")];
  const accountId = created.value.id;
  const session = signInOwner(db, slice, accountId);
  const nowMs = Date.now();
  const span = {
    $count: count,
    $firstMs: nowMs - SIZES.days * DAY_MS,
    $nowMs: nowMs,
    $keyId: live.id,
    $signals: SIGNALS,
  };
  db.sqlite.prepare(FILL_VERIFICATIONS).run(span);
  db.sqlite.run(SUM_USAGE);
  fillTargets(db, accountId, nowMs);
  return { session, live: live.key, test: test.key };
};

/** Targets that are not due; one of fifty is listed. */
export const fillTargets = (db: Db, accountId: string, nowMs: number): void => {
  const store = new BlocklistStore(db);
  const insertListing = db.sqlite.prepare(
    `INSERT INTO blocklist_listings (target_id, listing, severity, meaning, since_ms, seen_at_ms) VALUES (?, 'spamcop', 'high', 'Listed.', ?, ?)`,
  );
  db.transact((tx) => {
    for (let n = 0; n < SIZES.targets; n++) {
      const isListed = n % SIZES.listedEvery === 0;
      const id = newId();
      store.insertTarget(tx, {
        ...{ id, accountId, mode: "live", kind: "ipv4", value: `100.20.${(n >> 8) & 255}.${n & 255}`, label: null },
        ...{ status: isListed ? "listed" : "clean", listedOn: isListed ? ["spamcop"] : [], rangeId: "", members: null },
        ...{ severityRank: isListed ? 4 : 0, alertSeverityMin: null, mutedLists: [], monitoringEnabled: true },
        ...{
          webhookUrl: null,
          recipients: [],
          unknownChecks: 0,
          lastCheckedAtMs: nowMs,
          nextCheckAtMs: nowMs + LATER_MS,
          createdAtMs: nowMs,
        },
      });
      if (isListed) insertListing.run(id, nowMs - DAY_MS, nowMs);
    }
  });
};
