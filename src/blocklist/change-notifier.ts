import { insertEvent } from "../foundation/db/outbox.ts";
import type { Db, Tx } from "../foundation/db/open.ts";
import { SEVERITIES } from "../foundation/base/severity.ts";
import type { ListingMailQueue, QueuedListingMail } from "./listing-store.ts";
import {
  isSevereEnough,
  MAIL_SEVERITY_MIN,
  WEBHOOK_SEVERITY_MIN,
  worstRank,
  type Blocklist,
} from "./lists/blocklist.ts";
import type { TargetRow } from "./store.ts";
import { z } from "zod";
import { MailBatcher, type Mailing } from "../notifications/mail/mail-batcher.ts";
import {
  action,
  line,
  type MailContent,
  type MailSection,
  pageLink,
  minuteTime,
  plural,
} from "../notifications/mail/mail-content.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import { listingDigestMail, digestSchema } from "./digest.ts";
import { isoTime } from "../foundation/base/clock.ts";
import type { ListOutcome } from "./lists/lookup.ts";
import type { DelistingReason } from "./check-result.ts";
import type { NotificationDefaults } from "../notifications/settings/store.ts";
import type { Owner } from "../foundation/base/secrets.ts";

export interface ChangeNotifierDeps {
  /** Null when the service cannot send mail. */
  readonly mailQueue: ListingMailQueue | null;
  /** What an account has set for all of its targets. */
  readonly defaults: {
    findDefaults(owner: Owner): Pick<NotificationDefaults, "recipients" | "blacklistSeverityMin">;
  };
}

/** Writes the events of changes and queues alert mail, in the transaction of the change. */
export class ChangeNotifier {
  constructor(
    private readonly runtime: { db: Db },
    private readonly deps: ChangeNotifierDeps,
  ) {}

  /** Changes below the threshold are in the feed and the history only. Returns how many recipients mail was queued for. */
  notify(tx: Tx, changes: readonly ListingChange[], context: ListingChangeContext): number {
    if (changes.length === 0) return 0;
    const { mailQueue } = this.deps;
    const mailed = new Set<string>();
    const { before, atMs } = context;
    const { accountId, mode, webhookUrl: url } = before;
    const defaults = this.deps.defaults.findDefaults(before);
    const min = before.alertSeverityMin ?? defaults.blacklistSeverityMin;
    const recipients = mode === "test" ? [] : new Set([...before.recipients, ...defaults.recipients]);
    for (const change of changes) {
      const facts = changeFacts(change, context);
      insertEvent(this.runtime.db, tx, {
        accountId,
        mode,
        url,
        data: facts,
        createdAtMs: atMs,
        type: change.reason === null ? "blacklist.listed" : "blacklist.delisted",
        subject: `target:${facts.target_id}`,
        isFeedOnly: !isSevereEnough(facts.severity, min ?? WEBHOOK_SEVERITY_MIN),
      });
      // Users who mute a list know that its listings are removed.
      if (change.reason === "list_muted" || !isSevereEnough(facts.severity, min ?? MAIL_SEVERITY_MIN)) continue;
      if (mailQueue === null) continue;
      for (const recipient of recipients) {
        mailQueue.insert(tx, { accountId, recipient, entry: changeEntry(facts), createdAtMs: atMs });
        mailed.add(recipient);
      }
    }
    return mailed.size;
  }
}

const CHANGES_MAX = 100;
const MINUTE_MS = 60_000;
const WHY_MAILED = "You receive this mail as a recipient of these targets, or of all mail of the account.";

const changeEntrySchema = z.object({
  /** Missing in entries of older versions. */
  target_id: z.string().optional(),
  target: z.string(),
  label: z.string().nullable(),
  came: z.boolean(),
  name: z.string(),
  severity: z.enum(SEVERITIES).nullable(),
  meaning: z.string(),
  delist_url: z.string().nullable(),
  flapping: z.boolean(),
  at: z.string(),
  /** Why it was removed; missing in entries of older versions. */
  reason: z.string().optional(),
});
type ChangeEntry = z.output<typeof changeEntrySchema>;

/** About a list that became unusable, or usable again. */
const noticeEntrySchema = z.object({ notice: z.string(), detail: z.string(), at: z.string() });
type NoticeEntry = z.output<typeof noticeEntrySchema>;

/** What is queued: a change, a notice about a list, a digest. Older versions queued the text of a digest. */
const mailEntrySchema = z.union([
  z.object({ digest: digestSchema }),
  z.object({ digest: z.object({ subject: z.string(), text: z.string() }) }),
  noticeEntrySchema,
  changeEntrySchema,
]);

/** The queue entry of a change. */
const changeEntry = (facts: ListingChangeFacts): ChangeEntry => ({
  target_id: facts.target_id,
  target: facts.target,
  label: facts.label,
  came: !("reason" in facts),
  name: facts.listing_name,
  severity: facts.severity,
  meaning: facts.meaning,
  delist_url: facts.delist_url,
  flapping: facts.flapping,
  at: facts.checked_at,
  ...("reason" in facts ? { reason: facts.reason } : {}),
});

/** The queue entry of a list that became unusable, or usable again. */
export const noticeEntry = ({
  list_name,
  state,
  reason,
  remedy,
  checked_at,
}: {
  list_name: string;
  state: string;
  reason: string | null;
  remedy: string | null;
  checked_at: string;
}): NoticeEntry => ({
  notice: `${list_name} ${state === "healthy" ? "can be used again" : "cannot be used"}`,
  detail: [reason, remedy].filter((text) => text !== null).join(" "),
  at: checked_at,
});

/** Mails what is queued: one mail about all that happened in a minute, and at most one in ten minutes to each recipient. */
export const createListingMails = (
  runtime: Runtime,
  {
    mailing,
    queue,
    digests,
  }: {
    mailing: Mailing;
    queue: ListingMailQueue;
    /** Queues the digests that are due. */
    digests: { queueDue(): Promise<void> };
  },
) => {
  const batcher = new MailBatcher<QueuedListingMail>(runtime, {
    name: "blocklist alert mail",
    queue,
    mailing,
    compose: listingMail,
    topicOf,
    gatherMs: MINUTE_MS,
    intervalMs: 10 * MINUTE_MS,
  });
  return {
    async send(): Promise<void> {
      try {
        await digests.queueDue();
      } catch (error) {
        runtime.log.error("blocklist digests could not be queued, will be retried in the next run", { error });
      }
      await batcher.send();
    },
  };
};

const DIGEST_BEGINNING = '{"digest":';

const topicOf = ({ accountId, body }: QueuedListingMail) => {
  const kind = body.startsWith(DIGEST_BEGINNING) ? ("blocklist_digest" as const) : ("blocklist_alerts" as const);
  return accountId === "" ? null : { accountId, kind };
};

/** One mail about all changes and notices, and the digests that are due. `rows` is not empty. */
export const listingMail = (rows: readonly QueuedListingMail[]): MailContent | null => {
  const entries = rows.map(({ body }) => mailEntrySchema.parse(JSON.parse(body)));
  const digests = entries.flatMap((entry) => ("digest" in entry ? (digestContent(entry.digest) ?? []) : []));
  const changes = entries.filter((entry) => "target" in entry);
  const notices = entries.filter((entry) => "notice" in entry);
  const mails = [...(changes.length + notices.length === 0 ? [] : [changesMail(changes, notices)]), ...digests];
  const [first] = mails;
  if (first === undefined) return null;
  return {
    subject: first.subject,
    sections: mails.flatMap(({ sections }) => sections),
    closing: [...mails.flatMap(({ closing }) => closing), WHY_MAILED],
  };
};

type DigestEntry = z.output<typeof digestSchema> | { readonly subject: string; readonly text: string };

const digestContent = (digest: DigestEntry): MailContent | null => {
  if (!("text" in digest)) return listingDigestMail(digest);
  const blocks = digest.text.split("\n").map((text) => line(text.trim() === "" ? null : text));
  return { subject: digest.subject, sections: [{ heading: digest.subject, blocks }], closing: [] };
};

const changesMail = (changes: readonly ChangeEntry[], notices: readonly NoticeEntry[]): MailContent => {
  // The rows are in the order of their time; sorting keeps that order among equals.
  const sorted = changes.toSorted((a, b) => worstRank([b.severity]) - worstRank([a.severity]));
  const passed = passedListings(changes);
  const isPassed = new Set([...passed].flat());
  const added = sorted.filter((entry) => entry.came && !isPassed.has(entry));
  const removed = sorted.filter((entry) => !entry.came && !isPassed.has(entry));
  const all = [...[...added, ...removed].map(changeSection), ...passed.map(passedSection)];
  const sections = all.slice(0, CHANGES_MAX);
  const more = all.length - sections.length;
  const allSections = [...sections, ...notices.slice(0, CHANGES_MAX).map(noticeSection)];
  const counts = [
    ...(added.length > 0 ? [plural(added.length, "new listing")] : []),
    ...(removed.length > 0 ? [plural(removed.length, "delisting")] : []),
    ...(passed.length > 0 ? [plural(passed.length, "passed listing")] : []),
    ...(notices.length > 0 ? [plural(notices.length, "notice")] : []),
  ];
  const [only] = allSections;
  const isSingle = changes.length + notices.length === 1 && only !== undefined;
  return {
    subject: `Blocklists: ${isSingle ? only.heading : counts.join(", ")}`,
    sections: allSections,
    closing:
      more > 0 ? [`and ${more} more.`, pageLink("What is listed now", "/blocklists?status=listed", "Blocklists")] : [],
  };
};

/** Changes further apart are in one mail only where it had to wait for the end of a maintenance window. */
const GATHERED_MS_MAX = 20 * MINUTE_MS;

/** Listings that began and ended while the mail had to wait. `changes` are in the order of their time. */
const passedListings = (changes: readonly ChangeEntry[]) => {
  const [first, last] = [changes[0], changes.at(-1)].map((entry) => Date.parse(entry?.at ?? ""));
  if (!((last ?? 0) - (first ?? 0) > GATHERED_MS_MAX)) return [];
  const open = new Map<string, ChangeEntry>();
  return changes.flatMap((entry): Array<readonly [begin: ChangeEntry, end: ChangeEntry]> => {
    const key = JSON.stringify([entry.target_id, entry.target, entry.name]);
    const begin = open.get(key);
    if (entry.came) open.set(key, entry);
    else open.delete(key);
    return begin === undefined || entry.came ? [] : [[begin, entry]];
  });
};

const passedSection = ([begin, end]: readonly [ChangeEntry, ChangeEntry]): MailSection => ({
  heading: `${begin.target} was listed on ${begin.name}`,
  label: begin.label,
  blocks: [
    line(`From ${minuteTime(Date.parse(begin.at))} to ${minuteTime(Date.parse(end.at))}.`, "good"),
    targetLink(begin),
  ],
});

const changeSection = (entry: ChangeEntry): MailSection => {
  const { target, label, came, name, severity, meaning, delist_url, flapping } = entry;
  const at = minuteTime(Date.parse(entry.at));
  const often = flapping ? "The entry was added and removed at least four times within a day." : null;
  if (!came) {
    const reason = REMOVAL_REASONS[entry.reason ?? ""] ?? "";
    return {
      heading: `${target} is no longer listed on ${name}`,
      label,
      blocks: [line(`Since ${at}. ${reason}`.trim(), "good"), line(often), targetLink(entry)],
    };
  }
  return {
    heading: `${target} is listed on ${name}`,
    label,
    blocks: [
      line(severity === null ? null : `Severity: ${severity}`, "strong"),
      line(meaning),
      line(`Listed since ${at}.`),
      line(often),
      delist_url === null
        ? action("Find and fix the cause. This list has no delisting page.")
        : action("Find and fix the cause, then request delisting:", delist_url),
      targetLink(entry),
    ],
  };
};

const targetLink = ({ target_id, target }: ChangeEntry) =>
  target_id === undefined ? null : pageLink(`Open ${target}`, `/blocklists/${target_id}`, `Blocklists › ${target}`);

const REMOVAL_REASONS: Readonly<Record<string, string>> = {
  list_retired: "The list is no longer queried.",
  expired: "The list has not repeated the entry for 48 hours.",
};

const noticeSection = ({ notice, detail, at }: NoticeEntry): MailSection => ({
  heading: notice,
  blocks: [
    line(detail === "" ? null : detail),
    line(`Since ${minuteTime(Date.parse(at))}.`),
    pageLink("The health of the blocklists", "/blocklists/lists", "Blocklists › Lists"),
  ],
});

/** A listing that a check added or removed. */
export interface ListingChange {
  readonly listing: string;
  /** Null when it was added. */
  readonly reason: DelistingReason | null;
  /** The listing was added and removed several times within a day. */
  readonly flapping: boolean;
}

interface ListingChangeContext {
  /** The target before the change. */
  readonly before: TargetRow;
  readonly after: Pick<TargetRow, "status" | "listedOn">;
  /** The catalogue, including muted and retired lists. */
  readonly lists: readonly Blocklist[];
  readonly outcomes: readonly ListOutcome[];
  readonly checkId: string | null;
  /** The range that the target belongs to, as text; null for a target of its own. */
  readonly range: string | null;
  readonly atMs: number;
}

/** The `data` of the event of a change: everything a person needs to act on it (contract §7). */
const changeFacts = ({ listing, reason, flapping }: ListingChange, context: ListingChangeContext) => {
  const { before, after, lists, outcomes, checkId, atMs } = context;
  const list = lists.find(({ codes }) => codes.some(({ id }) => id === listing));
  const outcome = outcomes.find((candidate) => candidate.list === list?.id);
  const found = outcome?.listings.find(({ id }) => id === listing);
  const codes = list?.codes.filter(({ id }) => id === listing) ?? [];
  const known = found ?? codes[0];
  return {
    target_id: before.rangeId === "" ? before.id : before.rangeId,
    target: before.value,
    range: context.range,
    kind: before.kind,
    label: before.label,
    mode: before.mode,
    listing,
    listing_name: known?.name ?? listing,
    list: list?.id ?? null,
    category: known?.category ?? null,
    severity: known?.severity ?? null,
    meaning: (found?.meanings ?? codes.map(({ meaning }) => meaning)).join(" "),
    ...(reason === null ? { codes: found?.returnCodes ?? [], text: outcome?.text ?? null } : { reason }),
    delist_url: list?.delistUrl ?? null,
    previous_status: before.status,
    status: after.status,
    listed_on: after.listedOn,
    flapping,
    check_id: checkId,
    checked_at: isoTime(atMs),
  };
};
type ListingChangeFacts = ReturnType<typeof changeFacts>;
