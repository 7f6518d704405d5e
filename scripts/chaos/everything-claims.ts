/** What must be true of the database and of the receivers after the clients of `everything-load.ts`. */
import type { Database } from "bun:sqlite";
import { type Claim, count, one } from "./claims.ts";
import type { Load } from "./everything-load.ts";
import type { WebhookReceiver } from "./webhook-receiver.ts";

/** Results that are not charged. */
const FREE = "('smtp_timeout', 'smtp_unreachable', 'dns_error', 'internal_error')";

const missing = (db: Database, table: string, ids: Iterable<string>): number =>
  [...ids].filter((id) => count(db, `${table} WHERE id = ?`, id) !== 1).length;

const isWrongResult = (email: string, subStatus: string | null): boolean => {
  if (email.includes("silent.chaos")) return subStatus !== "smtp_timeout" && subStatus !== "smtp_unreachable";
  return subStatus !== (email.startsWith("exists") ? "mailbox_exists" : "mailbox_not_found");
};

const wrongResults = (db: Database, table: string): number => {
  const rows = db.query(`SELECT normalized_email AS email, sub_status AS subStatus FROM ${table}`);
  let wrong = 0;
  for (const { email, subStatus } of rows.iterate() as Iterable<{ email: string; subStatus: string | null }>)
    if (isWrongResult(email, subStatus)) {
      wrong++;
      console.log(`${table}: ${email} ${subStatus}`);
    }
  return wrong;
};

const entries = (kinds: string): string =>
  `(SELECT count(*) FROM ledger WHERE reference = v.id AND kind IN (${kinds}))`;

const checkClaims = (db: Database, { checks }: Load): readonly Claim[] => [
  [
    "acknowledged checks that are missing",
    missing(
      db,
      "verifications",
      checks.map(({ id }) => id),
    ),
  ],
  ["checks that did not complete", count(db, "verifications WHERE status <> 'completed'")],
  ["checks with a wrong result", wrongResults(db, "verifications")],
  [
    "checks without evidence",
    count(db, "verifications WHERE id NOT IN (SELECT verification_id FROM verification_evidence)"),
  ],
  ["checks with more than one hold", count(db, `verifications v WHERE ${entries("'hold'")} > 1`)],
  [
    "held checks without exactly one settlement or release",
    count(db, `verifications v WHERE ${entries("'hold'")} = 1 AND ${entries("'settle', 'release'")} <> 1`),
  ],
  [
    "charged checks without exactly one settlement",
    count(db, `verifications v WHERE sub_status NOT IN ${FREE} AND ${entries("'settle'")} <> 1`),
  ],
  [
    "checks charged although no server responded",
    count(db, `verifications v WHERE sub_status IN ${FREE} AND ${entries("'settle'")} > 0`),
  ],
];

const OF_JOB = "(reference = j.id OR reference LIKE j.id || '#%')";

const listClaims = (db: Database, { lists }: Load): readonly Claim[] => {
  const wrongRows = lists.filter(
    ({ id, rows }) =>
      one<{ n: number } | null>(db, "SELECT rows_total AS n FROM bulk_jobs WHERE id = ?", id)?.n !== rows,
  );
  const addresses = "(SELECT count(*) FROM bulk_addresses WHERE job = j.number AND sub_status IS NOT NULL)";
  const free = `(SELECT count(*) FROM bulk_addresses WHERE job = j.number AND sub_status IN ${FREE})`;
  const sum = (column: string, kind: string) =>
    `(SELECT coalesce(sum(${column}), 0) FROM ledger WHERE kind = '${kind}' AND ${OF_JOB})`;
  return [
    ["acknowledged lists that are missing or lack rows", wrongRows.length],
    ["lists that did not complete", count(db, "bulk_jobs WHERE status <> 'completed'")],
    ["lists with addresses missing or too many", count(db, `bulk_jobs j WHERE addresses_total <> ${addresses}`)],
    [
      "rows missing or too many",
      count(db, "bulk_jobs j WHERE rows_total <> (SELECT count(*) FROM bulk_rows WHERE job = j.number)"),
    ],
    ["addresses with a wrong result", wrongResults(db, "bulk_addresses")],
    [
      "finished addresses without evidence",
      count(
        db,
        "bulk_addresses a WHERE NOT EXISTS (SELECT 1 FROM bulk_evidence e WHERE e.job = a.job AND e.position = a.position)",
      ),
    ],
    [
      "lists whose hold is not their addresses",
      count(db, `bulk_jobs j WHERE ${sum("held", "hold")} <> addresses_total`),
    ],
    [
      "lists charged for other than the addresses heard",
      count(db, `bulk_jobs j WHERE -${sum("held", "settle")} <> addresses_total - ${free}`),
    ],
    [
      "lists without exactly one event of their end",
      count(
        db,
        "bulk_jobs j WHERE (SELECT count(*) FROM outbox WHERE type = 'bulk.completed' AND subject = 'job:' || j.id) <> 1",
      ),
    ],
  ];
};

/** Targets whose events do not lead to what is stored, one listing after the other. */
const wrongHistories = (db: Database): number => {
  const targets = db.query("SELECT id, listed_on AS listedOn FROM blocklist_targets").all() as Array<{
    id: string;
    listedOn: string;
  }>;
  const types = db.query("SELECT type FROM outbox WHERE subject = ? ORDER BY id");
  return targets.filter(({ id, listedOn }) => {
    const events = (types.all(`target:${id}`) as Array<{ type: string }>).map(({ type }) => type);
    const alternates = events.every((type, at) => type === (at % 2 === 0 ? "blacklist.listed" : "blacklist.delisted"));
    return !alternates || (events.length % 2 === 1) !== listedOn.includes("chaoslist");
  }).length;
};

const targetClaims = (db: Database, { targets, targetChecks }: Load): readonly Claim[] => [
  ["acknowledged targets that are missing", missing(db, "blocklist_targets", targets.keys())],
  ["acknowledged checks of targets that are missing", missing(db, "blocklist_checks", targetChecks)],
  ["targets whose events do not lead to their state", wrongHistories(db)],
  [
    "difference between changes in the history and events",
    Math.abs(count(db, "blocklist_checks WHERE is_change") - count(db, "outbox WHERE subject LIKE 'target:%'")),
  ],
  [
    "listings that differ from the state of their target",
    count(
      db,
      "blocklist_targets t WHERE (listed_on <> '[]') <> EXISTS (SELECT 1 FROM blocklist_listings WHERE target_id = t.id)",
    ),
  ],
];

interface SentDelivery {
  readonly eventId: string;
  readonly url: string;
  readonly subject: string;
}

/** Subjects whose events first arrived at a URL in another order than they happened. */
const outOfOrder = (deliveries: readonly SentDelivery[], receiver: WebhookReceiver): number => {
  const queues = Map.groupBy(deliveries, ({ url, subject }) => `${new URL(url).pathname} ${subject}`);
  const placeOf = new Map(
    [...receiver.arrivals].flatMap(([path, ids]) => ids.map((id, at) => [`${path} ${id}`, at] as const)),
  );
  return [...queues.values()].filter((queue) => {
    const inOrder = queue.toSorted((a, b) => (a.eventId < b.eventId ? -1 : 1));
    const places = inOrder.map(({ url, eventId }) => placeOf.get(`${new URL(url).pathname} ${eventId}`) ?? -1);
    return places.some((place, at) => at > 0 && place < (places[at - 1] ?? 0));
  }).length;
};

const webhookClaims = (db: Database, receiver: WebhookReceiver): readonly Claim[] => {
  const deliveries = db
    .query("SELECT event_id AS eventId, url, subject FROM webhook_deliveries")
    .all() as SentDelivery[];
  const unheard = deliveries.filter(
    ({ eventId, url }) => !receiver.received.has(`${eventId} ${new URL(url).pathname}`),
  );
  const withoutDelivery = (url: string) =>
    count(db, `outbox o WHERE NOT EXISTS (SELECT 1 FROM webhook_deliveries WHERE event_id = o.id AND url = ${url})`);
  return [
    ["events that were not relayed", count(db, "outbox WHERE delivered_at_ms IS NULL")],
    ["events without a delivery to the default URL", withoutDelivery(`'${receiver.url}/default'`)],
    ["events without a delivery to their URL", withoutDelivery("o.url") - count(db, "outbox WHERE url IS NULL")],
    ["deliveries that did not succeed", count(db, "webhook_deliveries WHERE status <> 'delivered'")],
    ["deliveries that the receiver did not get", unheard.length],
    ["requests with an invalid signature", receiver.invalid.length],
    ["subjects whose events arrived out of order", outOfOrder(deliveries, receiver)],
  ];
};

const creditClaims = (db: Database, { creditsGranted }: Load, creditsBefore: number): readonly Claim[] => {
  const sum = (of: string, from: string) =>
    one<{ n: number }>(db, `SELECT coalesce(sum(${of}), 0) AS n FROM ${from}`).n;
  const charged =
    sum("credits_charged", "bulk_jobs") +
    count(db, "ledger WHERE kind = 'settle' AND reference IN (SELECT id FROM verifications)");
  return [
    [
      "difference between acknowledged and stored grants",
      Math.abs(creditsBefore + creditsGranted - sum("available", "ledger WHERE kind = 'grant'")),
    ],
    ["credits still held", Math.abs(sum("credits_held", "accounts"))],
    [
      "difference between grants less charges and the balance",
      Math.abs(creditsBefore + creditsGranted - charged - sum("credits_available", "accounts")),
    ],
  ];
};

/** All claims but those about reports. `creditsBefore`: granted before the first kill. */
export const everythingClaims = (
  db: Database,
  {
    load,
    receiver,
    creditsBefore,
  }: { readonly load: Load; readonly receiver: WebhookReceiver; readonly creditsBefore: number },
): readonly Claim[] => [
  ...checkClaims(db, load),
  ...listClaims(db, load),
  ...targetClaims(db, load),
  ...webhookClaims(db, receiver),
  ...creditClaims(db, load, creditsBefore),
  ["repeats with an Idempotency-Key that found another resource", load.wrongRepeats],
  ["unexpected responses", load.surprises.length],
];
